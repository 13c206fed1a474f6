package topology

import (
	"errors"

	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/topology/nccl"
)

// ErrFromFile says that the levels already come from an NCCL topology file, so none
// is written from the PCI tree.
var ErrFromFile = errors.New("the levels already come from an NCCL topology file")

// WriteFile returns the machine as an NCCL topology file; see nccl.Machine.Write. The error may
// also be ErrFromFile.
func (m *Matrix) WriteFile(inv *pci.Inventory, cpu platform.CPU) ([]byte, error) {
	if m.Origin == FromFile && m.FileRefused == nil {
		return nil, ErrFromFile
	}
	machine := nccl.Machine{PCI: inv, GPUs: m.gpuFunctions(), CPU: cpu, Virtual: m.Origin == Virtual}
	var nics []nccl.NIC
	for i := range m.NICs {
		n := nccl.NIC{Function: m.NICs[i].Function, Name: m.NICs[i].Name()}
		if rdma := m.NICs[i].RDMA; rdma != nil {
			n.Ports = len(rdma.Ports)
		}
		if n.Function != nil {
			nics = append(nics, n)
		}
	}
	return machine.Write(nics)
}
