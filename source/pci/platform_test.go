package pci_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// Without modalias, the files of the ids decide whether the function may be a GPU or
// a NIC.
func TestScanUnidentified(t *testing.T) {
	tests := []struct {
		name     string
		function string
		spoil    map[string]string // by file; "" for one that is missing
		want     bool
	}{
		{"no file at all", "0000:18:00.0", map[string]string{"vendor": "", "device": "", "class": ""}, true},
		{"no device", "0000:18:00.0", map[string]string{"device": ""}, true},
		{"no class", "0000:18:00.0", map[string]string{"class": ""}, true},
		{"no vendor", "0000:18:00.0", map[string]string{"vendor": ""}, true},
		{"garbage for a vendor", "0000:18:00.0", map[string]string{"vendor": "NVIDIA"}, true},
		{"a vendor of 17 bits", "0000:18:00.0", map[string]string{"vendor": "0x10000"}, true},
		{"a device of 17 bits", "0000:18:00.0", map[string]string{"device": "0x10000"}, true},
		{"a class of 25 bits", "0000:18:00.0", map[string]string{"class": "0x1000000"}, true},
		{"nothing behind 0x", "0000:18:00.0", map[string]string{"device": "0x"}, true},
		{"a bridge's device", "0000:16:00.0", map[string]string{"device": ""}, false},
		{"a bridge's class", "0000:16:00.0", map[string]string{"class": ""}, false},
		{"a bridge's vendor", "0000:16:00.0", map[string]string{"vendor": ""}, false},
		{"a bridge's class and vendor", "0000:16:00.0", map[string]string{"class": "", "vendor": ""}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, switched)
			want := scan(t, dir, source.What{})
			base := devices + tt.function + "/"
			remove(t, dir, base+"modalias")
			for file, text := range tt.spoil {
				if text == "" {
					remove(t, dir, base+file)
				} else {
					put(t, dir, base+file, text+"\n")
				}
			}
			got := scan(t, dir, source.What{})
			wantProblems(t, got.Problems, "ids of "+tt.function+": ")
			if got.Unidentified() != tt.want {
				t.Errorf("Unidentified() = %v, want %v", got.Unidentified(), tt.want)
			}
			f := find(t, &got, tt.function)
			if f.Unidentified() != tt.want || f.Vendor != 0 || f.Device != 0 || f.Class != 0 {
				t.Errorf("%04x:%04x class %06x, unidentified %v; want zeros, %v", f.Vendor, f.Device, f.Class, f.Unidentified(), tt.want)
			}
			place := find(t, &want, tt.function)
			if diff := cmp.Diff(place.Bridges, f.Bridges); diff != "" || f.RootBus != place.RootBus {
				t.Errorf("root bus %q, bridges (-want +got):\n%s", f.RootBus, diff)
			}
		})
	}
}

