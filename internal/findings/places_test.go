package findings_test

import (
	"strings"
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/source/pci"
	"gdr-features/test/sample"
	"gdr-features/tristate"
)

// TestUnknownLevel: where the firmware gives no NUMA node, the functions without one are named; where
// a place could not be read, the firmware is not blamed.
func TestUnknownLevel(t *testing.T) {
	const firmware = "_PXM"
	n := sample.Ready()
	n.PCI.NUMANodes = 2
	n.GPU().NearNUMA = pci.None
	n.NIC().RootBus, n.NIC().Top, n.NIC().Bridges = "pci0000:40", "pci0000:40", nil
	f := findingOf(t, n, "level")
	if fixes := strings.Join(f.Fix, " "); f.Status != finding.StatusUnknown || !strings.Contains(fixes, firmware) {
		t.Errorf("%v %s: %s, fixes %q", f.Status, f.Code, f.Detail, fixes)
	}
	if seen := strings.Join(f.Evidence, " "); !strings.Contains(seen, "0000:10:00.0") || strings.Contains(seen, "0000:20:00.0") {
		t.Errorf("without a NUMA node is the GPU alone: %s", seen)
	}

	n = sample.Ready()
	n.NIC().RootBus, n.NIC().Top, n.NIC().Bridges = "", "", nil
	f = findingOf(t, n, "level")
	if fixes := strings.Join(f.Fix, " "); f.Status != finding.StatusUnknown || strings.Contains(fixes, firmware) {
		t.Errorf("a place that was not read: %v %s: %s, fixes %q", f.Status, f.Code, f.Detail, fixes)
	}
}

// TestFarNIC: the NIC is named as topo names it.
func TestFarNIC(t *testing.T) {
	n := sample.Ready()
	n.NIC().RootBus, n.NIC().Top, n.NIC().Bridges = "pci0000:40", "pci0000:40", nil
	if f := findingOf(t, n, "level"); f.Status != finding.StatusWarn || !strings.Contains(f.Detail, "GPU0 mlx5_0") {
		t.Errorf("%v %s: %s", f.Status, f.Code, f.Detail)
	}
}

// TestIOMMUOfGrace: Grace needs translation on an older kernel, or beside an ACS redirect. That is
// said where the IOMMU does translate, and nowhere else.
func TestIOMMUOfGrace(t *testing.T) {
	const older, newer = "6.8.0-1010-generic", "6.14.0-1005-generic"
	for _, tt := range []struct {
		name, kernel, group string
		redirect            bool
		status              finding.Status
		detail              string
	}{
		{"an older kernel", older, "DMA", false, finding.StatusOK, "translated, as this platform needs it"},
		{"an older kernel, unread", older, "", true, finding.StatusUnknown, "cannot be read"},
		{"a redirect", newer, "DMA-FQ", true, finding.StatusOK, "translated, beside the ACS redirect"},
		{"a redirect, and identity", newer, "identity", true, finding.StatusOK, "passthrough"},
		{"neither", newer, "DMA", false, finding.StatusWarn, "through the root complex"},
	} {
		n := sample.Ready()
		n.GPU().Device = 0x2941 // of a GB200
		n.Platform.CPU.Arch, n.Platform.Kernel = "arm64", tt.kernel
		n.Platform.IOMMU.Groups = tristate.True
		n.GPU().IOMMUGroup, n.NIC().IOMMUGroup = 1, 2
		n.Platform.IOMMU.Types = map[int]string{1: tt.group, 2: tt.group}
		n.ACS = map[pci.Address]*pci.ACS{}
		for _, bridge := range append(n.GPU().Bridges, n.NIC().Bridges...) {
			n.ACS[bridge] = &pci.ACS{Present: true}
			if tt.redirect {
				n.ACS[bridge].Control = 0x001d
			}
		}
		if f := findingOf(t, n, "iommu"); f.Status != tt.status || !strings.Contains(f.Detail, tt.detail) {
			t.Errorf("%s: %v %s: %s; want %v, %s", tt.name, f.Status, f.Code, f.Detail, tt.status, tt.detail)
		}
	}
}

// TestACSCrossing: of the bridges that redirect, those that traffic crosses in a switch are named, and
// not the one below them, where it goes up anyway.
func TestACSCrossing(t *testing.T) {
	n := sample.Ready()
	crossing, below := n.GPU().Bridges[2], pci.Address{Bus: 3}
	n.GPU().Bridges = append(n.GPU().Bridges, below)
	n.ACS = map[pci.Address]*pci.ACS{}
	for _, bridge := range append(n.GPU().Bridges, n.NIC().Bridges...) {
		n.ACS[bridge] = &pci.ACS{Present: true, Control: 0x001d}
	}
	f := findingOf(t, n, "acs")
	if f.Code != "ACSRedirect" || !strings.Contains(f.Detail, crossing.String()) || strings.Contains(f.Detail, below.String()) {
		t.Errorf("%+v", f)
	}
}

// TestACSUnknown: why ACS is unknown: the bridges are the hypervisor's, they cannot be read, or
// there are none.
func TestACSUnknown(t *testing.T) {
	for want, change := range map[string]func(n *sample.Node, bridge *pci.Function){
		"emulated": func(n *sample.Node, bridge *pci.Function) {
			bridge.Vendor, bridge.Device = 0x104c, 0x8232
			n.ACS[bridge.Address] = &pci.ACS{Present: true}
		},
		"cannot be read": func(_ *sample.Node, bridge *pci.Function) { bridge.Vendor, bridge.Device = 0x1000, 0xc030 },
		"no bridge": func(n *sample.Node, _ *pci.Function) {
			n.GPU().Bridges, n.NIC().Bridges = nil, nil
		},
	} {
		n := sample.Ready()
		n.Platform.Virtual, n.ACS = tristate.True, map[pci.Address]*pci.ACS{}
		var bridges []pci.Function
		for _, at := range append(n.GPU().Bridges, n.NIC().Bridges[len(n.NIC().Bridges)-1]) {
			bridge := pci.Function{Address: at, Class: 0x060400, IDFile: pci.ModaliasFile}
			change(n, &bridge)
			bridges = append(bridges, bridge)
		}
		n.PCI.Functions = append(n.PCI.Functions, bridges...)
		if f := findingOf(t, n, "acs"); f.Status != finding.StatusUnknown || !strings.Contains(f.Detail, want) {
			t.Errorf("%v %s: %s, want %s", f.Status, f.Code, f.Detail, want)
		}
	}
}
