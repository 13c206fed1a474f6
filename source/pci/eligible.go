package pci

import "gdr-features/tristate"

// Eligibility says whether a function is a GPU or a NIC that can do GPUDirect RDMA as far as its
// product goes, and otherwise why not, or why that is not known.
type Eligibility uint8

// What is known of a function.
const (
	Neither       Eligibility = iota // no GPU, and no NIC of a family that counts
	Counts                           // it can
	OtherProduct                     // a GPU or NIC of a product that cannot
	NVLinkManager                    // a NIC that manages NVLink switches (Function.NVLinkManagement)
	LeftOut                          // a NIC that the user excludes (Function.Excluded)

	// The others leave open what else is on the machine (Inventory.Unidentified).

	IDsUnread       // some ids cannot be read, and the others allow a GPU or a NIC
	MayBeVirtual    // it may be a virtual function of another one
	MayManageNVLink // a NIC that may be an NVLinkManager
)

// State is Unknown where the reason leaves it open.
func (e Eligibility) State() tristate.State {
	if e >= IDsUnread {
		return tristate.Unknown
	}
	return tristate.Of(e == Counts)
}

// Unidentified reports whether the function may be a GPU or a NIC that counts, or may not.
func (f *Function) Unidentified() bool { return f.Eligible.State() == tristate.Unknown }

// rule says why the function does not count. What leaves that open stays open.
func (f *Function) rule(out Eligibility) {
	if !f.Unidentified() {
		f.Eligible = out
	}
}
