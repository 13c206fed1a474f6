package platform

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// gpusIn are GPUs in some groups.
func gpusIn(groups ...int) *pci.Inventory {
	var functions pci.Inventory
	for _, group := range groups {
		f := pci.Function{Vendor: 0x10de, Device: 0x2330, Class: 0x030200, IOMMUGroup: group}
		f.Classify(family.Known())
		functions.Functions = append(functions.Functions, f)
	}
	return &functions
}

// TestGroups: a kernel without the types of groups is one problem.
func TestGroups(t *testing.T) {
	const groups = "sys/kernel/iommu_groups/"
	st := readIOMMU(tree(t, map[string]string{
		groups + "0/type": "identity\n", groups + "7/type": "DMA-FQ\n", groups + "8/type": "", groups + "9": isDir, groups + "11/type": "DMA\n",
	}), gpusIn(7, 0, 7, 8, 8, 9, 10), false)
	want := map[int]string{0: "identity", 7: "DMA-FQ", 8: "", 9: "", 10: ""}
	if diff := cmp.Diff(want, st.Types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	wantProblems(t, st.Problems, "read /"+groups+"8/type: file is empty",
		"open /"+groups+"9/type: no such file")
	if diff := cmp.Diff([]string{GroupFile(7), GroupFile(0), GroupFile(8), GroupFile(9), GroupFile(10)}, st.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if got := scan(t, nil, &pci.Inventory{}, source.What{}).IOMMU.Types; got == nil || len(got) != 0 {
		t.Errorf("nothing asked for: %v, want an empty map", got)
	}
}

// Whether the kernel has IOMMU groups is known only where its list of them was read.
func TestIOMMU(t *testing.T) {
	const groups, units = "sys/kernel/iommu_groups", "sys/class/iommu"
	for _, tt := range []struct {
		name    string
		files   map[string]string
		want    tristate.State
		problem string
	}{
		{"no group, no class", map[string]string{groups: isDir}, tristate.False, ""},
		{"no group, no IOMMU", map[string]string{groups: isDir, units: isDir}, tristate.False, ""},
		{"some group", map[string]string{groups + "/0/type": "DMA\n"}, tristate.True, ""},
		{"no /sys/kernel", nil, tristate.Unknown, "open /" + groups + ": no such file"},
		{"an empty /sys/kernel", map[string]string{"sys/kernel": isDir}, tristate.Unknown, "open /" + groups + ": no such file"},
		{"a kernel without IOMMU groups", map[string]string{"sys/kernel/mm": isDir}, tristate.False, ""},
		{"an unreadable list", map[string]string{groups: isLoop}, tristate.Unknown, "open /" + groups + ": too many levels"},
		{"no group, and an IOMMU", map[string]string{groups: isDir, units + "/dmar0/intel-iommu/version": "1:0\n"}, tristate.Unknown, "/" + units + " has dmar0, and /" + groups + " is empty"},
		{"no group, and an unreadable class", map[string]string{groups: isDir, units: isLoop}, tristate.Unknown, "open /" + units + ": too many levels"},
	} {
		st := readIOMMU(tree(t, tt.files), gpusIn(pci.None), false)
		if st.Groups != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, st.Groups, tt.want)
		}
		var problems []string
		if tt.problem != "" {
			problems = []string{tt.problem}
		}
		wantProblems(t, st.Problems, problems...)
	}
	if st := scan(t, map[string]string{groups + "/3/type": "DMA\n"}, gpusIn(3), source.What{}); st.IOMMU.Groups != tristate.True {
		t.Errorf("a device is in a group: %v", st.IOMMU)
	}
	if st := scan(t, map[string]string{groups: isDir}, gpusIn(pci.None), source.What{}); st.IOMMU.Groups != tristate.False {
		t.Errorf("a device is in no group: %v", st.IOMMU)
	}
	if st := scan(t, map[string]string{groups: isDir}, &pci.Inventory{}, source.What{}); st.IOMMU.Groups != tristate.Unknown {
		t.Errorf("no GPU and no NIC: %v", st.IOMMU)
	}
	if st := scan(t, map[string]string{groups + "/3/type": "DMA\n"}, gpusIn(3), source.What{Everything: true}); st.IOMMU.Groups != tristate.True || !slices.Contains(st.IOMMU.Files, Groups) {
		t.Errorf("for a snapshot: %+v", st.IOMMU)
	}
}
