package verdict_test

import (
	"testing"

	"gdr-features/source/kmod"
	"gdr-features/test/sample"
	"gdr-features/tristate"
)

// TestParams: the parameters of NVIDIA's driver say whether it gives GPU memory to NICs. A file
// that cannot be read leaves open what one that is missing does not.
func TestParams(t *testing.T) {
	const missing, unread = "missing", "unread" // in place of a value
	for _, tt := range []struct {
		version, override string
		own               tristate.State // of an H100
		apart             tristate.State // of a GB300 with EFA, in two IOMMU groups
		together          tristate.State // the same in one group
	}{
		{"570.86.15", missing, yes, yes, yes},
		{"570.86.15", unread, yes, unknown, yes},
		{"570.86.15", "2", yes, yes, yes},
		{"580.65.06", missing, yes, yes, yes},
		{"580.65.06", unread, unknown, unknown, unknown},
		{"580.65.06", "0", yes, no, yes},
		{"580.65.06", "1", yes, yes, yes},
		{"580.65.06", "2", no, no, no},
		{"595.45.04", missing, yes, no, yes},
		{"595.45.04", unread, unknown, no, yes},
		{"595.45.04", "0", yes, no, yes},
		{"595.45.04", "2", no, no, yes},
		{"595.91.07", "", yes, no, yes},
		{"", missing, yes, unknown, unknown},
		{"", unread, unknown, unknown, unknown},
	} {
		node := func(gpu, nic uint16) *sample.Node {
			n := sample.Ready()
			n.GPU().Device, n.NIC().Device = gpu, nic
			n.Kmod.Drivers["nvidia"] = kmod.Driver{Loaded: yes, Open: yes, Version: tt.version}
			switch tt.override {
			case missing:
			case unread:
				n.Kmod.ParamsUnread = true
			case "":
				n.Kmod.Params = kmod.Params{"EnableMSI": "1"}
			default:
				n.Kmod.Params = kmod.Params{kmod.TopoOverride: tt.override}
			}
			return n
		}
		if got := node(0x2330, 0x1021).Judge().Judged().Verdict.OwnMemory; got != tt.own {
			t.Errorf("%s, %s: memory of its own %v, want %v", tt.version, tt.override, got, tt.own)
		}
		for group, want := range map[int]tristate.State{3: tt.apart, 4: tt.together} {
			n := node(0x31c2, 0xefa3)
			n.NIC().Vendor, n.NIC().Class, n.NIC().Driver = 0x1d0f, 0x020000, "efa"
			n.GPU().IOMMUGroup, n.NIC().IOMMUGroup = 4, group
			p := n.Judge().Judged()
			if got := p.Verdict.SomeMapped; got != want || p.NIC.Name != "efa" {
				t.Errorf("%s, %s, groups 4 and %d of %s: %v, want %v", tt.version, tt.override, group, p.NIC.Name, got, want)
			}
		}
	}
}
