package report

import (
	"gdr-features/internal/expect"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
)

// What each command reads of a machine.
var (
	ForLabels = Options{OnlyWithGPU: true}
	ForCheck  = Options{Facts: Facts{PCI: pci.Links, RDMA: forPorts | rdma.PhysicalStates, Advice: true}}
	// ForTopo is for topo, explain and the overview: every fact.
	ForTopo = Options{Facts: Facts{
		PCI: pci.EveryFunction | pci.Capabilities, RDMA: forPorts | rdma.PhysicalStates | rdma.Details, AllSymbols: true, Advice: true,
	}}
	// ForPublishing is for those who publish ports with their rates beside the labels.
	ForPublishing = Options{Facts: Facts{RDMA: forPorts}, OnlyWithGPU: true}
)

// forPorts are the rates of all ports.
const forPorts = rdma.Rates | rdma.SoftwareDevices

// Commands are all of them, the one that reads most first: what a snapshot has to
// hold, so that what is expected of a machine can be compared with it too.
var Commands = [...]Options{ForTopo.Expecting(anything), ForCheck, ForLabels}

// anything expects nothing: it has read what every expectation rests on.
func anything() (*expect.File, error) { return &expect.File{}, nil }

// Expecting gives options that compare with what is expected as well.
func (o Options) Expecting(want func() (*expect.File, error)) Options {
	o.Expect = want
	return o
}
