package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/cli/machineflags"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
)

// otherRoots are the commands that read no machine, or no snapshot.
var otherRoots = []string{"run", "nodes", "version", "completion", "help", "snapshot"}

// moreForms are those of commands with arguments.
var moreForms = []string{
	"explain GPU0 mlx5_0", "explain GPU0 mlx5_0 -o json",
	"check --expect testdata/expect-all.yaml", "check --expect testdata/expect-all.yaml -o json", "labels --expect testdata/expect-all.yaml",
	"env --for vllm", "env --for nvshmem -o dotenv", "env --for mooncake -o file", "env --check",
}

// everyForm returns the arguments of every command that takes a snapshot, in every form
// of its output; "" is the overview.
func everyForm(t *testing.T) []string {
	t.Helper()
	forms := append([]string{""}, moreForms...)
	for _, c := range (&app{}).command().Commands() {
		if slices.Contains(otherRoots, c.Name()) {
			continue
		}
		forms = append(forms, c.Name())
		if c.Flags().Lookup("output") == nil {
			continue
		}
		said, _ := runOn(t, "", "__complete", c.Name(), "-o", "")
		for line := range strings.Lines(said) {
			if form := strings.TrimSpace(line); !strings.HasPrefix(form, ":") {
				forms = append(forms, c.Name()+" -o "+form)
			}
		}
	}
	return forms
}

// runOn runs the program on a root.
func runOn(t *testing.T, root string, args ...string) (said string, status int) {
	t.Helper()
	return runWithin(t, patient, root, args...)
}

// patient is a limit for readings that a machine which stands still for a while does not exceed.
const patient = 10 * time.Minute

func runWithin(t *testing.T, limit time.Duration, root string, args ...string) (said string, status int) {
	t.Helper()
	if root != "" {
		args = append([]string{"--root", root}, args...)
	}
	var out, errs bytes.Buffer
	status = run(t.Context(), args, streams{in: strings.NewReader(shortLog), out: &out, err: &errs, terminal: true, now: frozen, limit: limit})
	if args[0] == "__complete" {
		return out.String(), status
	}
	return out.String() + errs.String(), status
}

func frozen() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// takeSnapshot takes a snapshot of a root.
func takeSnapshot(t *testing.T, root string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "snapshot")
	if said, status := runOn(t, root, "snapshot", "-f", file); status != 0 || said != "" {
		t.Fatalf("snapshot: status %d, %s", status, said)
	}
	return file
}

// compareForms compares what is printed of a machine and of a snapshot of it.
func compareForms(t *testing.T, root, snapshot string, forms []string) {
	t.Helper()
	for _, form := range forms {
		want, wantStatus := runOn(t, root, strings.Fields(form)...)
		got, status := runOn(t, snapshot, strings.Fields(form)...)
		if strings.HasSuffix(form, "html") { // the page has the file's name for that of the node
			got = strings.ReplaceAll(got, ">"+filepath.Base(snapshot)+": ", ">")
		}
		if diff := cmp.Diff(want, got); diff != "" || status != wantStatus {
			t.Errorf("%q: status %d, want %d (-machine +snapshot):\n%s", form, status, wantStatus, diff)
		}
	}
}

// TestSnapshotPrintsTheSame: on every machine, in some states, and on some machines
// in every state, each command prints of the snapshot what it prints of the machine. A short
// run has each form of a command on some of the machines.
func TestSnapshotPrintsTheSame(t *testing.T) {
	forms := everyForm(t)
	for _, must := range []string{"", "explain -o text", "topo -o nccl-xml", "labels -o text", "labels -o json", "topo -o table", "topo -o json", "check -o table", "check -o json"} {
		if !slices.Contains(forms, must) {
			t.Fatalf("%q is not among %q", must, forms)
		}
	}
	inAll := []string{"gb300-datadirect", "vfs-with-pf"}
	inSome := testsize.Few([]string{"ready", "closed-no-peermem", "kallsyms-garbage"})
	for i, m := range testsize.Share(machine.All(t, machinesDir)) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			forms := testsize.FewInTurn(i, forms)
			for _, s := range testsize.Few(m.States()) {
				if !slices.Contains(inAll, m.Name) && !slices.Contains(inSome, s.Name) {
					continue
				}
				t.Run(s.Name, func(t *testing.T) {
					dir := m.Tree(t, s)
					file := takeSnapshot(t, dir)
					compareForms(t, dir, file, forms)
					if m.Name == inAll[0] && s.Name == inSome[0] {
						noMistake(t, file, moreForms)
					}
					text, _ := runOn(t, file, "snapshot")
					if diff := cmp.Diff(read(t, file), text); diff != "" {
						t.Errorf("a snapshot of it (-first +second):\n%s", diff)
					}
				})
			}
		})
	}
}

