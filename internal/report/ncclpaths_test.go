package report_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/source/container"
	"gdr-features/test/machine"
)

// TestNCCLPathsRead: each file below /sys and /proc that NCCL or RCCL opens to find GPUs, NICs
// and the ways between them is asked for here too, or the same fact is asked for in another
// file, or the table says why not.
func TestNCCLPathsRead(t *testing.T) {
	t.Parallel()
	asked := askedOnMachines(t)
	read, elsewhere, excused := 0, 0, 0
	for _, row := range ncclPaths {
		there := asked.match(row.path)
		switch {
		case row.why == "" && row.same != "":
			t.Errorf("%s: %s stands for it, and nothing says why", row.path, row.same)
		case row.why == "" && there:
			read++
		case row.why == "":
			t.Errorf("%s (%s) is not read, and nothing excuses that", row.path, row.from)
		case there:
			t.Errorf("%s is excused (%s), and is read", row.path, row.why)
		case row.same == "":
			excused++
		case asked.match(row.same):
			elsewhere++
		default:
			t.Errorf("%s: %s is to stand for it, and is not read", row.path, row.same)
		}
	}
	t.Logf("of %d paths %d are read, of %d the fact is read in another file, %d are excused",
		len(ncclPaths), read, elsewhere, excused)
}

// TestNCCLPathsCanFail: a path that nothing reads is found to be one.
func TestNCCLPathsCanFail(t *testing.T) {
	t.Parallel()
	asked := &askedNames{names: map[string]bool{"sys/bus/pci/devices/0000:18:00.0/numa_node": true}}
	for path, want := range map[string]bool{
		"/sys/bus/pci/devices/%s/numa_node":           true,
		"/sys/bus/pci/devices/0000:18:00.0/numa_node": true,
		"/sys/bus/pci/devices/0000:19:00.0/numa_node": false,
		"/sys/bus/pci/devices/%s":                     false,
		"/sys/bus/pci/devices/%s/numa":                false,
		"/sys/bus/pci/%s/numa_node":                   false,
	} {
		if got := asked.match(path); got != want {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
	}
}

// askedOnMachines reads machines that have GPUs of NVIDIA and AMD, and a Broadcom switch in
// partitions, with all that a command reads, and returns what was asked for. One is read again
// without modalias: the ids then are from a file each.
func askedOnMachines(t *testing.T) *askedNames {
	t.Helper()
	asked := &askedNames{names: map[string]bool{}}
	options := append(report.ForSnapshot(), report.ForEnv, report.ForPublishing)
	collect := func(dir string) {
		tree, err := host.Open(host.Options{Root: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tree.Close() }()
		asked.Source = tree
		for _, o := range options {
			fs := host.New(asked, dir)
			r := report.Collect(t.Context(), fs, o)
			_ = container.ReadDevices(t.Context(), fs, &r.PCI, &r.RDMA)
		}
	}
	machines := []string{"dell-xe9680-h100", "supermicro-mi300x-thor2", "made-broadcom-partitions"}
	for _, m := range machine.All(t, machinesDir) {
		if !slices.Contains(machines, m.Name) {
			continue
		}
		dir := m.Tree(t, stateOf(t, m, "ready"))
		m.GIDs(t, dir, "0 v1 fe80::1 eth0", "1 v2 ::ffff:10.0.0.1 eth0")
		collect(dir)
		if m.Name == machines[0] {
			files, err := filepath.Glob(filepath.Join(dir, "sys/bus/pci/devices/*/modalias"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no modalias on %s: %v", m.Name, err)
			}
			for _, file := range files {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			collect(dir)
		}
		machines = slices.DeleteFunc(machines, func(name string) bool { return name == m.Name })
	}
	if len(machines) > 0 {
		t.Fatalf("no machines %q", machines)
	}
	return asked
}

// askedNames notes every name that a source is asked for.
type askedNames struct {
	host.Source
	mu    sync.Mutex
	names map[string]bool
}

func (a *askedNames) note(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.names[strings.TrimSuffix(name, "/")] = true
}

func (a *askedNames) Open(name string) (host.File, error) {
	a.note(name)
	return a.Source.Open(name)
}

func (a *askedNames) Names(name string) ([]string, error) {
	a.note(name)
	return a.Source.Names(name)
}

func (a *askedNames) Link(name string) (string, error) {
	a.note(name)
	return a.Source.Link(name)
}

func (a *askedNames) Inode(name string) (uint64, error) {
	a.note(name)
	return a.Source.Inode(name)
}

// match reports whether a name was asked for that is as a path, in which %s is one name.
func (a *askedNames) match(path string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimPrefix(path, "/")), "%s", "[^/]+")
	like := regexp.MustCompile("^" + pattern + "$")
	return slices.ContainsFunc(slices.Collect(maps.Keys(a.names)), like.MatchString)
}
