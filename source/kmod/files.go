package kmod

import "gdr-features/host"

// Fact names what some files are read for.
type Fact string

// Facts, by the fields of State and Advice that hold them.
const (
	FactDriver        Fact = "driver"         // Drivers
	FactParams        Fact = "params"         // Params
	FactPeermem       Fact = "peermem"        // Peers: those that decide, which package verdict names
	FactKernelOptions Fact = "kernel-options" // KernelOptions
	FactStorage       Fact = "storage"        // Storage
	FactStack         Fact = "stack"          // MOFED
	FactSymbols       Fact = "symbols"        // Symbols
	FactIOMMU         Fact = "iommu"          // platform.IOMMU, which keeps them
	FactModuleFile    Fact = "module-file"    // Advice.File
	FactPeermemModule Fact = "peermem-module" // Advice.Peermem
	FactNCCLClient    Fact = "nccl-client"    // Advice.NCCLClient
	FactNICVersion    Fact = "nic-version"    // Advice.NICVersions
	FactVerbsABI      Fact = "verbs-abi"      // Advice.VerbsABI
	FactHolders       Fact = "holders"        // Advice.Holders
	FactGDRCopy       Fact = "gdrcopy"        // Advice.GDRCopy
	FactGPUOperator   Fact = "gpu-operator"   // Advice.Operators.GPU
	FactMOFEDReady    Fact = "mofed-ready"    // Advice.Operators.MOFEDReady
	FactDriverReady   Fact = "driver-ready"   // Advice.Operators.DriverReady, RDMA
)

// files are the files of a machine. They note what is asked for, and for which fact.
type files struct {
	*host.FS
	fact Fact
	read map[Fact][]string
}

func (f *files) note(name string) {
	if f.fact != "" {
		f.read[f.fact] = append(f.read[f.fact], "/"+name)
	}
}

// Line notes a file and reads it as host.FS does; so do the others.
func (f *files) Line(name string) (string, error) { f.note(name); return f.FS.Line(name) }

func (f *files) Bytes(name string, limit int) ([]byte, error) {
	f.note(name)
	return f.FS.Bytes(name, limit)
}

func (f *files) Exists(name string) (bool, error) { f.note(name); return f.FS.Exists(name) }

func (f *files) Names(name string) ([]string, error) { f.note(name); return f.FS.Names(name) }

func (f *files) Open(name string) (host.File, error) { f.note(name); return f.FS.Open(name) }

// about says what the files that are read next are read for.
func (s *scanner) about(fact Fact) *scanner {
	s.fs.fact = fact
	return s
}