func TestScanNUMA(t *testing.T) {
	const description = `
nodes 2
pci0000:15 numa=-1
  0000:15:01.0 port 8086:352a numa=1
    0000:16:00.0 switch 1000:c030 numa=0
      0000:17:00.0 port 1000:c030 numa=-1
        0000:18:00.0 gpu 10de:2330 numa=-1
      0000:17:01.0 port 1000:c030 numa=-1
        0000:19:00.0 ib 15b3:1021 numa=1
      0000:17:02.0 port 1000:c030 numa=-1
        0000:1a:00.0 switch 1000:c030 numa=1
          0000:1b:00.0 port 1000:c030 numa=-1
            0000:1c:00.0 ib 15b3:1021 numa=-1
  0000:15:02.0 port 8086:352a numa=1
    0000:20:00.0 gpu 10de:2330 numa=-1
  0000:15:03.0 port 8086:352a
    0000:21:00.0 dma 15b3:2100
  0000:15:04.0 port 8086:352a numa=1
    0000:22:00.0 020000 14e4:165f numa=-1
`
	type numa struct{ Own, Near, Root int }
	want := map[string]numa{
		"0000:18:00.0": {pci.None, 0, 0}, // own: none, near: the switch, whose root port says otherwise
		"0000:19:00.0": {1, 1, 0},        // what it says itself, and what the topmost switch says
		"0000:1c:00.0": {pci.None, 1, 0}, // the nearer switch, and the topmost one
		"0000:20:00.0": {pci.None, 1, pci.None},
		"0000:21:00.0": {pci.None, pci.None, pci.None},
	}
	for detail, name := range map[source.What]string{{}: "needed", everything: "everything"} {
		dir := write(t, description)
		inv := scan(t, dir, detail)
		got := map[string]numa{}
		for address := range want {
			f := find(t, &inv, address)
			got[address] = numa{f.NUMA, f.NearNUMA, f.RootNUMA}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		wantProblems(t, inv.Problems)
		// Other vendors' NICs inherit from what is above only on request: they are shown,
		// but not judged.
		near := map[source.What]int{{}: pci.None, everything: 1}[detail]
		if f := find(t, &inv, "0000:22:00.0"); f.NearNUMA != near {
			t.Errorf("%s: another vendor's NIC is near node %d, want %d", name, f.NearNUMA, near)
		}
	}
	// A bridge above several functions is read once, and is one problem.
	dir := write(t, description)
	put(t, dir, devices+"0000:16:00.0/numa_node", "garbage\n")
	inv := scan(t, dir, source.What{})
	wantProblems(t, inv.Problems, "/"+devices+`0000:16:00.0/numa_node: "garbage" is not a NUMA node`)
	f := find(t, &inv, "0000:18:00.0")
	if f.NearNUMA != 1 || f.RootNUMA != 1 {
		t.Errorf("the switch's node is garbage: near %d, root %d; want 1 of the root port", f.NearNUMA, f.RootNUMA)
	}
}

// A missing numa_node means no node only where the machine cannot have several.
func TestScanWithoutNUMANode(t *testing.T) {
	const nodes = "sys/devices/system/node"
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
		want   int
	}{
		{"several nodes", func(*testing.T, string) {}, pci.Unread},
		{"one node", func(t *testing.T, dir string) { rename(t, dir, nodes+"/node1", "sys/away") }, pci.None},
		{"no nodes", func(t *testing.T, dir string) { rename(t, dir, nodes, "sys/away") }, pci.None},
		{"nodes that cannot be listed", func(t *testing.T, dir string) { rename(t, dir, nodes, "sys/away"); put(t, dir, nodes, "") }, pci.Unread},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, "nodes 2\npci0000:15 numa=0\n  0000:18:00.0 gpu 10de:2330\n")
			remove(t, dir, devices+"0000:18:00.0/numa_node")
			tt.change(t, dir)
			inv := scan(t, dir, source.What{})
			if f := find(t, &inv, "0000:18:00.0"); f.NUMA != tt.want || f.NearNUMA != tt.want || f.RootNUMA != tt.want {
				t.Errorf("own %d, near %d, root %d; want %d", f.NUMA, f.NearNUMA, f.RootNUMA, tt.want)
			}
		})
	}
}

func TestScanVMDAndHyperV(t *testing.T) {
	inv := scan(t, write(t, `
nodes 1
pci0000:d7 numa=0
  0000:d7:05.5 080400 8086:28c0
pci10000:e0 numa=0 path=pci0000:d7/0000:d7:05.5
  10000:e0:02.0 port 8086:352a
    10000:e1:00.0 switch 10b5:8796
      10000:e2:00.0 port 10b5:8796
        10000:e3:00.0 gpu 10de:26b9
pci0001:00 numa=0 path=LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500-0001-0000-3130-444532334544
  0001:00:00.0 gpu 10de:2330
`), source.What{})
	wantProblems(t, inv.Problems)
	vmd := find(t, &inv, "10000:e3:00.0")
	if want := []pci.Address{at(t, "10000:e0:02.0"), at(t, "10000:e1:00.0"), at(t, "10000:e2:00.0")}; vmd.RootBus != "pci10000:e0" || vmd.Top != "pci0000:d7" || !cmp.Equal(vmd.Bridges, want) {
		t.Errorf("VMD: %s in %s, %v; want pci10000:e0 in pci0000:d7, %v", vmd.RootBus, vmd.Top, vmd.Bridges, want)
	}
	if vm := find(t, &inv, "0001:00:00.0"); vm.RootBus != "pci0001:00" || vm.Top != "LNXSYSTM:00" || len(vm.Bridges) != 0 {
		t.Errorf("Hyper-V: %s in %s, %v; want pci0001:00 in LNXSYSTM:00, no bridges", vm.RootBus, vm.Top, vm.Bridges)
	}
}

