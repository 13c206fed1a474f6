package pci

import (
	"testing"

	"gdr-features/source/family"
	"gdr-features/tristate"
)

// TestEligibility: a function counts, or one reason says why not, and whether that is known. What
// is not known stays so, whatever else is found.
func TestEligibility(t *testing.T) {
	const gpu, nic = 0x030200, 0x020700
	for _, tt := range []struct {
		name  string
		f     Function
		then  func(*Function)
		want  Eligibility
		state tristate.State
	}{
		{"a GPU", Function{Vendor: 0x10de, Device: 0x2330, Class: gpu}, nil, Counts, tristate.True},
		{"a NIC", Function{Vendor: 0x15b3, Device: 0x1021, Class: nic}, nil, Counts, tristate.True},
		{"a GeForce", Function{Vendor: 0x10de, Device: 0x2684, Class: gpu}, nil, OtherProduct, tristate.False},
		{"a bridge", Function{Vendor: 0x1000, Device: 0xc030, Class: 0x060400}, nil, Neither, tristate.False},
		{"a manager of NVLink", Function{Vendor: 0x15b3, Device: 0x1021, Class: nic, NVLinkManagement: true}, nil, NVLinkManager, tristate.False},
		{"excluded", Function{Vendor: 0x15b3, Device: 0x1021, Class: nic}, func(f *Function) { f.rule(LeftOut) }, LeftOut, tristate.False},
		{"ids not read", Function{Eligible: IDsUnread}, nil, IDsUnread, tristate.Unknown},
		{"perhaps virtual", Function{Vendor: 0x15b3, Device: 0x1021, Class: nic, Eligible: MayBeVirtual}, nil, MayBeVirtual, tristate.Unknown},
		{"perhaps virtual, excluded", Function{Vendor: 0x15b3, Device: 0x1021, Class: nic, Eligible: MayBeVirtual}, func(f *Function) { f.rule(LeftOut) }, MayBeVirtual, tristate.Unknown},
		{"perhaps a manager of NVLink", Function{Vendor: 0x15b3, Device: 0x1021, Class: nic, Eligible: MayManageNVLink}, nil, MayManageNVLink, tristate.Unknown},
	} {
		f := tt.f
		f.Classify(family.Known())
		if tt.then != nil {
			tt.then(&f)
		}
		if f.Eligible != tt.want || f.Eligible.State() != tt.state || f.Unidentified() != (tt.state == tristate.Unknown) {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, f.Eligible, f.Eligible.State(), tt.want, tt.state)
		}
		if counts := f.GPUEligible() || f.NICEligible(); counts != (tt.want == Counts) {
			t.Errorf("%s: counts %v", tt.name, counts)
		}
	}
}
