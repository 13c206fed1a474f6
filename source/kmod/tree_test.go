package kmod

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gdr-features/host"
	"gdr-features/source/family"
	"gdr-features/tristate"
)

// Contents in place of files.
const (
	isDir  = "\x00directory"
	isFIFO = "\x00FIFO"
	isLoop = "\x00loop"
	absent = "\x00absent" // takes back what scan adds
)

// tree makes a tree of some files, by name, and opens it.
func tree(t *testing.T, files map[string]string) *host.FS {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if text == absent {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch text {
		case isDir:
			err = os.MkdirAll(path, 0o755)
		case isFIFO:
			err = unix.Mkfifo(path, 0o644)
		case isLoop:
			err = os.Symlink(filepath.Base(path), path)
		default:
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	return fs
}

// scan reads a tree of some files. Unless they say otherwise there are modules,
// a CPU without a hypervisor's flag, and symbols that do not matter.
func scan(t *testing.T, files map[string]string, want Request) State {
	t.Helper()
	return Scan(tree(t, withKernel(files)), known(want))
}

// known asks for NVIDIA GPUs and ConnectX NICs where a request names no families.
func known(want Request) Request {
	if len(want.Present.GPUs) == 0 {
		want.Present = present([]string{"nvidia"}, []string{"mlx5", "mlx4"})
	}
	return want
}

func withKernel(files map[string]string) map[string]string {
	all := map[string]string{
		"sys/module/kernel": isDir,
		"proc/cpuinfo":      "flags\t\t: fpu vme\n",
		kallsyms:            "0000000000000000 T vfs_read\n",
	}
	maps.Copy(all, files)
	return all
}

// wantProblems checks that there are problems with these beginnings, in this
// order, and no others.
func wantProblems(t *testing.T, problems []error, beginnings ...string) {
	t.Helper()
	for i, err := range problems {
		if i >= len(beginnings) || !strings.HasPrefix(err.Error(), beginnings[i]) {
			t.Errorf("problem %d: %v", i, err)
		}
	}
	if len(problems) < len(beginnings) {
		t.Errorf("no problem tells of %q", beginnings[len(problems):])
	}
}

// present is the table of some families alone.
func present(gpus, nics []string) (t family.Table) {
	known := family.Known()
	for _, g := range known.GPUs {
		if slices.Contains(gpus, g.Name) {
			t.GPUs = append(t.GPUs, g)
		}
	}
	for _, n := range slices.Concat(known.NICs, known.Others) {
		if slices.Contains(nics, n.Name) {
			t.NICs = append(t.NICs, n)
		}
	}
	return t
}

const (
	yes     = tristate.True
	no      = tristate.False
	unknown = tristate.Unknown
)