// The NIC that manages NVLink switches is recognised by its lanes, which everybody
// may read, or by its VPD; one function marks the others in its slot.
func TestScanNVLinkManagement(t *testing.T) {
	const (
		smdl = "vpd=VA:MLX:MN=MLNX:CSKU=V2:UUID=V3:PCI=V0:MODL=CX7:SMDL=SW_MNG:"
		nic  = "vpd=VA:MLX:MN=MLNX:CSKU=V2:UUID=V3:PCI=V0:MODL=CX7:"
	)
	tests := []struct {
		name      string
		functions []string // in the order of addresses
		want      []bool
	}{
		{"a NIC", []string{"0000:18:00.0 ib 15b3:1021"}, []bool{false}},
		{"two lanes", []string{"0000:18:00.0 ib 15b3:1021 width=2"}, []bool{true}},
		{"one lane, as on p6-b300.48xlarge (topology of aws/aws-ofi-nccl)", []string{"0000:18:00.0 ib 15b3:1021 sub=15b3:1113 width=1"}, []bool{true}},
		{"four lanes", []string{"0000:18:00.0 ib 15b3:1021 width=4"}, []bool{false}},
		{"two lanes of another product", []string{"0000:18:00.0 ib 15b3:101b width=2"}, []bool{false}},
		{"two lanes of an Ethernet NIC", []string{"0000:18:00.0 eth 15b3:1021 width=2"}, []bool{false}},
		{"two lanes of a virtual function", []string{"0000:18:00.0 ib 15b3:1021", "0000:18:00.1 ib 15b3:1021 width=2 physfn=0000:18:00.0"}, []bool{false, false}},
		{"VPD", []string{"0000:18:00.0 ib 15b3:1021 " + smdl}, []bool{true}},
		{"VPD of another product", []string{"0000:18:00.0 ib 15b3:1023 " + smdl}, []bool{true}},
		{"VPD of a NIC", []string{"0000:18:00.0 ib 15b3:1021 " + nic}, []bool{false}},
		{"product name", []string{"0000:18:00.0 ib 15b3:1021 vpd=Nvidia~ConnectX-7~mezz~internal"}, []bool{true}},
		{
			"one marks its slot and no other",
			[]string{
				"0000:18:00.0 ib 15b3:1021", "0000:18:00.1 ib 15b3:1021 " + smdl, "0000:18:00.2 eth 15b3:1021",
				"0000:18:01.0 ib 15b3:1021", "0000:19:00.0 ib 15b3:1021", "0001:18:00.0 ib 15b3:1021",
			},
			[]bool{true, true, true, false, false, false},
		},
		{"only NICs are marked", []string{"0000:18:00.0 ib 15b3:1021 width=2", "0000:18:00.1 gpu 10de:2330"}, []bool{true, false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inv := scan(t, write(t, "pci0000:15 numa=0\n  "+strings.Join(tt.functions, "\n  ")), source.What{})
			wantProblems(t, inv.Problems)
			var got []bool
			for i := range inv.Functions {
				got = append(got, inv.Functions[i].NVLinkManagement)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("marked (-want +got):\n%s", diff)
			}
		})
	}
}

