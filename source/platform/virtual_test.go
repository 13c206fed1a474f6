package platform

import (
	"strings"
	"testing"

	"gdr-features/source"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

func TestScanVirtual(t *testing.T) {
	const (
		dmi     = "sys/class/dmi/id/"
		product = dmi + "product_name"
		vendor  = dmi + "sys_vendor"
		cpu     = "proc/cpuinfo"

		bare  = "processor\t: 0\nflags\t\t: fpu vme de\n\n"
		guest = "processor\t: 0\nflags\t\t: fpu vme hypervisor de\n\n"
		arm   = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n\n"
	)
	tests := []struct {
		name     string
		files    map[string]string
		want     tristate.State
		by       string
		problems []string
	}{
		{"flag", map[string]string{cpu: guest}, tristate.True, "/proc/cpuinfo: flag hypervisor", nil},
		{"flag at the end of the line", map[string]string{cpu: "flags\t\t: fpu hypervisor\n"}, tristate.True, "/proc/cpuinfo: flag hypervisor", nil},
		{"flag on a server's firmware", map[string]string{cpu: guest, product: "PowerEdge XE9680\n"}, tristate.True, "/proc/cpuinfo: flag hypervisor", nil},
		{"no flag", map[string]string{cpu: bare}, tristate.False, "", nil},
		{"no flag, a server", map[string]string{cpu: bare, vendor: "Dell Inc.\n", product: "PowerEdge XE9680\n"}, tristate.False, "", nil},
		{"a flag of a similar name", map[string]string{cpu: "flags\t\t: fpu nohypervisor hypervisors\n"}, tristate.False, "", nil},
		{"the flag in another line", map[string]string{cpu: "model name\t: hypervisor\nvmx flags\t: hypervisor\nflags\t\t: fpu\n"}, tristate.False, "", nil},
		{"the flag of the second CPU", map[string]string{cpu: bare + guest}, tristate.False, "", nil},
		{"flags of the second CPU alone", map[string]string{cpu: "processor\t: 0\n\n" + guest}, tristate.Unknown, "", nil},
		{"no flag, and QEMU's firmware", map[string]string{cpu: bare, vendor: "QEMU\n"}, tristate.True, "/sys/class/dmi/id/sys_vendor: QEMU", nil},

		{"Arm server", map[string]string{cpu: arm, vendor: "NVIDIA\n", product: "Grace\n"}, tristate.False, "", nil},
		{"Arm guest of QEMU", map[string]string{cpu: arm, vendor: "QEMU\n", product: "KVM Virtual Machine\n"}, tristate.True, "/sys/class/dmi/id/product_name: KVM Virtual Machine", nil},
		{"Arm without firmware", map[string]string{cpu: arm}, tristate.Unknown, "", nil},
		{"VMware", map[string]string{cpu: arm, product: "VMware7,1\n"}, tristate.True, "/sys/class/dmi/id/product_name: VMware7,1", nil},
		{"VirtualBox", map[string]string{cpu: arm, dmi + "board_vendor": "innotek GmbH\n"}, tristate.True, "/sys/class/dmi/id/board_vendor: innotek GmbH", nil},
		{"Bochs", map[string]string{cpu: arm, dmi + "bios_vendor": "Bochs\n"}, tristate.True, "/sys/class/dmi/id/bios_vendor: Bochs", nil},
		{"the name of a hypervisor in the midst", map[string]string{cpu: arm, vendor: "Example Inc.\n", product: "Server for VMware\n"}, tristate.False, "", nil},
		{"Hyper-V", map[string]string{cpu: arm, vendor: "Microsoft Corporation\n", product: "Virtual Machine\n"}, tristate.True, "/sys/class/dmi/id/product_name: Virtual Machine", nil},
		{"a laptop of Microsoft", map[string]string{cpu: arm, vendor: "Microsoft Corporation\n", product: "Surface Laptop\n"}, tristate.False, "", nil},
		{"a virtual machine of somebody else", map[string]string{cpu: arm, vendor: "Example Inc.\n", product: "Virtual Machine\n"}, tristate.False, "", nil},

		{"EC2 on Arm", map[string]string{cpu: arm, vendor: "Amazon EC2\n", product: "g5g.16xlarge\n"}, tristate.True, "/sys/class/dmi/id/sys_vendor: Amazon EC2", nil},
		{"EC2 metal on Arm", map[string]string{cpu: arm, vendor: "Amazon EC2\n", product: "g5g.metal\n"}, tristate.False, "", nil},
		{"EC2 metal of a size on Arm", map[string]string{cpu: arm, vendor: "Amazon EC2\n", product: "c7g.metal-48xl\n"}, tristate.False, "", nil},
		{"EC2 metal on x86", map[string]string{cpu: bare, vendor: "Amazon EC2\n", product: "p4d.24xlarge\n"}, tristate.False, "", nil},
		{"EC2 on x86", map[string]string{cpu: guest, vendor: "Amazon EC2\n", product: "p5.48xlarge\n"}, tristate.True, "/proc/cpuinfo: flag hypervisor", nil},
		{"Google on Arm", map[string]string{cpu: arm, product: "Google Compute Engine\n"}, tristate.True, "/sys/class/dmi/id/product_name: Google Compute Engine", nil},
		{"Google bare metal on x86", map[string]string{cpu: bare, product: "Google Compute Engine\n"}, tristate.False, "", nil},

		{"Xen guest", map[string]string{cpu: bare, "sys/hypervisor/type": "xen\n"}, tristate.True, "/sys/hypervisor/type: xen", nil},
		{"Xen guest with capabilities", map[string]string{cpu: bare, "sys/hypervisor/type": "xen\n", "proc/xen/capabilities": "none\n"}, tristate.True, "/sys/hypervisor/type: xen", nil},
		{"Xen's own domain", map[string]string{cpu: bare, "sys/hypervisor/type": "xen\n", "proc/xen/capabilities": "control_d\n"}, tristate.False, "", nil},
		{"Xen's own domain on Arm", map[string]string{cpu: arm, vendor: "Ampere\n", product: "Altra\n", "sys/hypervisor/type": "xen\n", "proc/xen/capabilities": "control_d\n"}, tristate.False, "", nil},

		{"nothing readable", map[string]string{cpu: absent}, tristate.Unknown, "", nil},
		{"empty files", map[string]string{cpu: "", product: "", vendor: "", "sys/hypervisor/type": ""}, tristate.Unknown, "", nil},
		{"FIFOs", map[string]string{cpu: isFIFO, product: isFIFO, vendor: isFIFO, "sys/hypervisor/type": isFIFO}, tristate.Unknown, "", nil},
		{"no CPUs, a server", map[string]string{cpu: absent, vendor: "Dell Inc.\n", product: "PowerEdge XE9680\n"}, tristate.Unknown, "", nil},
		{"CPUs are a directory, a server", map[string]string{cpu: isDir, vendor: "Nutanix\n", product: "AHV\n"}, tristate.Unknown, "", []string{"read /proc/cpuinfo: is a directory"}},
		{"CPUs are garbage, a server", map[string]string{cpu: "garbage\n", vendor: "Nutanix\n", product: "AHV\n"}, tristate.Unknown, "", nil},
		{"CPUs are a directory, QEMU's firmware", map[string]string{cpu: isDir, vendor: "QEMU\n"}, tristate.True, "/sys/class/dmi/id/sys_vendor: QEMU", []string{"read /proc/cpuinfo: is a directory"}},
		{"POWER, a server", map[string]string{cpu: "processor\t: 0\ncpu\t\t: POWER9\n", vendor: "IBM\n", product: "AC922\n"}, tristate.False, "", nil},
		{"Arm, the vendor is unreadable", map[string]string{cpu: arm, vendor: isDir, product: "p6e-gb300r.36xlarge\n"}, tristate.Unknown, "", nil},
		{"Arm, the vendor is empty", map[string]string{cpu: arm, vendor: "", product: "p6e-gb300r.36xlarge\n"}, tristate.Unknown, "", nil},
		{"Arm, no vendor", map[string]string{cpu: arm, product: "p6e-gb300r.36xlarge\n"}, tristate.Unknown, "", nil},
		{"Arm, the product is unreadable", map[string]string{cpu: arm, vendor: "Amazon EC2\n", product: isDir}, tristate.Unknown, "", nil},
		{"Arm, another name is unreadable", map[string]string{cpu: arm, vendor: "Example Inc.\n", product: "Example\n", dmi + "bios_vendor": isDir}, tristate.Unknown, "", nil},
		{"CPUs that cannot be opened", map[string]string{cpu: absent, "proc": "a file"}, tristate.Unknown, "", []string{"open /proc/cpuinfo: not a"}},
		{"flags that are cut off", map[string]string{cpu: "flags\t\t: fpu hypervisor"}, tristate.Unknown, "", nil},
		{"flags behind much else", map[string]string{cpu: strings.Repeat("x", 17<<10) + "\n" + guest}, tristate.Unknown, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := scan(t, tt.files, &pci.Inventory{}, source.What{})
			if st.Virtual != tt.want || st.VirtualBy != tt.by {
				t.Errorf("%v by %q, want %v by %q", st.Virtual, st.VirtualBy, tt.want, tt.by)
			}
			wantProblems(t, st.Problems, tt.problems...)
		})
	}
}

// Each beginning is known in each file the firmware's names are read from.
func TestHypervisorNames(t *testing.T) {
	for _, name := range []string{
		"KVM", "OpenStack", "KubeVirt", "QEMU", "VMware", "VMW", "innotek GmbH", "VirtualBox",
		"Xen", "Bochs", "Parallels", "BHYVE", "Hyper-V", "Apple Virtualization",
	} {
		for _, file := range []string{"product_name", "sys_vendor", "board_vendor", "bios_vendor"} {
			st := scan(t, map[string]string{"proc/cpuinfo": absent, "sys/class/dmi/id/" + file: name + " 1.0\n"}, &pci.Inventory{}, source.What{})
			if want := "/sys/class/dmi/id/" + file + ": " + name + " 1.0"; st.Virtual != tristate.True || st.VirtualBy != want {
				t.Errorf("%v by %q, want %q", st.Virtual, st.VirtualBy, want)
			}
		}
	}
}
