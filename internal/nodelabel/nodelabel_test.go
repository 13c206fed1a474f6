package nodelabel

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/expect"
	"gdr-features/internal/label"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

func TestLabels(t *testing.T) {
	families := family.Known()
	gpu := []topology.GPU{{Function: &pci.Function{GPU: families.GPUs[0]}}}
	eligible := []topology.GPU{{Function: &pci.Function{GPU: families.GPUs[0], Eligible: pci.Counts}}}
	instinct := []topology.GPU{{Function: &pci.Function{GPU: families.GPUs[1]}}}
	all := slices.Collect(maps.Keys(All(family.Known())))
	unreadable := verdict.Verdict{Reason: verdict.Unreadable, Peermem: tristate.False}
	unreadable.Undecided.ConnectX, unreadable.Undecided.Rate, unreadable.Undecided.Link, unreadable.Undecided.IOMMU, unreadable.Undecided.ACS = true, true, true, true, true
	noMOFED := kmod.State{}
	noMOFED.MOFED.Origin = kmod.OriginNotLoaded
	inventory := pci.Inventory{Functions: []pci.Function{{NIC: families.NICs[0], Eligible: pci.Counts, RootBus: "pci0000:80", Top: "pci0000:80"}}}
	everything := topology.Matrix{
		GPUs: []topology.GPU{{Function: &pci.Function{GPU: families.GPUs[0], Eligible: pci.Counts, RootBus: "pci0000:00", Top: "pci0000:00"}}},
		NICs: []topology.NIC{
			{Function: &pci.Function{NIC: families.NICs[0], Eligible: pci.Counts}},
			{Function: &pci.Function{NIC: families.NICs[1]}},
			{},
		},
		Complete: true, EligibleGPUs: 8, EligibleNICs: 10, Best: topology.PIX,
		Hardware: topology.Reach{Level: topology.NODE, NCCLDefault: tristate.False}, Origin: topology.Physical, DataDirect: true,
	}
	allTrue := verdict.Verdict{
		Capable: tristate.True, ConnectX: tristate.False, Ready: tristate.False, Reason: verdict.NoActivePort, Peermem: tristate.True, DMABuf: tristate.False,
		Link: "infiniband", Rate: new(400), IOMMU: "passthrough", ACS: "clear",
	}
	allTrue.Degraded = tristate.False
	software := kmod.State{Storage: tristate.False}
	software.MOFED = kmod.MOFED{Origin: kmod.OriginMOFED, Version: "24.10-1.1.4.0 (OFED)"}
	software.Symbols = kmod.Symbols{kmod.PeerMemoryAPI: {Found: tristate.False}}
	tests := []struct {
		name     string
		node     verdict.Node
		expected *expect.Result
		want     label.Set
		unknown  []string
	}{
		{"no GPU", verdict.Node{PCIRead: true, Matrix: topology.Matrix{Complete: true, Hardware: topology.Reach{Level: topology.PIX}}, Verdict: allTrue, Kmod: software}, nil, label.Set{}, nil},
		{
			"a GPU of AMD",
			verdict.Node{PCIRead: true, Matrix: topology.Matrix{Complete: true, GPUs: instinct}, Verdict: verdict.Verdict{Capable: tristate.True, Ready: tristate.True, Peermem: tristate.True, DMABuf: tristate.True}, Kmod: software},
			nil,
			label.Set{
				label.Capable: "true", label.GPUs: "0", label.NICs: "0", label.Ready: "true", label.Peermem: "true", label.DMABuf: "true",
				label.PeerDirect: "none", label.MOFED: "24.10-1.1.4.0__OFED",
			},
			[]string{label.Topology},
		},
		{"no bus", verdict.Node{Matrix: topology.Matrix{}, Verdict: verdict.Verdict{}, Kmod: kmod.State{}}, nil, label.Set{}, all},
		{"a function that may be a GPU", verdict.Node{PCIRead: true, Matrix: topology.Matrix{}, Verdict: verdict.Verdict{}, Kmod: kmod.State{}}, nil, label.Set{}, all},
		{
			"nothing known but a GPU",
			verdict.Node{PCIRead: true, Matrix: topology.Matrix{GPUs: gpu}, Verdict: verdict.Verdict{}, Kmod: kmod.State{}},
			&expect.Result{},
			label.Set{},
			without(all, label.ConnectX, label.Rate, label.Link, label.IOMMU, label.ACS), // of these the verdict tells whether they are unknown
		},
		{"everything known", verdict.Node{PCIRead: true, Matrix: everything, Verdict: allTrue, Kmod: software}, &expect.Result{State: tristate.False}, label.Set{
			label.Capable: "true", label.ConnectX: "false", "gdr.gpu.nvidia": "true", "gdr.nic.mlx5": "true", label.Level: "NODE", label.BestLevel: "PIX", label.NCCLDefault: "false", label.GPUs: "8", label.NICs: "10",
			label.Topology: "physical", label.DataDirect: "true", label.Align: "numaNode",
			label.Ready: "false", label.Reason: "NoActivePort", label.Peermem: "true", label.DMABuf: "false", label.PeerDirect: "none",
			label.MOFED: "24.10-1.1.4.0__OFED", label.Rate: "400", label.Link: "infiniband", label.IOMMU: "passthrough", label.ACS: "clear", label.Storage: "false",
			label.Expected: "false", label.Degraded: "false",
		}, nil},
		{
			"counted, and none is eligible",
			verdict.Node{PCIRead: true, Matrix: topology.Matrix{GPUs: gpu, Complete: true, Origin: topology.Virtual}, Verdict: allTrue, Kmod: software},
			nil,
			label.Set{
				label.Capable: "true", label.ConnectX: "false", label.GPUs: "0", label.NICs: "0", label.Topology: "virtual",
				label.Ready: "false", label.Reason: "NoActivePort", label.Peermem: "true", label.DMABuf: "false", label.PeerDirect: "none",
				label.MOFED: "24.10-1.1.4.0__OFED", label.Rate: "400", label.Link: "infiniband", label.IOMMU: "passthrough", label.ACS: "clear", label.Storage: "false",
			},
			nil,
		},
		{
			"counted, and no level is known",
			verdict.Node{PCIRead: true, Matrix: topology.Matrix{GPUs: eligible, Complete: true, EligibleGPUs: 1, EligibleNICs: 1}, Verdict: unreadable, Kmod: noMOFED},
			&expect.Result{NoType: true},
			label.Set{"gdr.gpu.nvidia": "true", label.GPUs: "1", label.NICs: "1", label.Reason: "Unreadable", label.Peermem: "false"},
			[]string{
				label.Capable, label.ConnectX, label.Level, label.BestLevel, label.NCCLDefault, label.Topology, label.Align, label.Ready, label.Reason,
				label.DMABuf, label.PeerDirect, label.Rate, label.Link, label.IOMMU, label.ACS, label.Storage,
				label.Degraded,
			},
		},
	}
	for _, tt := range tests {
		tt.node.Families, tt.node.PCI = families, inventory
		labels, unknown := Of(&tt.node, tt.expected)
		if diff := cmp.Diff(tt.want, labels); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(tt.unknown)), slices.Sorted(maps.Keys(unknown))); diff != "" {
			t.Errorf("%s: unknown (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestKept: a published label is kept where its fact could not be read, and not where what was read
// leaves the answer open.
func TestKept(t *testing.T) {
	families := family.Known()
	gpu := []topology.GPU{{Function: &pci.Function{GPU: families.GPUs[0], Eligible: pci.Counts}}}
	states := []string{label.Capable, label.Ready, label.Reason, label.Degraded}
	for _, tt := range []struct {
		reason         verdict.Reason
		capable        tristate.State
		complete, pair bool
		want           []string // of states
	}{
		{verdict.Unreadable, tristate.Unknown, true, true, states},
		{verdict.Unreadable, tristate.Unknown, true, false, states[:3]},
		{verdict.Unreadable, tristate.True, true, true, states[1:]},
		{verdict.Unreadable, tristate.False, true, true, states[1:3]}, // nothing to be slow
		{verdict.NICNotJudged, tristate.Unknown, true, false, nil},
		{verdict.NICNotJudged, tristate.Unknown, false, false, states},
		{verdict.SMMUPassthrough, tristate.True, true, true, states[3:]},
		{verdict.EmulatedSwitch, tristate.True, true, true, states[3:]},
		{verdict.ConfidentialGuest, tristate.True, true, true, states[3:]},
	} {
		node := verdict.Node{PCIRead: true, Families: families, Matrix: topology.Matrix{GPUs: gpu, Complete: tt.complete, EligibleGPUs: 1}}
		if tt.pair {
			node.Matrix.EligibleNICs = 1
		}
		node.Verdict.Capable, node.Verdict.Reason = tt.capable, tt.reason
		labels, unknown := Of(&node, nil)
		var got []string
		for _, name := range states {
			if unknown[name] {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || labels[label.Reason] != string(tt.reason) || labels[label.Ready] != "" {
			t.Errorf("%+v: %v, kept (-want +got):\n%s", tt, labels, diff)
		}
	}
}

// TestFamilyKept: a family that was found needs no keeping, and any other may be what could not be
// identified. Nothing is taken away where the PCI bus could not be read.
func TestFamilyKept(t *testing.T) {
	families := family.Known()
	gpu := []topology.GPU{{Function: &pci.Function{GPU: families.GPUs[0], Eligible: pci.Counts}}}
	node := verdict.Node{PCIRead: true, Families: families, Matrix: topology.Matrix{GPUs: gpu}}
	labels, unknown := Of(&node, nil)
	if name := "gdr.gpu." + families.GPUs[0].Name; labels[name] != "true" || unknown[name] {
		t.Errorf("%s is %q, kept %v", name, labels[name], unknown[name])
	}
	if name := "gdr.gpu." + families.GPUs[1].Name; labels[name] != "" || !unknown[name] {
		t.Errorf("%s is %q, kept %v", name, labels[name], unknown[name])
	}
	node = verdict.Node{Families: families, Matrix: topology.Matrix{Complete: true}}
	if _, unknown = Of(&node, nil); len(unknown) != len(All(families)) {
		t.Errorf("%d labels are kept without a PCI bus, of %d", len(unknown), len(All(families)))
	}
}

// TestNoPair: what is said of pairs is kept where there may be one, and gone where GPUs or NICs
// are known to be missing.
func TestNoPair(t *testing.T) {
	families := family.Known()
	ofPairs := []string{label.Level, label.BestLevel, label.NCCLDefault, label.DMABuf}
	gpu := []topology.GPU{{Function: &pci.Function{GPU: families.GPUs[0], Eligible: pci.Counts}}}
	for _, tt := range []struct {
		complete   bool
		gpus, nics int
		kept       bool
	}{
		{true, 1, 1, true},
		{true, 1, 0, false},
		{true, 0, 1, false},
		{true, 0, 0, false},
		{false, 1, 0, true},
		{false, 0, 1, true},
		{false, 0, 0, true},
	} {
		node := verdict.Node{PCIRead: true, Families: families, Matrix: topology.Matrix{GPUs: gpu, Complete: tt.complete, EligibleGPUs: tt.gpus, EligibleNICs: tt.nics}}
		_, unknown := Of(&node, nil)
		for _, name := range ofPairs {
			if unknown[name] != tt.kept {
				t.Errorf("%+v: %s is kept: %v", tt, name, !tt.kept)
			}
		}
	}
}

// TestRows: the labels are published, and other programs select nodes by them.
func TestRows(t *testing.T) {
	want := map[bool][]string{ // by being about the hardware
		true: {
			"gpudirect.rdma.capable", "gpudirect.rdma.connectx", "gdr.gpu.", "gdr.nic.", "gdr.level", "gdr.level.best", "gdr.nccl-default", "gdr.gpus", "gdr.nics",
			"gdr.topology", "gdr.datadirect", "gdr.align",
		},
		false: {
			"gpudirect.rdma", "gdr.reason", "gdr.peermem", "gdr.dmabuf", "gdr.peerdirect", "gdr.mofed", "gdr.rate", "gdr.link",
			"gdr.iommu", "gdr.acs", "gpudirect.storage", "gdr.expected", "gdr.degraded",
		},
	}
	got := map[bool][]string{}
	for _, row := range rows {
		got[row.hardware] = append(got[row.hardware], row.name)
		if Hardware(row.name) != row.hardware || !label.Ours(row.name) {
			t.Errorf("%s: about the hardware %v, one of ours %v", row.name, Hardware(row.name), label.Ours(row.name))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	for _, name := range []string{"gdr.gpu.nvidia", "gdr.nic.mlx5", "gdr.nic.of-another-version"} {
		if !Hardware(name) {
			t.Errorf("%q is not about the hardware", name)
		}
	}
	all := All(family.Table{NICs: []*family.NIC{{Name: "one"}, {Name: "two"}}})
	for _, name := range []string{"gdr.nic.one", "gdr.nic.two"} {
		if !all[name] {
			t.Errorf("%q is not among %v", name, all)
		}
	}
	if len(all) != len(rows) { // two rows for families, and no family of GPUs
		t.Errorf("%d rows, names %v", len(rows), all)
	}
	for _, name := range []string{"", "gdr", "gdr.gpus ", label.DefaultPrefix + "gdr.gpus"} {
		if Hardware(name) {
			t.Errorf("%q is about the hardware", name)
		}
	}
}

// TestReadme: the README has every label.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("\n## Labels\n"))
	text, _, _ = bytes.Cut(text, []byte("\n## "))
	want, got := []string{}, []string{}
	for _, row := range rows {
		want = append(want, row.name)
	}
	for _, line := range regexp.MustCompile("(?m)^\\| `g.*$").FindAllString(string(text), -1) {
		for _, name := range regexp.MustCompile("`([a-z.-]+)(?:<family>)?`").FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			got = append(got, name[1])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels (-rows +README):\n%s", diff)
	}
}

func without(names []string, left ...string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(left, name) })
}

func TestMOFED(t *testing.T) {
	for want, mofed := range map[string]kmod.MOFED{
		"24.10-1.1.4": {Origin: kmod.OriginMOFED, Version: "24.10-1.1.4"},
		"inbox":       {Origin: kmod.OriginInbox},
		"":            {Origin: kmod.OriginUnknown},
	} {
		if got := MOFED(mofed); got != want {
			t.Errorf("%+v: %q, want %q", mofed, got, want)
		}
	}
	for _, mofed := range []kmod.MOFED{{Origin: kmod.OriginMOFED}, {Origin: kmod.OriginNotLoaded}} {
		if got := MOFED(mofed); got != "" {
			t.Errorf("%+v: %q, want none", mofed, got)
		}
	}
}
