//go:build image

package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/test/machine"
)

const (
	example     = "dell-xe9680-h100"
	machinesDir = "../../testdata/machines"
	goldenDir   = "../../testdata/golden"
)

// What the container's own /sys and /proc show is what the same user sees
// outside. On a host whose RDMA devices belong to network namespaces (`rdma
// system` says exclusive) this fails where it has RDMA devices, and should: there
// the Pod needs the host's network.
func TestSameAsOnHost(t *testing.T) {
	p := newPod(t)
	for _, verb := range []string{"labels", "labels -o json", "topo", "topo -o json", "check", "check -o json", "version"} {
		t.Run(verb, func(t *testing.T) {
			args := append([]string{"/gdr-features"}, strings.Fields(verb)...)
			in, out := p.run(t, args...), p.onHost(t, args...)
			if diff := cmp.Diff(out, in); diff != "" {
				t.Errorf("host and container (-host +container):\n%s", diff)
			}
			if in.Status == 1 || in.Err != "" || in.Out == "" && verb != "labels" {
				t.Errorf("%+v", in)
			}
		})
	}
}

// So does the variant host-sys, whose /sys is the node's.
func TestHostSys(t *testing.T) {
	p := newPod(t)
	p.bind("/sys", "/host/sys", "ro")
	for _, verb := range []string{"labels", "topo"} {
		in := p.run(t, "/gdr-features", "--sysfs=/host/sys", verb, "-o", "json")
		if diff := cmp.Diff(p.onHost(t, "/gdr-features", verb, "-o", "json"), in); diff != "" || in.Status != 0 {
			t.Errorf("%s: (-host +container):\n%s", verb, diff)
		}
	}
}

func TestVersion(t *testing.T) {
	want := native(t).config.Config.Labels["org.opencontainers.image.version"]
	if got := newPod(t).run(t, "/gdr-features", "version"); got.Status != 0 || !strings.Contains(got.Out, want) {
		t.Errorf("%+v, the image's label says %s", got, want)
	}
}

// The container sees a machine's files, mounted from the host, as anybody does.
func TestExampleMachine(t *testing.T) {
	p := newPod(t)
	p.bind(tree(t), "/host", "ro")
	for _, roots := range [][]string{{"--root", "/host"}, {"--sysfs", "/host/sys", "--procfs", "/host/proc"}} {
		for _, verb := range []string{"labels", "topo", "check"} {
			t.Run(roots[0]+" "+verb, func(t *testing.T) {
				got := p.run(t, append(append([]string{"/gdr-features"}, roots...), verb)...)
				if diff := cmp.Diff(result{Out: golden(t, verb)}, got); diff != "" {
					t.Errorf("(-golden +container):\n%s", diff)
				}
			})
		}
	}
}

func exampleMachine(t *testing.T) *machine.Machine {
	t.Helper()
	m, err := machine.Load(filepath.Join(machinesDir, example+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// tree lays out the example machine.
func tree(t *testing.T) string {
	t.Helper()
	m := exampleMachine(t)
	state, ok := machine.StateNamed("ready")
	if !ok {
		t.Fatal("no state ready")
	}
	dir := open(t)
	if err := m.Write(dir, state); err != nil {
		t.Fatal(err)
	}
	return dir
}

func golden(t *testing.T, verb string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(goldenDir, example, verb+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
