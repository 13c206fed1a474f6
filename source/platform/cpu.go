package platform

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"gdr-features/host"
	"gdr-features/tristate"
)

// CPUFile is the file that a CPU is read from.
const CPUFile = "/proc/cpuinfo"

// CPU is the first one of CPUFile, as NCCL's topology describes it (NVIDIA/nccl
// src/graph/xml.cc, ncclTopoGetXmlFromCpu).
type CPU struct {
	// Arch is "x86_64", "arm64" or "ppc64"; "" when not known. The others are of x86 alone.
	Arch string
	// Vendor is vendor_id, "GenuineIntel".
	Vendor string
	// Family and Model are those of CPUID, the extended family times 16 added to
	// the family as NCCL does; 0 when not known.
	Family, Model int
	// Name is "model name", "13th Gen Intel(R) Core(TM) i9-13900K". NCCL does not use it.
	Name string
	// Hypervisor: the flag of this name, which a hypervisor sets.
	Hypervisor tristate.State

	guest string // the flag that tells a confidential guest, for ReadConfidential
}

// IntelClient reports whether this is a CPU of Intel's Core series for desktop computers and
// laptops. Those of this series that were made for larger machines, up to the Core
// i9-10980XE, have the dies of servers, which the kernel lists with the endings _EP and _X
// (arch/x86/include/asm/intel-family.h).
func (p CPU) IntelClient() bool {
	server := []int{0x1a, 0x2c, 0x2d, 0x3e, 0x3f, 0x4f, 0x55} // Nehalem to Cascade Lake
	return p.Vendor == "GenuineIntel" && strings.Contains(p.Name, "Core(TM)") && !strings.Contains(p.Name, "Xeon") &&
		(p.Family != 6 || !slices.Contains(server, p.Model))
}

// ReadCPU reads the first CPU. Only x86 has flags.
func ReadCPU(fs *host.FS) (CPU, error) {
	text, err := firstCPU(fs)
	if err != nil {
		return CPU{}, err
	}
	if flags, ok := cpuValue(text, "flags"); ok {
		return x86(text, strings.Fields(flags)), nil
	}
	if bytes.Contains(text, []byte("\nFeatures\t")) {
		return CPU{Arch: "arm64"}, nil
	}
	if cpu, _ := cpuValue(text, "cpu"); strings.HasPrefix(cpu, "POWER") {
		return CPU{Arch: "ppc64"}, nil
	}
	return CPU{}, nil
}

func firstCPU(fs *host.FS) ([]byte, error) {
	file, err := fs.Open(CPUFile[1:])
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text := make([]byte, 16<<10)
	n, err := file.Read(text) // all of the first CPU: the kernel cuts none (fs/seq_file.c)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if end := bytes.Index(text[:n], []byte("\n\n")); end >= 0 {
		n = end + 1
	}
	return text[:n], nil
}

func x86(text []byte, flags []string) CPU {
	number := func(key string) int {
		value, _ := cpuValue(text, key)
		n, err := strconv.ParseUint(value, 10, 12)
		if err != nil {
			return 0
		}
		return int(n)
	}
	p := CPU{
		Arch: "x86_64", Family: number("cpu family"), Model: number("model"),
		Hypervisor: tristate.Of(slices.Contains(flags, "hypervisor")), guest: confidentialFlag(flags),
	}
	p.Vendor, _ = cpuValue(text, "vendor_id")
	p.Name, _ = cpuValue(text, "model name")
	const base = 15 // the kernel adds the extended family to this one (arch/x86/lib/cpu.c, x86_family)
	if p.Family > base {
		p.Family = base + (p.Family-base)<<4
	}
	return p
}

// cpuValue finds the first whole line of a key: "vendor_id\t: GenuineIntel".
// One space follows the colon, others are part of the value.
func cpuValue(text []byte, key string) (value string, ok bool) {
	for line := range bytes.Lines(text) {
		name, value, colon := bytes.Cut(line, []byte{':'})
		if colon && string(bytes.TrimSpace(name)) == key && line[len(line)-1] == '\n' {
			return strings.TrimPrefix(strings.TrimSuffix(string(value), "\n"), " "), true
		}
	}
	return "", false
}
