package report

import (
	"context"
	"slices"

	"gdr-features/source/pci"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// readACS reads the ACS of the bridges between GPUs and their nearest NICs, and of all above a GPU
// that shares memory with its CPU; then ATS of the NICs that it matters for.
func (rd *Reader) readACS(ctx context.Context, node *verdict.Node) {
	fs, gpus := rd.fs, node.Matrix.GPUs
	_ = rd.acs.start("ACS registers", func() (map[pci.Address]*pci.ACS, error) {
		read := map[pci.Address]*pci.ACS{}
		for _, gpu := range gpus {
			bridges := gpu.Between()
			if gpu.Coherent() {
				bridges = append(bridges, gpu.Bridges...)
			}
			for _, bridge := range bridges {
				if _, done := read[bridge]; gpu.Counts() && !done {
					read[bridge] = pci.ReadACS(fs, bridge)
				}
			}
		}
		return read, nil
	})(ctx)
	var nics []pci.Address
	for _, of := range node.EmulatedPairs() {
		nics = append(nics, node.Matrix.NICs[of.NIC].Function.Address)
	}
	slices.SortFunc(nics, pci.Address.Compare)
	nics = slices.Compact(nics)
	_ = rd.ats.start("ATS registers", func() (map[pci.Address]tristate.State, error) {
		read := map[pci.Address]tristate.State{}
		for _, nic := range nics {
			read[nic] = pci.ReadATS(fs, nic)
		}
		return read, nil
	})(ctx)
}
