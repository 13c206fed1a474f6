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
// (the strings are those of systemd, src/basic/virt.c). Without any of these it is unknown.
func Virtual(cpu CPU, hypervisor string, names DMI) (virtual tristate.State, by string) {
	if cpu.Hypervisor == tristate.True {
		return tristate.True, CPUFile + ": flag hypervisor"
	}
	if hypervisor != "" {
		return tristate.True, "/sys/hypervisor/type: " + hypervisor
	}
	evidence, cloud, readable := names.hypervisor()
	switch {
	case evidence != "" && (!cloud || cpu.Hypervisor == tristate.Unknown):
		return tristate.True, evidence
	case cpu.Hypervisor == tristate.False, readable:
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

// hypervisor returns the name that shows a hypervisor, or a cloud that lends bare metal under
// the same name; "" for none. readable tells that there were any names.
func (d DMI) hypervisor() (evidence string, cloud, readable bool) {
	for _, name := range [...]struct {
		file string
		Name
	}{{"product_name", d.Product}, {"sys_vendor", d.Vendor}, {"board_vendor", d.BoardVendor}, {"bios_vendor", d.BIOSVendor}} {
		if name.Value == "" {
			continue // missing and empty are common here, and no problem
		}
		readable = true
		begins := func(with string) bool { return strings.HasPrefix(name.Value, with) }
		switch said := DMIDir + "/" + name.file + ": " + name.Value; {
		case slices.ContainsFunc(dmiHypervisors[:], begins):
			return said, false, true
		case slices.ContainsFunc(dmiClouds[:], begins):
			evidence = said
		}
	}
	product := d.Product.Value
	if d.Vendor.Value == "Microsoft Corporation" && product == "Virtual Machine" {
		return DMIDir + "/product_name: " + product, false, true
	}
	if strings.HasSuffix(product, ".metal") || strings.Contains(product, ".metal-") {
		evidence = ""
	}
	return evidence, true, readable
}
