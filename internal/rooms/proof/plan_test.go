package proof_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/proof"
	"gdr-features/source/container"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/tristate"
)

// planOf is the plan of a machine in a state, with GIDs at its Ethernet ports.
func planOf(t *testing.T, name, state string, change func(dir string)) proof.Plan {
	t.Helper()
	m, err := machine.Load("../../../testdata/machines/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	s, ok := m.StateNamed(state)
	if !ok {
		t.Fatalf("%s has no state %s", name, state)
	}
	dir := m.Tree(t, s)
	m.GIDs(t, dir, "0 v1 fe80::1 eth0", "1 v2 fe80::1 eth0", "2 v2 2001:db8::1 eth0", "3 v2 ::ffff:10.0.0.1 eth0")
	if change != nil {
		change(dir)
	}
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	r := report.Collect(t.Context(), fs, report.ForEnv)
	visible := container.ReadDevices(t.Context(), fs, &r.PCI, &r.RDMA)
	here := assign.Here{Node: &r.Node, Visible: &visible}
	return proof.New(here, proof.ReadFacts(t.Context(), fs, here))
}

// TestPlan: each GPU with each near NIC by each way, and a reason for what is left out.
func TestPlan(t *testing.T) {
	write := func(dir, name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name, machine, state string
		change               func(dir string)
		steps, gpus          int
		has, lacks, notes    string
	}{
		{"InfiniBand", "dell-xe9680-h100", "ready", nil, 24, 8, "-d mlx5_0 -i 1 -s 65536", "", ""},
		{"RoCE", "gke-a3ultra-h200", "ready", nil, 40, 8, "-i 1 -x 3 -s", "", ""},
		{"AMD", "amd-mi300x-pollara", "ready", nil, 0, 8, "--use_rocm=7", "", ""},
		{"EFA", "aws-p5-h100", "ready", nil, 0, 0, "", "its link layer is Unspecified, for which", ""},
		{"no way", "dell-xe9680-h100", "closed-no-peermem", nil, 0, 0, "", "neither peer memory nor DMA-BUF is in place (PeermemNotLoaded)", ""},
		{"a port down", "dell-xe9680-h100", "ready", func(dir string) {
			write(dir, "sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n")
		}, 0, 8, "", "", "mlx5_0: no port is active (port 1 is DOWN)"},
		{"no GID", "gke-a3ultra-h200", "ready", func(dir string) {
			ports, _ := filepath.Glob(dir + "/sys/class/infiniband/*/ports/1/gids")
			for _, port := range ports {
				for i := 2; i < 4; i++ {
					write(port, strconv.Itoa(i), "0000:0000:0000:0000:0000:0000:0000:0000\n")
				}
			}
		}, 0, 0, "", "no RoCE v2 GID with a routable address", ""},
		{"IPv6 alone", "gke-a3ultra-h200", "ready", func(dir string) {
			ports, _ := filepath.Glob(dir + "/sys/class/infiniband/*/ports/1/gids")
			for _, port := range ports {
				write(port, "3", "0000:0000:0000:0000:0000:0000:0000:0000\n")
			}
		}, 40, 8, "-i 1 -x 2 -s", "", ""},
		{"GIDs that are garbage", "gke-a3ultra-h200", "ready", func(dir string) {
			ports, _ := filepath.Glob(dir + "/sys/class/infiniband/*/ports/1/gids")
			for _, port := range ports {
				for i := range 4 {
					write(port, strconv.Itoa(i), "garbage\n")
				}
			}
		}, 0, 0, "", "its GIDs cannot be read", ""},
		{"MIG", "dell-xe9680-h100", "ready", func(dir string) {
			write(dir, "proc/driver/nvidia/gpus/0000:4c:00.0/information", "Model: \t\t NVIDIA H100\nDevice Minor: \t 2\n")
			write(dir, "proc/driver/nvidia/capabilities/gpu2/mig/gi1/access", "")
		}, 21, 7, "", "0000:4c:00.0: it is divided into MIG instances", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := planOf(t, test.machine, test.state, test.change)
			gpus := map[string]bool{}
			for _, s := range plan.Steps {
				if s.GPU != "" {
					gpus[s.GPU] = true
				}
			}
			var script bytes.Buffer
			if err := plan.Script(&script); err != nil {
				t.Fatal(err)
			}
			if test.steps > 0 && len(plan.Steps) != test.steps || len(gpus) != test.gpus {
				t.Errorf("%d steps, %d GPUs; %+v", len(plan.Steps), len(gpus), plan.NotMeasured)
			}
			for _, text := range []string{test.has, test.lacks, test.notes} {
				if !strings.Contains(script.String(), text) {
					t.Errorf("no %q in the script: %+v %+v", text, plan.NotMeasured, plan.NotUsed)
				}
			}
			if (test.lacks == "") != (len(plan.NotMeasured) == 0) {
				t.Errorf("not measured: %+v", plan.NotMeasured)
			}
			// What was not run is unknown: a list says the same as the plan.
			_, after, _ := strings.Cut(script.String(), "<<'PLAN'\n")
			list, _, _ := strings.Cut(after, "PLAN\n")
			r := proof.Read([]proof.File{{Name: "plan", Text: list}}, nil)
			if len(r.Lines) != len(plan.Steps) || len(r.Notes) != len(plan.NotMeasured)+len(plan.NotUsed) || r.State != tristate.Unknown {
				t.Errorf("%d lines, %q", len(r.Lines), r.Notes)
			}
		})
	}
}

