package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/container"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/test/machine"
	"gdr-features/tristate"
)

const machineText = `
pci0000:10 numa=0
  0000:11:00.0 gpu 10de:2330
  0000:12:00.0 accel 1002:74a1
  0000:13:00.0 ib 15b3:1021 rdma=mlx5_0
  0000:14:00.0 ib 15b3:1021 rdma=mlx5_1
`

var nvidia, amd = pci.Address{Bus: 0x11}, pci.Address{Bus: 0x12}

func described(t *testing.T) *machine.Machine {
	t.Helper()
	m, err := machine.Parse(machineText)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// everyDevice is a container on that machine with all of its devices.
func everyDevice(t *testing.T) (dir string) {
	t.Helper()
	m := described(t)
	dir = m.Tree(t, m.Ready())
	m.Container(t, dir, []int{0, 1}, m.RDMADevices()...)
	return dir
}

func scan(t *testing.T, dir string) container.Devices {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	inv, err := pci.Scan(fs, family.Known(), source.What{})
	if err != nil {
		t.Fatal(err)
	}
	devices := rdma.Scan(t.Context(), fs, &inv, source.What{})
	return container.ReadDevices(t.Context(), fs, &inv, &devices)
}

const (
	yes, no, unknown = tristate.True, tristate.False, tristate.Unknown

	information = "proc/driver/nvidia/gpus/0000:11:00.0/information"
	drm         = "sys/bus/pci/devices/0000:12:00.0/drm"
	verbs       = "sys/class/infiniband_verbs"
)

// TestDevices: what is missing is not here, and what cannot be read is not known and named.
func TestDevices(t *testing.T) {
	remove := func(name string) func(string) error {
		return func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) }
	}
	write := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) }
	}
	loop := func(name string) func(string) error { // cannot be read, by root either
		return func(dir string) error {
			_ = os.RemoveAll(filepath.Join(dir, name))
			return os.Symlink(filepath.Base(name), filepath.Join(dir, name))
		}
	}
	for _, tt := range []struct {
		name    string
		change  func(dir string) error
		gpus    [2]tristate.State // NVIDIA's and AMD's
		nics    [2]tristate.State // mlx5_0 and mlx5_1
		problem string
	}{
		{"everything is here", remove("none"), [2]tristate.State{yes, yes}, [2]tristate.State{yes, yes}, ""},
		{"no /dev", remove("dev"), [2]tristate.State{unknown, unknown}, [2]tristate.State{yes, yes}, ""},
		{"no node of a GPU", remove("dev/nvidia0"), [2]tristate.State{no, yes}, [2]tristate.State{yes, yes}, ""},
		{"no render node", remove("dev/dri"), [2]tristate.State{yes, no}, [2]tristate.State{yes, yes}, ""},
		{"the driver does not have the GPU", remove(information), [2]tristate.State{no, yes}, [2]tristate.State{yes, yes}, ""},
		{"the driver has no render node", remove(drm), [2]tristate.State{yes, no}, [2]tristate.State{yes, yes}, ""},
		{"no node of a NIC", remove("dev/infiniband/uverbs1"), [2]tristate.State{yes, yes}, [2]tristate.State{yes, no}, ""},
		{"ib_uverbs is not loaded", remove(verbs), [2]tristate.State{yes, yes}, [2]tristate.State{no, no}, ""},
		{"another network namespace", func(dir string) error { described(t).Namespace(t, dir, "mlx5_1"); return nil }, [2]tristate.State{yes, yes}, [2]tristate.State{no, yes}, ""},
		{"no number of a node", write(information, "GPU UUID: GPU-1\nDevice Minor: x\n"), [2]tristate.State{unknown, yes}, [2]tristate.State{yes, yes}, "/" + information + ": no line \"Device Minor\""},
		{"an empty file", write(information, ""), [2]tristate.State{unknown, yes}, [2]tristate.State{yes, yes}, "/" + information + ": file is empty"},
		{"a huge file", write(information, strings.Repeat("x", 5000)), [2]tristate.State{unknown, yes}, [2]tristate.State{yes, yes}, "/" + information + ": more data"},
		{"a loop in place of a node", loop("dev/nvidia0"), [2]tristate.State{unknown, yes}, [2]tristate.State{yes, yes}, "/dev/nvidia0: too many levels"},
		{"a loop in place of the render nodes", loop(drm), [2]tristate.State{yes, unknown}, [2]tristate.State{yes, yes}, "drm: too many levels"},
		{"a loop in place of the verbs class", loop(verbs), [2]tristate.State{yes, yes}, [2]tristate.State{unknown, unknown}, "/" + verbs + ": too many levels"},
		{"a name that is empty", write(verbs+"/uverbs1/ibdev", ""), [2]tristate.State{yes, yes}, [2]tristate.State{yes, unknown}, "/" + verbs + "/uverbs1/ibdev: file is empty"},
		{"an attribute of the class", write(verbs+"/abi_version", "6\n"), [2]tristate.State{yes, yes}, [2]tristate.State{yes, yes}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := everyDevice(t)
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			d := scan(t, dir)
			if got := [2]tristate.State{d.GPUs[nvidia].Visible, d.GPUs[amd].Visible}; got != tt.gpus {
				t.Errorf("GPUs: %v, want %v", got, tt.gpus)
			}
			if got := [2]tristate.State{d.RDMA("mlx5_0"), d.RDMA("mlx5_1")}; got != tt.nics {
				t.Errorf("NICs: %v, want %v", got, tt.nics)
			}
			text := ""
			for _, p := range d.Problems {
				text += p.Error() + "\n"
			}
			if !strings.Contains(text, tt.problem) || (text == "") != (tt.problem == "") || d.Complete != (tt.problem == "") {
				t.Errorf("problems %q, complete: %v; want %q", text, d.Complete, tt.problem)
			}
		})
	}
}