// Where neither lanes nor VPD can be read, the NIC that manages NVLink switches cannot be told
// from one for traffic.
func TestScanWithoutLanes(t *testing.T) {
	const (
		nic  = "0000:18:00.0"
		card = " vpd=VA:MLX:MN=MLNX:CSKU=V2:UUID=V3:PCI=V0:MODL=CX7:"
	)
	gone := func(t *testing.T, dir string) { remove(t, dir, devices+nic+"/max_link_width") }
	noIDs := func(t *testing.T, dir string) {
		for _, name := range []string{"modalias", "vendor", "device", "class"} {
			remove(t, dir, devices+"0000:18:00.1/"+name)
		}
	}
	tests := []struct {
		name      string
		functions []string
		spoil     func(t *testing.T, dir string)
		want      bool
	}{
		{"no lanes, as on a root bus of QEMU", []string{"ib 15b3:1021 width=0"}, nil, true},
		{"63 lanes, as of a device that does not answer", []string{"ib 15b3:1021 width=63"}, nil, true},
		{"garbage", []string{"ib 15b3:1021 width=garbage"}, nil, true},
		{"no file", []string{"ib 15b3:1021"}, gone, true},
		{"a directory", []string{"ib 15b3:1021"}, func(t *testing.T, dir string) {
			gone(t, dir)
			if err := os.Mkdir(filepath.Join(dir, devices+nic, "max_link_width"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"VPD of a NIC", []string{"ib 15b3:1021 width=0" + card}, nil, false},
		{"VPD of the manager", []string{"ib 15b3:1021 width=0" + card + "SMDL=SW_MNG:"}, nil, false},
		{"another product", []string{"ib 15b3:1023 width=0"}, nil, false},
		{"an Ethernet NIC", []string{"eth 15b3:1021 width=0"}, nil, false},
		{"beside one with two lanes", []string{"ib 15b3:1021 width=0", "ib 15b3:1021 width=2"}, nil, false},
		{"beside one with lanes", []string{"ib 15b3:1021 width=0", "ib 15b3:1021"}, nil, true},
		{"beside a B200", []string{"ib 15b3:1021 width=0", "gpu 10de:2901"}, nil, true},
		{"beside an H100, whose boards have none", []string{"ib 15b3:1021 width=0", "gpu 10de:2330"}, nil, false},
		{"beside an Instinct", []string{"ib 15b3:1021 width=0", "accel 1002:74a1"}, nil, false},
		{"beside a GPU without an id", []string{"ib 15b3:1021 width=0", "gpu 10de:2330"}, noIDs, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var description strings.Builder
			for i, f := range tt.functions {
				fmt.Fprintf(&description, "  0000:18:00.%d %s\n", i, f)
			}
			dir := write(t, "pci0000:15 numa=0\n"+description.String())
			if tt.spoil != nil {
				tt.spoil(t, dir)
			}
			inv := scan(t, dir, source.What{})
			f := find(t, &inv, nic)
			if f.Unidentified() != tt.want {
				t.Errorf("unidentified %v, want %v", f.Unidentified(), tt.want)
			}
			text := fmt.Sprint(inv.Problems)
			if got := strings.Contains(text, "/"+devices+nic+"/max_link_width: no number of lanes"); got != tt.want {
				t.Errorf("problems %s", text)
			}
		})
	}
}

func TestScanDataDirect(t *testing.T) {
	inv := scan(t, write(t, `
pci0009:00
  0009:01:00.0 dma 15b3:2100 vpd=VU:first
  0009:02:00.0 dma 15b3:2100 vpd=V3:second
  0009:03:00.0 dma 15b3:2100 vpd=SN:third
pci0000:00
  0000:01:00.0 ib 15b3:1023 vpd=VU:second
  0000:01:00.1 ib 15b3:101e vpd=VU:second physfn=0000:01:00.0
  0000:02:00.0 ib 15b3:1023 vpd=V3:first
  0000:02:00.1 ib 15b3:1023 vpd=VU:first
  0000:03:00.0 ib 15b3:1023 vpd=VU:third
  0000:04:00.0 ib 15b3:1023
  0000:05:00.0 gpu 10de:31c2 vpd=VU:first
`), source.What{})
	wantProblems(t, inv.Problems)
	want := map[string]string{
		"0000:01:00.0": "0009:02:00.0", "0000:02:00.0": "0009:01:00.0", "0000:02:00.1": "0009:01:00.0",
	}
	got := map[string]string{}
	for i := range inv.Functions {
		if f := &inv.Functions[i]; f.DataDirect != nil {
			got[f.Address.String()] = f.DataDirect.String()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("data-direct functions (-want +got):\n%s", diff)
	}
}

// The host bridge alone tells an Ampere Altra. Where it may be one that cannot be read, that the
// CPU is another is not proven.
func TestNeedsCommonBridgeUnread(t *testing.T) {
	const altra = `
pci000c:00
  000c:00:00.0 060000 1def:e100
  000c:00:01.0 port 1def:e101
    000c:01:00.0 gpu 10de:20f1
pci000d:00
  000d:00:00.0 060000 1def:e10f
  000d:00:01.0 port 1def:e101
    000d:01:00.0 ib 15b3:101b
pci000e:00
  000e:00:00.0 060000 1def:e10f
  000e:00:01.0 port 1def:e101
    000e:01:00.0 010802 144d:a80a
`
	intel := strings.NewReplacer("1def:e100", "8086:09a2", "1def:e10f", "8086:09a2", "1def:e101", "8086:352a").Replace(altra)
	noIDs := func(address string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, file := range []string{"modalias", "vendor", "device", "class"} {
				remove(t, dir, devices+address+"/"+file)
			}
		}
	}
	missing := func(address string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { remove(t, dir, devices+address) }
	}
	elsewhere := strings.Replace(altra, "1def:e100", "1def:e10f", 1)
	tests := []struct {
		name, machine string
		change        func(t *testing.T, dir string)
		want          tristate.State
	}{
		{"Altra", altra, func(*testing.T, string) {}, tristate.True},
		{"another host bridge of Ampere", elsewhere, func(*testing.T, string) {}, tristate.False},
		{"host bridge without ids", altra, noIDs("000c:00:00.0"), tristate.Unknown},
		{"garbage for its device", altra, func(t *testing.T, dir string) {
			remove(t, dir, devices+"000c:00:00.0/modalias")
			put(t, dir, devices+"000c:00:00.0/device", "garbage\n")
		}, tristate.Unknown},
		{"host bridge not listed", altra, missing("000c:00:00.0"), tristate.Unknown},
		{"host bridge without place and ids", altra, func(t *testing.T, dir string) {
			noIDs("000c:00:00.0")(t, dir)
			relink(t, dir, devices+"000c:00:00.0", "nowhere")
		}, tristate.Unknown},
		{"the NIC's cannot be read, the GPU's can", altra, noIDs("000d:00:00.0"), tristate.True},
		{"the NIC's cannot be read", elsewhere, noIDs("000d:00:00.0"), tristate.Unknown},
		{"that of a root bus of neither", elsewhere, noIDs("000e:00:00.0"), tristate.False},
		{"root port without ids", elsewhere, noIDs("000c:00:01.0"), tristate.Unknown},
		{"root port not listed", elsewhere, missing("000c:00:01.0"), tristate.Unknown},
		{"Intel", intel, func(*testing.T, string) {}, tristate.False},
		{"host bridge of Intel not listed", intel, missing("000c:00:00.0"), tristate.False},
		{"function below a root port without ids", elsewhere, noIDs("000c:01:00.0"), tristate.False},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, tt.machine)
			tt.change(t, dir)
			inv := scan(t, dir, source.What{})
			gpus := family.Known().GPUs
			if got := inv.NeedsCommonBridge(gpus[0]); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
			if got := inv.NeedsCommonBridge(gpus[1]); got != tristate.False {
				t.Errorf("%s: %v, want false", gpus[1].Name, got)
			}
		})
	}
}
