package platform

import (
	"slices"
	"strings"

	"gdr-features/host"
	"gdr-features/tristate"
)

// ReadHypervisor returns the type of the hypervisor that this system is a guest of, "xen", from
// /sys/hypervisor/type; "" where there is none, and in Xen's own domain, which
// /proc/xen/capabilities tells.
func ReadHypervisor(fs *host.FS) string {
	text, err := fs.Line("sys/hypervisor/type")
	if err != nil {
		return ""
	}
	if caps, err := fs.Line("proc/xen/capabilities"); err == nil && strings.Contains(caps, "control_d") {
		return ""
	}
	return text
}

// Virtual reports whether a system runs under a hypervisor, and the evidence if it does: the
// CPU's own flag on x86, the type of a hypervisor, and what the firmware says the machine is
// (the strings are those of systemd, src/basic/virt.c). That it does not: an x86 CPU without
// the flag, or one that has no such flag and names of the firmware that are no hypervisor's.
// Otherwise it is unknown.
func Virtual(cpu CPU, hypervisor string, names DMI) (virtual tristate.State, by string) {
	if cpu.Hypervisor == tristate.True {
		return tristate.True, CPUFile + ": flag hypervisor"
	}
	if hypervisor != "" {
		return tristate.True, "/sys/hypervisor/type: " + hypervisor
	}
	evidence, cloud := names.hypervisor()
	switch {
	case evidence != "" && (!cloud || cpu.Hypervisor == tristate.Unknown):
		return tristate.True, evidence
	case cpu.Hypervisor == tristate.False, cpu.Arch != "" && names.complete():
		return tristate.False, ""
	}
	return tristate.Unknown, ""
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

// complete reports whether the names would show a hypervisor. Every firmware names product and
// vendor, and the files of names that it does not give are missing.
func (d DMI) complete() bool {
	for _, n := range [...]Name{d.Product, d.Vendor, d.BoardVendor, d.BIOSVendor} {
		if !n.Known && !n.Missing {
			return false
		}
	}
	return d.Product.Value != "" && d.Vendor.Value != ""
}

// hypervisor returns the name that shows a hypervisor, or a cloud that lends bare metal under
// the same name; "" for none, and for a cloud without the name of the product.
func (d DMI) hypervisor() (evidence string, cloud bool) {
	for _, name := range [...]struct {
		file string
		Name
	}{{"product_name", d.Product}, {"sys_vendor", d.Vendor}, {"board_vendor", d.BoardVendor}, {"bios_vendor", d.BIOSVendor}} {
		if name.Value == "" {
			continue // missing and empty are common here, and no problem
		}
		begins := func(with string) bool { return strings.HasPrefix(name.Value, with) }
		switch said := DMIDir + "/" + name.file + ": " + name.Value; {
		case slices.ContainsFunc(dmiHypervisors[:], begins):
			return said, false
		case slices.ContainsFunc(dmiClouds[:], begins):
			evidence = said
		}
	}
	product := d.Product.Value
	if d.Vendor.Value == "Microsoft Corporation" && product == "Virtual Machine" {
		return DMIDir + "/product_name: " + product, false
	}
	if product == "" || strings.HasSuffix(product, ".metal") || strings.Contains(product, ".metal-") {
		evidence = ""
	}
	return evidence, true
}
