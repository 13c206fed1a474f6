package kmod

import (
	"gdr-features/host"
	"gdr-features/source"
)

// Fact is source.Fact.
type Fact = source.Fact

// Facts, by the fields of State and Advice that hold them.
const (
	FactDriver        Fact = "driver"         // Drivers
	FactParams        Fact = "params"         // Params
	FactKernelOptions Fact = "kernel-options" // KernelOptions
	FactStorage       Fact = "storage"        // Storage
	FactStack         Fact = "stack"          // MOFED
	FactSymbols       Fact = "symbols"        // Symbols
	FactNCCLClient    Fact = "nccl-client"    // Advice.NCCLClient
	FactNICVersion    Fact = "nic-version"    // Advice.NICVersions
	FactGDRCopy       Fact = "gdrcopy"        // Advice.GDRCopy
	FactGPUOperator   Fact = "gpu-operator"   // Advice.Operators.GPU
	FactMOFEDReady    Fact = "mofed-ready"    // Advice.Operators.MOFEDReady
	FactDriverReady   Fact = "driver-ready"   // Advice.Operators.DriverReady, RDMA
)

// files are the files of a machine. They note what is asked for, and for which fact; ""
// for none.
type files struct {
	host.Source
	fact Fact
	read map[Fact][]string
}

func (f *files) note(name string) {
	if f.fact != "" {
		f.read[f.fact] = append(f.read[f.fact], "/"+name)
	}
}

// Open notes a file, and so do the others.
func (f *files) Open(name string) (host.File, error) { f.note(name); return f.Source.Open(name) }

func (f *files) Inode(name string) (uint64, error) { f.note(name); return f.Source.Inode(name) }

func (f *files) Names(name string) ([]string, error) { f.note(name); return f.Source.Names(name) }

// about says what the files that are read next are read for.
func (s *scanner) about(fact Fact) *scanner {
	s.files.fact = fact
	return s
}