// TestRatesOf: what a NIC can is known only where its files say it.
func TestRatesOf(t *testing.T) {
	for name, want := range map[string]proof.Rates{
		"": {Port: 400, PCIe: 504.1}, "current_link_width=4": {Port: 400, PCIe: 126}, "current_link_speed=2.5 GT/s PCIe": {Port: 400, PCIe: 32},
		"current_link_width=x": {Port: 400},
	} {
		plan := planOf(t, "dell-xe9680-h100", "ready", func(dir string) {
			file, text, there := strings.Cut(name, "=")
			if !there {
				return
			}
			if err := os.WriteFile(filepath.Join(dir, "sys/class/infiniband/mlx5_0/device", file), []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		})
		if got := plan.Steps[0]; got.NIC != "mlx5_0" || got.Rates != want {
			t.Errorf("%q: %+v, want %+v", name, got, want)
		}
	}
}

// TestScriptText compares whole scripts.
func TestScriptText(t *testing.T) {
	for _, test := range []struct{ machine, state string }{{"dell-xe9680-h100", "ready"}, {"amd-mi300x-pollara", "ready"}, {"aws-p5-h100", "ready"}} {
		plan := planOf(t, test.machine, test.state, nil)
		var got bytes.Buffer
		if err := plan.Script(&got); err != nil {
			t.Fatal(err)
		}
		file := "testdata/" + test.machine + ".sh"
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if diff := cmp.Diff(string(want), got.String()); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", file, err, diff)
		}
		for i, line := range strings.Split(got.String(), "\n") {
			if len(line) > 200 {
				t.Errorf("%s:%d has %d characters", file, i+1, len(line))
			}
		}
		if check, err := exec.LookPath("shellcheck"); err == nil {
			if out, err := exec.CommandContext(t.Context(), check, file).CombinedOutput(); err != nil {
				t.Errorf("%s", out)
			}
		}
	}
}

// perftest plays ib_write_bw: what it does with a kind of memory says FAKE.
const perftest = `#!/bin/sh
echo $$ >>"$PIDS"
for last; do :; done
case $FAKE in
no-port) [ "$last" = 127.0.0.1 ] && { echo "Couldn't connect to 127.0.0.1:1" >&2; exit 1; }
	echo "Couldn't listen to port 1" >&2; exit 1 ;;
hang) exec sleep 600 ;;
esac
case "$*" in
*--version*) echo "Version: 6.31"; exit 1 ;;
*--use_cuda*) echo "$0: unrecognized option '--use_cuda_bus_id'" >&2; exit 1 ;;
*127.0.0.1) cat "$TEXTS/c" ;;
*) cat "$TEXTS/s"; sleep 2 ;;
esac
`