// TestDeviceNames: the paths of nodes, and the names of network devices.
func TestDeviceNames(t *testing.T) {
	dir := everyDevice(t)
	if d := scan(t, dir); d.Networks != nil {
		t.Errorf("network devices without /sys/class/net: %q", d.Networks)
	}
	if err := os.MkdirAll(filepath.Join(dir, "sys/class/net/eth0"), 0o755); err != nil {
		t.Fatal(err)
	}
	d := scan(t, dir)
	if got := [2]string{d.RDMANode("mlx5_1"), d.RDMANode("mlx5_2")}; got != [2]string{"/dev/infiniband/uverbs1", ""} {
		t.Errorf("RDMA nodes %q", got)
	}
	if len(d.Networks) != 1 || d.GPUs[nvidia].Node != "/dev/nvidia0" || d.GPUs[amd].Node != "/dev/dri/renderD129" {
		t.Errorf("%+v", d)
	}
	if want := "GPU-00000000-0000-4000-8000-000000000001"; d.GPUs[nvidia].UUID != want {
		t.Errorf("UUID %q, want %q", d.GPUs[nvidia].UUID, want)
	}
}

// TestElsewhere: of NICs whose RDMA devices belong to other network namespaces the kernel
// still shows in infiniband_verbs which they are; and a new name of a device does not change
// the order in which it was registered.
func TestElsewhere(t *testing.T) {
	dir := everyDevice(t)
	mlx50, mlx51 := pci.Address{Bus: 0x13}, pci.Address{Bus: 0x14}
	if d := scan(t, dir); d.Foreign(mlx50) != nil || d.Registered("mlx5_0") != 1 || d.Registered("mlx5_1") != 2 || d.Registered("mlx5_2") != 0 {
		t.Errorf("%q, %d, %d", d.Foreign(mlx50), d.Registered("mlx5_0"), d.Registered("mlx5_1"))
	}
	described(t).Namespace(t, dir, "mlx5_1")
	d := scan(t, dir)
	if got := d.Foreign(mlx50); len(got) != 1 || got[0] != "mlx5_0" || d.Foreign(mlx51) != nil || d.InNamespace("mlx5_0") != no {
		t.Errorf("%q, %q", got, d.Foreign(mlx51))
	}
	if got := d.VerbsFile("mlx5_0"); got != "/sys/class/infiniband_verbs/uverbs0/ibdev" {
		t.Error(got)
	}
}
