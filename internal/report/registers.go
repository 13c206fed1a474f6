package report

import (
	"context"
	"slices"

	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// readACS reads the ACS of the bridges between GPUs and their nearest NICs, and of all above a GPU
// that shares memory with its CPU.
func readACS(_ context.Context, m *known) (map[pci.Address]*pci.ACS, error) {
	read := map[pci.Address]*pci.ACS{}
	for _, gpu := range m.Matrix.GPUs {
		bridges := gpu.Between()
		if gpu.Coherent() {
			bridges = append(bridges, gpu.Bridges...)
		}
		for _, bridge := range bridges {
			if _, done := read[bridge]; gpu.Counts() && !done {
				read[bridge] = pci.ReadACS(m.fs, bridge)
			}
		}
	}
	return read, nil
}

// readATS reads the ATS of the NICs that it matters for.
func readATS(_ context.Context, m *known) (map[pci.Address]tristate.State, error) {
	var nics []pci.Address
	for _, of := range m.EmulatedPairs() {
		nics = append(nics, m.Matrix.NICs[of.NIC].Function.Address)
	}
	slices.SortFunc(nics, pci.Address.Compare)
	read := map[pci.Address]tristate.State{}
	for _, nic := range slices.Compact(nics) {
		read[nic] = pci.ReadATS(m.fs, nic)
	}
	return read, nil
}