// TestScript runs the script with each shell that is here, and a program that plays perftest.
func TestScript(t *testing.T) {
	plan := planOf(t, "dell-xe9680-h100", "ready", nil)
	plan.Steps = plan.Steps[:2]
	var script bytes.Buffer
	if err := plan.Script(&script); err != nil {
		t.Fatal(err)
	}
	shells := [][]string{{"sh"}}
	for _, other := range [][]string{{"bash", "--posix"}, {"busybox", "sh"}} {
		if _, err := exec.LookPath(other[0]); err == nil {
			shells = append(shells, other)
		}
	}
	for _, shell := range testsize.Share(shells) {
		t.Run(shell[0], func(t *testing.T) {
			t.Parallel()
			f := newFake(t, shell, script.String())
			out := f.run(t, "")
			r := f.read(t)
			base, on := lineNamed(t, r, "mlx5_0_host"), lineNamed(t, r, plan.Steps[1].Name)
			if base.State != yes || on.State != unknown || !strings.Contains(on.Why, "built without") || r.State != unknown || len(r.Lines) != 4 {
				t.Errorf("%+v\n%s", r, out)
			}
			if want := "[1/2] mlx5_0_host ... ended\n[2/2] " + plan.Steps[1].Name + " ... failed\n"; !strings.HasPrefix(out, want) {
				t.Errorf("progress: %s", out)
			}
			if again, err := f.command(t.Context(), "").CombinedOutput(); err == nil {
				t.Errorf("a folder that is there is used again: %s", again)
			}
			f.none(t)
		})
	}
	t.Run("port in use", func(t *testing.T) {
		t.Parallel()
		f := newFake(t, []string{"sh"}, script.String())
		f.run(t, "no-port")
		if l := lineNamed(t, f.read(t), "mlx5_0_host"); l.State != unknown || l.Why != "the TCP port is in use" {
			t.Errorf("%+v", l)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		f := newFake(t, []string{"sh"}, script.String())
		c := f.command(t.Context(), "hang")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for range 100 { // until a server runs
			if data, _ := os.ReadFile(filepath.Join(f.dir, "pids")); bytes.Count(data, []byte("\n")) > 1 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
		f.none(t)
		if r := f.read(t); r.State != unknown {
			t.Errorf("%+v", r)
		}
	})
}

// fake is a folder with a script and a program that plays perftest.
type fake struct {
	dir   string
	shell []string
}

func newFake(t *testing.T, shell []string, script string) *fake {
	t.Helper()
	f := &fake{t.TempDir(), shell}
	server, client := hostOnly()
	for name, text := range map[string]string{"proof.sh": script, "s": server.out(), "c": client.out(), "ib_write_bw": perftest} {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *fake) command(ctx context.Context, behavior string) *exec.Cmd {
	c := exec.CommandContext(ctx, f.shell[0], append(f.shell[1:], filepath.Join(f.dir, "proof.sh"), filepath.Join(f.dir, "out"))...)
	c.Env = []string{"PATH=" + f.dir + ":" + os.Getenv("PATH"), "FAKE=" + behavior, "TEXTS=" + f.dir, "PIDS=" + filepath.Join(f.dir, "pids")}
	return c
}

func (f *fake) run(t *testing.T, behavior string) string {
	t.Helper()
	out, err := f.command(t.Context(), behavior).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func (f *fake) read(t *testing.T) proof.Result {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(f.dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	var all []proof.File
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(f.dir, "out", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, proof.File{Name: e.Name(), Text: string(text)})
	}
	return proof.Read(all, nil)
}

// none: no program that was started is left.
func (f *fake) none(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	left := ""
	for range 50 {
		left = ""
		for pid := range strings.FieldsSeq(string(data)) {
			if text, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && len(text) > 0 {
				left += pid + " " + string(text) + "\n"
			}
		}
		if left == "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("still running: %s", left)
}
