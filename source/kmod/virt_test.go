package kmod

import (
	"strings"
	"testing"

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
		{"the name of a hypervisor in the midst", map[string]string{cpu: arm, product: "Server for VMware\n"}, tristate.False, "", nil},
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
		{"Xen's own domain on Arm", map[string]string{cpu: arm, product: "Altra\n", "sys/hypervisor/type": "xen\n", "proc/xen/capabilities": "control_d\n"}, tristate.False, "", nil},

		{"nothing readable", map[string]string{cpu: absent}, tristate.Unknown, "", nil},
		{"empty files", map[string]string{cpu: "", product: "", vendor: "", "sys/hypervisor/type": ""}, tristate.Unknown, "", nil},
		{"FIFOs", map[string]string{cpu: isFIFO, product: isFIFO, vendor: isFIFO, "sys/hypervisor/type": isFIFO}, tristate.Unknown, "", nil},
		{"no CPUs, a server", map[string]string{cpu: absent, vendor: "Dell Inc.\n"}, tristate.False, "", nil},
		{"CPUs that cannot be opened", map[string]string{cpu: absent, kallsyms: absent, "proc": "a file"}, tristate.Unknown, "", []string{"open /proc/driver/nvidia/version: not a", "open /proc/kallsyms: not a", "open /proc/cpuinfo: not a"}},
		{"flags that are cut off", map[string]string{cpu: "flags\t\t: fpu hypervisor"}, tristate.Unknown, "", nil},
		{"flags behind much else", map[string]string{cpu: strings.Repeat("x", 17<<10) + "\n" + guest}, tristate.Unknown, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := scan(t, tt.files, Request{})
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
			st := scan(t, map[string]string{"proc/cpuinfo": absent, "sys/class/dmi/id/" + file: name + " 1.0\n"}, Request{})
			if want := "/sys/class/dmi/id/" + file + ": " + name + " 1.0"; st.Virtual != tristate.True || st.VirtualBy != want {
				t.Errorf("%v by %q, want %q", st.Virtual, st.VirtualBy, want)
			}
		}
	}
}

func TestCPUFlags(t *testing.T) {
	tests := []struct {
		name, in, want string
		ok             bool
	}{
		{"as the kernel writes it", "processor\t: 0\nflags\t\t: fpu vme\nbugs\t\t:\n", "fpu vme", true},
		{"no flags at all", "flags\t\t:\n", "", true},
		{"the first line counts", "flags\t\t: a\nflags\t\t: b\n", "a", true},
		{"a colon in the flags", "flags: a:b\n", "a:b", true},
		{"a line that is not over yet", "flags\t\t: fpu vm", "", false},
		{"other flags", "vmx flags\t: vnmi\nFlags: x\nflagship: y\nflags\n", "", false},
		{"empty", "", "", false},
	}
	for _, tt := range tests {
		if got, ok := cpuValue([]byte(tt.in), "flags"); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %q, %v; want %q, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

// TestProcessor: a CPU as NCCL's topology describes it.
func TestProcessor(t *testing.T) {
	const intel = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R)\n"
	tests := []struct {
		name, in string
		want     Processor
	}{
		{"Sapphire Rapids", intel + "flags\t\t: fpu\n\n", Processor{"x86_64", "GenuineIntel", 6, 143, "Intel(R) Xeon(R)"}},
		{"family 25, which CPUID has as 15 and 10", "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nflags\t\t: fpu\n", Processor{"x86_64", "AuthenticAMD", 175, 17, ""}},
		{"a vendor with spaces at both ends", "vendor_id\t:   Shanghai  \ncpu family\t: 7\nmodel\t\t: 91\nflags\t\t: fpu\n", Processor{"x86_64", "  Shanghai  ", 7, 91, ""}},
		{"numbers that are none", "vendor_id\t: GenuineIntel\ncpu family\t: six\nmodel\t\t: -1\nflags\t\t: fpu\n", Processor{"x86_64", "GenuineIntel", 0, 0, ""}},
		{"Arm", "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd\n\n", Processor{Arch: "arm64"}},
		{"POWER", "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n\n", Processor{Arch: "ppc64"}},
		{"cut off before the flags", intel, Processor{}},
		{"empty", "", Processor{}},
	}
	for _, tt := range tests {
		if got := scan(t, map[string]string{"proc/cpuinfo": tt.in}, Request{}).Processor; got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestIntelClient: the name and the model of a CPU tell whether it is one for desktop
// computers.
func TestIntelClient(t *testing.T) {
	for name, model := range map[string]int{
		"Intel(R) Core(TM) Ultra 9 285K": 198, "13th Gen Intel(R) Core(TM) i9-13900K": 183, "Intel(R) Core(TM) i7-6700 CPU @ 3.40GHz": 94,
		"Intel(R) Core(TM) i9-10980XE CPU @ 3.00GHz": -85, "Intel(R) Core(TM) i7-3960X CPU @ 3.30GHz": -45,
		"Intel(R) Xeon(R) Platinum 8480+": -143, "Intel(R) Xeon(R) E-2388G CPU @ 3.20GHz": -167, "Genuine Intel(R) 0000": -143, "": -198,
	} {
		p := Processor{Vendor: "GenuineIntel", Family: 6, Model: max(model, -model), Name: name}
		if got, want := p.IntelClient(), model > 0; got != want {
			t.Errorf("%q: %v", name, got)
		}
		if p.Vendor = "AuthenticAMD"; p.IntelClient() {
			t.Errorf("%q of another vendor", name)
		}
	}
}
