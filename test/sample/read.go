package sample

import (
	"testing"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/topology/nccl"
	"gdr-features/verdict"
)

// Read reads the devices of a machine below a directory, and makes its matrix by a topology file,
// nil for none. No driver is read, and nothing is judged.
func Read(t testing.TB, dir string, file *nccl.File) *verdict.Node {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	what := source.What{Advice: true, Details: true}
	n := &verdict.Node{Families: family.Known(), PCIRead: true}
	if n.PCI, err = pci.Scan(fs, n.Families, what); err != nil {
		t.Fatal(err)
	}
	n.RDMA = rdma.Scan(t.Context(), fs, &n.PCI, what)
	n.Platform = platform.Read(fs, platform.ReadDMI(fs), &n.PCI, what)
	n.Matrix = topology.Build(topology.Inputs{PCI: &n.PCI, RDMA: &n.RDMA, Platform: n.Platform, File: file})
	return n
}
