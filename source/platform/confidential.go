package platform

import (
	"slices"

	"gdr-features/host"
)

// confidentialFlag returns the flag of a CPU that tells a confidential guest; "" for none. The kernel
// sets the first in a guest of Intel TDX alone (arch/x86/coco/tdx/tdx.c, tdx_early_init). The second
// says that the CPU has SEV-SNP, on a host too: only beside the flag of a hypervisor does it tell a
// guest.
func confidentialFlag(flags []string) string {
	const tdx, snp = "tdx_guest", "sev_snp"
	switch {
	case slices.Contains(flags, tdx):
		return tdx
	case slices.Contains(flags, snp) && slices.Contains(flags, "hypervisor"):
		return snp
	}
	return ""
}

// confidentialDevices are entries that the kernel makes in confidential guests alone. SEV-SNP:
// the platform device (arch/x86/kernel/sev.c, snp_init_platform_device), its driver's device
// (drivers/virt/coco/sev-guest/sev-guest.c, DEVICE_NAME), and the directory with the guest's
// privilege level (arch/x86/kernel/sev.c, sev_sysfs_init). TDX: the driver's device
// (drivers/virt/coco/tdx-guest/tdx-guest.c). Host and guest differ: /dev/sev is a host's.
var confidentialDevices = [...]string{
	"/sys/class/misc/sev-guest", "/sys/devices/platform/sev-guest", "/sys/bus/platform/devices/sev-guest", "/dev/sev-guest",
	"/sys/devices/system/cpu/sev",
	"/sys/class/misc/tdx_guest", "/dev/tdx_guest",
}

// ReadConfidential returns what tells that this system is a confidential guest, as evidence:
// "/proc/cpuinfo=tdx_guest"; "" where nothing does. Only x86 has these kinds of guests.
func ReadConfidential(fs *host.FS, cpu CPU) (evidence string, err error) {
	if cpu.Arch != "x86_64" {
		return "", nil
	}
	if cpu.guest != "" {
		return CPUFile + "=" + cpu.guest, nil
	}
	for _, name := range confidentialDevices {
		switch there, failed := fs.Exists(name[1:]); {
		case there:
			return name + "=present", nil
		case host.Unread(failed):
			err = failed
		}
	}
	return "", err
}
