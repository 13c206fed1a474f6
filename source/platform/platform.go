// Package platform reads what files say about a machine as a whole and about this process:
// the CPU, the names that the firmware gives, the hypervisor, the IOMMU, the kernel and its
// command line, and the routes. Each file of this package answers one class or file of the
// kernel.
package platform

import (
	"slices"
	"strings"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// State is the machine as a whole.
type State struct {
	CPU CPU
	DMI DMI
	// BIOS is bios_version in DMIDir, read where GPUs are there that RCCL pairs by it
	// (family.GPU.HyperVPairs); "" where it cannot be read.
	BIOS string
	// Virtual: this system runs under a hypervisor. VirtualBy names the evidence.
	Virtual   tristate.State
	VirtualBy string
	// Confidential is what ReadConfidential returns, not read where there is no hypervisor.
	Confidential string
	IOMMU        IOMMU
	// Kernel is what ReadRelease returns, read for publishing, for check, and for Arm machines
	// with GPUs that share memory with their CPU. KernelUnread: its file is there and could not
	// be read.
	Kernel       string
	KernelUnread bool
	// GPUs is what their drivers say of them: a virtual GPU has the PCI ids of a whole one.
	GPUs GPUs

	// The rest decides nothing and is read on request (source.What.Advice).

	NUMABalancing string         // from NUMABalancingFile, "" where it is not readable
	CommandLine   []string       // the words of CommandLineFile about the IOMMU
	Tegra         string         // the model in the device tree, "" for other machines
	DefaultRoutes []DefaultRoute // of the node
	// Problems are the facts that could not be read, one error each.
	Problems []error
}

// Read reads the state. names are those that ReadDMI returned, and functions those whose IOMMU
// groups and drivers are asked. Nothing in it can fail as a whole.
func Read(fs *host.FS, names DMI, functions *pci.Inventory, what source.What) State {
	st := ReadMachine(fs, names, functions, what)
	st.GPUs = ReadGPUs(fs, functions)
	st.Problems = append(st.Problems, st.GPUs.Problems...)
	return st
}

// ReadMachine reads all but what GPU drivers say, whose files may not answer when a GPU fails.
func ReadMachine(fs *host.FS, names DMI, functions *pci.Inventory, what source.What) State {
	st := State{DMI: names}
	var err error
	line := func(file string) string {
		text, err := fs.Line(file[1:])
		st.problem(err)
		return text
	}
	st.IOMMU = readIOMMU(fs, functions, what.Everything)
	st.Problems = append(st.Problems, st.IOMMU.Problems...)
	st.CPU, err = ReadCPU(fs)
	st.problem(err)
	st.Virtual, st.VirtualBy = Virtual(st.CPU, ReadHypervisor(fs), names)
	if slices.ContainsFunc(functions.Functions, func(f pci.Function) bool { return f.GPUEligible() && len(f.GPU.HyperVPairs) > 0 }) {
		st.BIOS = line(DMIDir + "/bios_version")
	}
	if st.Virtual != tristate.False {
		st.Confidential, err = ReadConfidential(fs, st.CPU)
		st.problem(err)
	}
	coherent := slices.ContainsFunc(functions.Functions, func(f pci.Function) bool { return f.GPUEligible() && f.Coherent() })
	if what.Publish || what.Advice || coherent && st.CPU.Arch != "x86_64" {
		st.Kernel, err = ReadRelease(fs)
		st.problem(err)
		st.KernelUnread = err != nil && !host.Absent(err)
	}
	if what.Advice {
		st.NUMABalancing = line(NUMABalancingFile)
		for word := range strings.FieldsSeq(line(CommandLineFile)) {
			if AboutIOMMU(word) {
				st.CommandLine = append(st.CommandLine, word)
			}
		}
		st.Tegra, err = ReadTegra(fs)
		st.problem(err)
	}
	if what.Advice || what.Routes {
		st.defaultRoutes(fs)
	}
	return st
}

// problem notes err, unless the file is merely missing.
func (st *State) problem(err error) {
	if err != nil && !host.Absent(err) {
		st.Problems = append(st.Problems, err)
	}
}
