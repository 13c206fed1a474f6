package kmod

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"gdr-features/tristate"
)

// virtual looks for a hypervisor: the CPU's own flag on x86, Xen's
// directory, and what the firmware says the machine is (the strings are those
// of systemd, src/basic/virt.c). Without anything readable it stays unknown.
func (s *scanner) virtual() {
	flag := s.hypervisorFlag()
	if flag == tristate.True {
		s.found("/proc/cpuinfo: flag hypervisor")
		return
	}
	if text, err := s.fs.Line("sys/hypervisor/type"); err == nil {
		if caps, err := s.fs.Line("proc/xen/capabilities"); err != nil || !strings.Contains(caps, "control_d") {
			s.found("/sys/hypervisor/type: " + text)
			return
		}
	}
	evidence, cloud, readable := s.firmware()
	switch {
	case evidence != "" && (!cloud || flag == tristate.Unknown):
		s.found(evidence)
	case flag == tristate.False, readable:
		s.st.Virtual = tristate.False
	}
}

func (s *scanner) found(evidence string) {
	s.st.Virtual, s.st.VirtualBy = tristate.True, evidence
}

// hypervisorFlag reads the flags of the first CPU. Other architectures
// have none.
func (s *scanner) hypervisorFlag() tristate.State {
	file, err := s.fs.Open("proc/cpuinfo")
	if err != nil {
		s.problem(err)
		return tristate.Unknown
	}
	defer file.Close()
	buf := make([]byte, 0, 16<<10)
	for len(buf) < cap(buf) {
		n, _ := file.Read(buf[len(buf):cap(buf)])
		if n == 0 { // the end, or unreadable from here on
			break
		}
		buf = buf[:len(buf)+n]
		first := firstCPU(buf)
		if flags, ok := cpuValue(first, "flags"); ok {
			s.st.Processor = x86(first)
			return tristate.Of(slices.Contains(strings.Fields(flags), "hypervisor"))
		}
		if len(first) < len(buf) {
			buf = first
			break
		}
	}
	s.st.Arm = bytes.Contains(buf, []byte("\nFeatures\t"))
	if cpu, ok := cpuValue(buf, "cpu"); s.st.Arm {
		s.st.Processor.Arch = "arm64"
	} else if ok && strings.HasPrefix(cpu, "POWER") {
		s.st.Processor.Arch = "ppc64"
	}
	return tristate.Unknown
}

// x86 reads a CPU that has flags.
func x86(text []byte) Processor {
	number := func(key string) int {
		value, _ := cpuValue(text, key)
		n, err := strconv.ParseUint(value, 10, 12)
		if err != nil {
			return 0
		}
		return int(n)
	}
	p := Processor{Arch: "x86_64", Family: number("cpu family"), Model: number("model")}
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

// Beginnings of the strings, as systemd has them. Oracle is left out: it sells
// servers under the same name.
var (
	dmiHypervisors = [...]string{
		"KVM", "OpenStack", "KubeVirt", "QEMU", "VMware", "VMW", "innotek GmbH", "VirtualBox",
		"Xen", "Bochs", "Parallels", "BHYVE", "Hyper-V", "Apple Virtualization",
	}
	dmiClouds = [...]string{"Amazon EC2", "Google Compute Engine"}
)

// firmware reads the machine's names. readable tells that there were any. evidence is the one
// that shows a hypervisor, or a cloud that lends bare metal under the same name; "" for none.
func (s *scanner) firmware() (evidence string, cloud, readable bool) {
	names := map[string]string{}
	for _, file := range [...]string{"product_name", "sys_vendor", "board_vendor", "bios_vendor"} {
		text, err := s.fs.Line("sys/class/dmi/id/" + file)
		if err != nil {
			continue // missing and empty are common here, and no problem
		}
		names[file] = text
		begins := func(with string) bool { return strings.HasPrefix(text, with) }
		switch said := "/sys/class/dmi/id/" + file + ": " + text; {
		case slices.ContainsFunc(dmiHypervisors[:], begins):
			return said, false, true
		case slices.ContainsFunc(dmiClouds[:], begins):
			evidence = said
		}
	}
	product := names["product_name"]
	if names["sys_vendor"] == "Microsoft Corporation" && product == "Virtual Machine" {
		return "/sys/class/dmi/id/product_name: " + product, false, true
	}
	if strings.HasSuffix(product, ".metal") || strings.Contains(product, ".metal-") {
		evidence = ""
	}
	return evidence, true, len(names) > 0
}

// firstCPU returns the first block of /proc/cpuinfo, or of its beginning.
func firstCPU(cpuinfo []byte) []byte {
	if i := bytes.Index(cpuinfo, []byte("\n\n")); i >= 0 {
		return cpuinfo[:i+1]
	}
	return cpuinfo
}
