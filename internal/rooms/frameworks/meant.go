package frameworks

import (
	"slices"

	"gdr-features/internal/rooms/assign"
)

// meant are the NICs near a GPU that a list of NICs means to have: those of its link layer, where it has
// one, without those that its owner may keep for the node's own traffic: the card of the default route,
// and DPUs beside other NICs.
func (j *judge) meant(c assign.Choice, list []*assign.NIC) []*assign.NIC {
	near := c.Near
	if len(list) > 0 && !slices.ContainsFunc(list, func(n *assign.NIC) bool { return n.LinkLayer != list[0].LinkLayer }) {
		near = j.NearInLayer(c, list[0].LinkLayer)
	}
	dpus := slices.ContainsFunc(list, j.DPU)
	return slices.DeleteFunc(slices.Clone(near), func(n *assign.NIC) bool {
		return !j.has(list, n) && (j.CarriesDefaultRoute(n) || !dpus && j.DPU(n))
	})
}
