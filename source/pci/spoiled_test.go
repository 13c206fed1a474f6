package pci_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
)

// Each change spoils one fact. It costs that fact, makes one problem if the user
// should know about it, and leaves everything else as it was.
func TestScanSpoiled(t *testing.T) {
	const gpu = devices + "0000:18:00.0"
	const vf = devices + "0000:19:00.1"
	const nodes = "sys/devices/system/node"
	// lost leaves nothing of the GPU but its address.
	lost := func(_ *pci.Inventory, gpu, _ *pci.Function) {
		*gpu = pci.Function{
			Address: gpu.Address, IDFile: pci.ModaliasFile, Eligible: pci.IDsUnread, NUMA: pci.None, NearNUMA: pci.None, RootNUMA: pci.None, IOMMUGroup: pci.Unread,
		}
	}
	// alone: it is not known whether the virtual function is one.
	alone := func(_ *pci.Inventory, _, vf *pci.Function) {
		vf.PhysFn, vf.Eligible = nil, pci.MayBeVirtual
	}
	// fromFiles: the ids are not from modalias.
	fromFiles := func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.IDFile = pci.VendorFile }
	tests := []struct {
		name     string
		spoil    func(t *testing.T, dir string)
		problems []string
		change   func(inv *pci.Inventory, gpu, vf *pci.Function)
	}{
		{"nothing", func(*testing.T, string) {}, nil, nil},
		{
			"no modalias: a file for each id",
			func(t *testing.T, dir string) { remove(t, dir, gpu+"/modalias") },
			nil, fromFiles,
		},
		{
			"a modalias, and no file for any id",
			func(t *testing.T, dir string) {
				for _, file := range []string{"vendor", "device", "class", "subsystem_vendor", "subsystem_device"} {
					remove(t, dir, gpu+"/"+file)
				}
			},
			nil, nil,
		},
		{
			"a modalias, and other ids in the files",
			func(t *testing.T, dir string) {
				put(t, dir, gpu+"/vendor", "0x8086\n")
				put(t, dir, gpu+"/class", "garbage\n")
			},
			nil, nil,
		},
		{
			"no modalias, the largest ids there are",
			func(t *testing.T, dir string) {
				remove(t, dir, gpu+"/modalias")
				for _, file := range []string{"device", "subsystem_vendor", "subsystem_device"} {
					put(t, dir, gpu+"/"+file, "0xffff\n")
				}
			},
			nil,
			func(_ *pci.Inventory, gpu, _ *pci.Function) {
				gpu.IDFile, gpu.Device, gpu.SubVendor, gpu.SubDevice = pci.VendorFile, 0xffff, 0xffff, 0xffff
			},
		},
		{
			"no modalias, subsystem ids of 17 bits",
			func(t *testing.T, dir string) {
				remove(t, dir, gpu+"/modalias")
				put(t, dir, gpu+"/subsystem_vendor", "0x10000\n")
				put(t, dir, gpu+"/subsystem_device", "0x10000\n")
			},
			nil,
			func(_ *pci.Inventory, gpu, _ *pci.Function) {
				gpu.IDFile, gpu.SubVendor, gpu.SubDevice = pci.VendorFile, 0, 0
			},
		},
		{
			"a modalias of another bus",
			func(t *testing.T, dir string) { put(t, dir, gpu+"/modalias", "acpi:PNP0A08:\n") },
			nil, fromFiles,
		},
		{
			"no modalias, ids in upper case without 0x",
			func(t *testing.T, dir string) { remove(t, dir, gpu+"/modalias"); put(t, dir, gpu+"/vendor", "10DE\n") },
			nil, fromFiles,
		},
		{
			"no modalias and no subsystem ids",
			func(t *testing.T, dir string) {
				remove(t, dir, gpu+"/modalias")
				remove(t, dir, gpu+"/subsystem_vendor")
				put(t, dir, gpu+"/subsystem_device", "garbage")
			},
			nil,
			func(_ *pci.Inventory, gpu, _ *pci.Function) {
				gpu.IDFile, gpu.SubVendor, gpu.SubDevice = pci.VendorFile, 0, 0
			},
		},
		{
			"garbage for a path",
			func(t *testing.T, dir string) { relink(t, dir, gpu, "../../../devices/pci0000:15/not-a-function") },
			[]string{"/" + gpu + ": link to ", "ids of 0000:18:00.0: "},
			lost,
		},
		{
			"a path of one element",
			func(t *testing.T, dir string) { relink(t, dir, gpu, "0000:18:00.0") },
			[]string{"/" + gpu + `: link to "0000:18:00.0" is not a path`, "ids of 0000:18:00.0: "},
			lost,
		},
		{
			"a path without root bus",
			func(t *testing.T, dir string) {
				rename(t, dir, "sys/devices/pci0000:15", "sys/devices/pci")
				for _, name := range []string{"0000:15:01.0", "0000:16:00.0", "0000:17:00.0", "0000:17:01.0", "0000:19:00.0", "0000:19:00.1"} {
					remove(t, dir, devices+name)
				}
				relink(t, dir, gpu, "../../../devices/pci/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0")
			},
			[]string{"/" + gpu + ": no root bus in "},
			func(inv *pci.Inventory, gpu, _ *pci.Function) {
				gpu.RootBus, gpu.Top, gpu.Bridges = "", "", nil
				inv.Functions = []pci.Function{*gpu}
			},
		},
		{
			"an entry that is no link",
			func(t *testing.T, dir string) {
				remove(t, dir, gpu)
				rename(t, dir, "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0", gpu)
			},
			[]string{"readlink /" + gpu + ": invalid argument"},
			func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.RootBus, gpu.Top, gpu.Bridges = "", "", nil },
		},
		{
			"an entry that is no address",
			func(t *testing.T, dir string) { relink(t, dir, devices+"0000:18:00", "0000:18:00.0") },
			[]string{`/sys/bus/pci/devices: "0000:18:00" is not a PCI address`},
			nil,
		},
		{
			"NUMA node: garbage",
			func(t *testing.T, dir string) { put(t, dir, gpu+"/numa_node", "zero\n") },
			[]string{"/" + gpu + `/numa_node: "zero" is not a NUMA node`},
			func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.NUMA = pci.Unread },
		},
		{
			"NUMA node: as large as can be",
			func(t *testing.T, dir string) { put(t, dir, gpu+"/numa_node", "4096\n") },
			nil,
			func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.NUMA, gpu.NearNUMA = 4096, 4096 },
		},
		{
			"NUMA node: too large",
			func(t *testing.T, dir string) { put(t, dir, gpu+"/numa_node", "4097\n") },
			[]string{"/" + gpu + `/numa_node: "4097" is not a NUMA node`},
			func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.NUMA = pci.Unread },
		},
		{
			"NUMA node: below -1",
			func(t *testing.T, dir string) { put(t, dir, gpu+"/numa_node", "-2\n") },
			[]string{"/" + gpu + `/numa_node: "-2" is not a NUMA node`},
			func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.NUMA = pci.Unread },
		},
		{
			"NUMA node: empty",
			func(t *testing.T, dir string) { put(t, dir, gpu+"/numa_node", "") },
			[]string{"read /" + gpu + "/numa_node: file is empty"},
			func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.NUMA = pci.Unread },
		},
		{
			"NUMA node: missing though there are two",
			func(t *testing.T, dir string) { remove(t, dir, gpu+"/numa_node") },
			[]string{"open /" + gpu + "/numa_node: no such file"},
			func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.NUMA = pci.Unread },
		},
		{
			"no driver",
			func(t *testing.T, dir string) { remove(t, dir, gpu+"/driver") },
			nil,
			func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.Driver = "" },
		},
		{
			"a driver that cannot be read",
			func(t *testing.T, dir string) { remove(t, dir, gpu+"/driver"); put(t, dir, gpu+"/driver", "nvidia") },
			[]string{"readlink /" + gpu + "/driver"},
			func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.Driver, gpu.DriverKnown = "", false },
		},
		{
			"no IOMMU group",
			func(t *testing.T, dir string) { remove(t, dir, gpu+"/iommu_group") },
			nil,
			func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.IOMMUGroup = pci.None },
		},
		{
			"an IOMMU group that cannot be read",
			func(t *testing.T, dir string) {
				remove(t, dir, gpu+"/iommu_group")
				put(t, dir, gpu+"/iommu_group", "3")
			},
			[]string{"readlink /" + gpu + "/iommu_group"},
			func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.IOMMUGroup = pci.Unread },
		},
		{
			"an IOMMU group without number",
			func(t *testing.T, dir string) { relink(t, dir, gpu+"/iommu_group", "../iommu_groups/none") },
			[]string{"/" + gpu + `/iommu_group: "none" is not a group`},
			func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.IOMMUGroup = pci.Unread },
		},
		{
			"a negative IOMMU group",
			func(t *testing.T, dir string) { relink(t, dir, gpu+"/iommu_group", "../iommu_groups/-1") },
			[]string{"/" + gpu + `/iommu_group: "-1" is not a group`},
			func(_ *pci.Inventory, gpu, _ *pci.Function) { gpu.IOMMUGroup = pci.Unread },
		},
		{
			"a physical function without address",
			func(t *testing.T, dir string) { relink(t, dir, vf+"/physfn", "../nobody") },
			[]string{"/" + vf + `/physfn: "nobody" is not a PCI address`},
			alone,
		},
		{
			"a physical function that is not listed",
			func(t *testing.T, dir string) { relink(t, dir, vf+"/physfn", "../0000:19:01.0") },
			[]string{"/" + vf + "/physfn: 0000:19:01.0 is not listed"},
			func(inv *pci.Inventory, gpu, vf *pci.Function) {
				alone(inv, gpu, vf)
				vf.PhysFn = &pci.Address{Bus: 0x19, Device: 1}
			},
		},
		{
			"a physical function that cannot be read",
			func(t *testing.T, dir string) { remove(t, dir, vf+"/physfn"); put(t, dir, vf+"/physfn", "x") },
			[]string{"readlink /" + vf + "/physfn"},
			alone,
		},
		{
			"a physical function that is no longer linked",
			func(t *testing.T, dir string) { remove(t, dir, vf+"/physfn") },
			[]string{"/" + vf + ": it may be a virtual function of 0000:19:00.0, without physfn"},
			alone,
		},
		{
			"no nodes, as without NUMA",
			func(t *testing.T, dir string) { rename(t, dir, nodes, nodes+"-away") },
			nil,
			func(inv *pci.Inventory, _, _ *pci.Function) { inv.NUMANodes = 0 },
		},
		{
			"nodes that cannot be listed",
			func(t *testing.T, dir string) { rename(t, dir, nodes, nodes+"-away"); put(t, dir, nodes, "") },
			[]string{"open /sys/devices/system/node: not a directory"},
			func(inv *pci.Inventory, _, _ *pci.Function) { inv.NUMANodes = pci.None },
		},
		{
			"other entries beside the nodes",
			func(t *testing.T, dir string) {
				for _, name := range []string{"online", "possible", "has_cpu", "node", "nodes", "node-1", "nodex"} {
					put(t, dir, nodes+"/"+name, "0-1\n")
				}
			},
			nil, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, switched)
			want := scan(t, dir, source.What{})
			if tt.change != nil {
				gpu, vf := find(t, &want, "0000:18:00.0"), find(t, &want, "0000:19:00.1")
				tt.change(&want, gpu, vf)
			}
			tt.spoil(t, dir)
			got := scan(t, dir, source.What{})
			wantProblems(t, got.Problems, tt.problems...)
			got.Problems = nil
			for _, inv := range []*pci.Inventory{&want, &got} { // which links are read follows from the places: TestScanCards
				for f := range inv.All() {
					f.Link = nil
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("inventory (-want +got):\n%s", diff)
			}
		})
	}
}

// A scan closes what it opened, whatever it found there.
func TestScanGivesHandlesBack(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	dir := write(t, switched)
	put(t, dir, devices+"0000:18:00.0/numa_node", "")
	remove(t, dir, devices+"0000:18:00.0/modalias")
	tree := open(t, dir)
	before := count()
	if _, err := pci.Scan(tree, family.Known(), everything); err != nil {
		t.Fatal(err)
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}