// noMistake checks that no arguments are wrong.
func noMistake(t *testing.T, root string, forms []string) {
	t.Helper()
	for _, form := range forms {
		if said, status := runOn(t, root, strings.Fields(form)...); status == 1 {
			t.Errorf("%q: %s", form, said)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSnapshotOfHungMachine: what gave no answer on the machine gives none on the
// snapshot. The machine here is itself a snapshot.
func TestSnapshotOfHungMachine(t *testing.T) {
	t.Parallel()
	m, err := machine.Load(filepath.Join(machinesDir, "a40-8gpu-2cx7-nccl1343.txt"))
	if err != nil {
		t.Fatal(err)
	}
	const port = "/sys/class/infiniband/mlx5_0/ports/1/state"
	healthy := read(t, takeSnapshot(t, m.Tree(t, m.Ready())))
	hung := strings.Replace(healthy, `{"read":"`+port+`","text":"4: ACTIVE\n"}`, `{"read":"`+port+`","error":"no-answer"}`, 1)
	root, file := filepath.Join(t.TempDir(), "hung"), filepath.Join(t.TempDir(), "snapshot")
	if err := os.WriteFile(root, []byte(hung), 0o644); err != nil || hung == healthy {
		t.Fatal(err)
	}
	said, status := runWithin(t, machineflags.ReadLimit, root, "snapshot", "-f", file)
	if want := "level=warning msg=\"" + port + ": no answer in time; the snapshot says so\"\n"; status != 0 || said != want {
		t.Errorf("status %d, %s", status, said)
	}
	if diff := cmp.Diff(hung, read(t, file)); diff != "" {
		t.Errorf("(-machine +snapshot):\n%s", diff)
	}
	start := time.Now()
	// Whether the other NIC's port is read in time is a close race, as on a machine.
	if said, status := runWithin(t, machineflags.ReadLimit, file, "check"); status == 1 || !strings.Contains(said, "no answer") {
		t.Errorf("check: status %d\n%s", status, said)
	}
	if took := time.Since(start); took < machineflags.ReadLimit || took > 10*machineflags.ReadLimit {
		t.Errorf("check took %v", took)
	}
}

// The machine whose snapshot is kept, and its file.
const snapshotMachine, snapshotFile = "vllm-1gpu-dualport-node", "snapshot.txt"

// TestGoldenSnapshot keeps the snapshot of a small machine for people to review.
func TestGoldenSnapshot(t *testing.T) {
	m, err := machine.Load(filepath.Join(machinesDir, snapshotMachine+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, takeSnapshot(t, m.Tree(t, m.Ready())))
	_, notes, _ := strings.Cut(text, `"taken `) // behind the version
	golden(t, filepath.Join(goldenDir, snapshotMachine, snapshotFile), []byte(`"taken `+notes))
}

// failing is a standard output that is full.
type failing struct{ io.Writer }

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A snapshot that cannot be written leaves no file behind, and keeps an existing
// one.
func TestSnapshotWholeOrNot(t *testing.T) {
	m := machine.All(t, machinesDir)[0]
	root, dir := m.Tree(t, m.Ready()), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ file, want string }{
		{filepath.Join(dir, "taken"), "not a regular file"},
		{"/dev/null", "not a regular file"},
		{filepath.Join(dir, "missing/file"), "no such file or directory"},
		{"/proc/self/snapshot", "/proc/self/"},
	} {
		said, status := runOn(t, root, "snapshot", "-f", tt.file)
		if status != 1 || !strings.Contains(said, tt.want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: status %d, %s", tt.file, status, said)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
	var errs bytes.Buffer
	if status := run(t.Context(), []string{"--root", root, "snapshot"}, streams{out: failing{}, err: &errs, now: frozen, limit: patient}); status != 1 {
		t.Errorf("standard output full: status %d, %s", status, errs.String())
	}
	if got, want := errs.String(), fmt.Sprintln("gdr-features: no space left on device"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
