package topology

import (
	"errors"
	"fmt"

	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/topology/nccl"
)

// ErrFromFile says that the levels already come from an NCCL topology file, so none
// is written from the PCI tree.
var ErrFromFile = errors.New("the levels already come from an NCCL topology file")

// WriteFile returns the machine as an NCCL topology file; see nccl.Writer. The error is
// ErrFromFile, or says that there is nothing to write or more than NCCL accepts.
func (m *Matrix) WriteFile(inv *pci.Inventory, cpu kmod.Processor) ([]byte, error) {
	if m.Origin == FromFile && m.FileRefused == nil {
		return nil, ErrFromFile
	}
	w := nccl.Writer{Machine: nccl.Machine{PCI: inv, CPU: cpu, Virtual: m.Origin == Virtual}}
	for i := range m.GPUs {
		w.AddGPU(m.GPUs[i].Function, fmt.Sprintf("GPU%d", i))
	}
	for i := range m.NICs {
		n := &m.NICs[i]
		ports := 0
		if n.RDMA != nil {
			ports = len(n.RDMA.Ports)
		}
		if n.Function != nil {
			w.AddNIC(n.Function, n.Name(), ports)
		}
	}
	return w.Write()
}
