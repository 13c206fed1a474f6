package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/rooms/snapshot"
	"gdr-features/source"
	"gdr-features/source/container"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/test/machine"
	"gdr-features/tristate"
)

const podText = `
pci0000:10 numa=0
  0000:11:00.0 gpu 10de:2330
  0000:13:00.0 eth 15b3:1021 rdma=mlx5_0
  0000:14:00.0 ib 15b3:1021 rdma=mlx5_1
  0000:15:00.0 eth 15b3:1021 rdma=mlx5_2 port=DOWN
`

// allDevices lays out one with all devices of that machine.
func allDevices(t *testing.T) (dir string) {
	t.Helper()
	m, err := machine.Parse(podText)
	if err != nil {
		t.Fatal(err)
	}
	dir = m.Tree(t, m.Ready())
	m.Container(t, dir, []int{0}, m.RDMADevices()...)
	m.Process(t, dir, "unlimited", 0, 0, 0)
	m.GIDs(t, dir, "3 v2 ::ffff:10.0.0.1 eth0")
	return dir
}

func machineOf(t *testing.T, dir string) *host.FS {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	return fs
}

// readContainer reads what a container lets its processes do from a tree, or from a snapshot of it.
func readContainer(t *testing.T, dir string, record bool) container.State {
	t.Helper()
	fs := machineOf(t, dir)
	if record {
		recorder := snapshot.Record(fs)
		_ = containerFrom(t, recorder.FS(dir))
		recording, _ := recorder.Finish()
		fs = recording.FS("snapshot")
	}
	return containerFrom(t, fs)
}

func containerFrom(t *testing.T, fs *host.FS) container.State {
	t.Helper()
	functions, err := pci.Scan(fs, family.Known(), source.What{})
	if err != nil {
		t.Fatal(err)
	}
	inv := rdma.Scan(t.Context(), fs, &functions, source.What{})
	seen := container.ReadDevices(t.Context(), fs, &functions, &inv)
	var devices []*rdma.Device
	for i := range inv.Devices {
		devices = append(devices, &inv.Devices[i])
	}
	return container.Read(fs, &seen, devices)
}

// TestContainer: what cannot be read is unknown and one problem, and everything else still read.
func TestContainer(t *testing.T) {
	remove := func(name string) func(dir string) error {
		return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
	}
	loop := func(name string) func(dir string) error {
		return func(dir string) error {
			_ = os.RemoveAll(filepath.Join(dir, name))
			return os.Symlink(filepath.Base(name), filepath.Join(dir, name))
		}
	}
	const gids = "sys/class/infiniband/mlx5_0/ports/1/gids"
	for _, tt := range []struct {
		name    string
		change  func(dir string) error
		nodes   int // that may be used
		locked  bool
		gids    int
		unread  bool
		gdrcopy tristate.State
		problem string
	}{
		{"all is here", remove("none"), 4, true, 1, false, tristate.False, ""},
		{"no nodes", remove("dev/infiniband"), 1, true, 1, false, tristate.False, ""},
		{"GDRCopy", func(dir string) error { return os.WriteFile(filepath.Join(dir, "dev/gdrdrv"), nil, 0o600) }, 5, true, 1, false, tristate.True, ""},
		{"a loop in place of GDRCopy", loop("dev/gdrdrv"), 4, true, 1, false, tristate.Unknown, "/dev/gdrdrv: too many levels"},
		{"a loop in place of the limits", loop("proc/self/limits"), 4, false, 1, false, tristate.False, "/proc/self/limits: too many levels"},
		{"no table of GIDs", remove(gids), 4, true, 0, true, tristate.False, "/" + gids},
		{"a loop in place of a GID", loop(gids + "/7"), 4, true, 1, true, tristate.False, "/" + gids + "/7: too many levels"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := allDevices(t)
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			f := readContainer(t, dir, false)
			usable := 0
			for path, state := range f.Usable {
				if state == tristate.True {
					usable++
				} else {
					t.Errorf("%s: %v", path, state)
				}
			}
			if usable != tt.nodes || (f.Process.Locked != nil) != tt.locked || f.GDRCopy != tt.gdrcopy {
				t.Errorf("%d nodes, limit %v, GDRCopy %v", usable, f.Process.Locked, f.GDRCopy)
			}
			if len(f.Ports) != 1 || f.Ports[0].Device.Name != "mlx5_0" || len(f.Ports[0].GIDs) != tt.gids || f.Ports[0].Unread != tt.unread {
				t.Errorf("ports %+v", f.Ports)
			}
			var problems []string
			for _, err := range f.Problems {
				problems = append(problems, err.Error())
			}
			if len(problems) != min(len(tt.problem), 1) || !strings.Contains(strings.Join(problems, " "), tt.problem) {
				t.Errorf("problems %q, want one about %q", problems, tt.problem)
			}
		})
	}
}

// TestContainerInSnapshot: the ports are known, and nothing of a process. Nothing is a problem,
// neither where a snapshot was taken before GIDs were recorded.
func TestContainerInSnapshot(t *testing.T) {
	dir := allDevices(t)
	f := readContainer(t, dir, true)
	if len(f.Usable) > 0 || f.Process.Locked != nil || f.Process.Capabilities != nil || f.GDRCopy != tristate.Unknown || len(f.Problems) > 0 {
		t.Errorf("%+v", f)
	}
	if len(f.Ports) != 1 || f.Ports[0].Unread || len(f.Ports[0].GIDs) != 1 || f.Ports[0].GIDs[0].NetDev != "eth0" {
		t.Errorf("ports %+v", f.Ports)
	}
	old := host.New(withoutGIDs{machineOf(t, dir)}, "snapshot")
	f = containerFrom(t, old)
	if len(f.Ports) != 1 || !f.Ports[0].Unread || len(f.Ports[0].GIDs) > 0 || len(f.Problems) > 0 {
		t.Errorf("from an older snapshot: ports %+v, problems %v", f.Ports, f.Problems)
	}
}

// withoutGIDs is a machine of which nobody asked for GIDs.
type withoutGIDs struct{ host.Source }

func (s withoutGIDs) Names(name string) ([]string, error) {
	if strings.HasSuffix(name, "/gids") {
		return nil, host.PathError("open", name, host.ErrNotRecorded)
	}
	return s.Source.Names(name)
}
