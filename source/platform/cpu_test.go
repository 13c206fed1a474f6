package platform

import (
	"strings"
	"testing"

	"gdr-features/tristate"
)

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

// TestCPU: a CPU as NCCL's topology describes it.
func TestCPU(t *testing.T) {
	const intel = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R)\n"
	tests := []struct {
		name, in string
		want     CPU
	}{
		{"Sapphire Rapids", intel + "flags\t\t: fpu\n\n", CPU{"x86_64", "GenuineIntel", 6, 143, "Intel(R) Xeon(R)", no, ""}},
		{"family 25, which CPUID has as 15 and 10", "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nflags\t\t: fpu\n", CPU{"x86_64", "AuthenticAMD", 175, 17, "", no, ""}},
		{"a vendor with spaces at both ends", "vendor_id\t:   Shanghai  \ncpu family\t: 7\nmodel\t\t: 91\nflags\t\t: fpu\n", CPU{"x86_64", "  Shanghai  ", 7, 91, "", no, ""}},
		{"numbers that are none", "vendor_id\t: GenuineIntel\ncpu family\t: six\nmodel\t\t: -1\nflags\t\t: fpu\n", CPU{"x86_64", "GenuineIntel", 0, 0, "", no, ""}},
		{"Arm", "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd\n\n", CPU{Arch: "arm64"}},
		{"POWER", "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n\n", CPU{Arch: "ppc64"}},
		{"cut off before the flags", intel, CPU{}},
		{"empty", "", CPU{}},
	}
	for _, tt := range tests {
		if got, err := ReadCPU(tree(t, map[string]string{"proc/cpuinfo": tt.in})); got != tt.want || err != nil {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
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
		p := CPU{Vendor: "GenuineIntel", Family: 6, Model: max(model, -model), Name: name}
		if got, want := p.IntelClient(), model > 0; got != want {
			t.Errorf("%q: %v", name, got)
		}
		if p.Vendor = "AuthenticAMD"; p.IntelClient() {
			t.Errorf("%q of another vendor", name)
		}
	}
}

const no = tristate.False

func FuzzCPUFlags(f *testing.F) {
	for _, seed := range []string{
		"processor\t: 0\nflags\t\t: fpu vme\n", "flags\t\t: fpu", "flags:\n", "Features\t: fp asimd\n", "vmx flags\t: x\nflags\t: y\n", "", "\n", ":\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := cpuValue(text, "flags")
		lines := strings.Split(string(text), "\n")
		for _, line := range lines[:len(lines)-1] { // what is behind the last newline is not over yet
			key, value, colon := strings.Cut(line, ":")
			if colon && strings.TrimSpace(key) == "flags" {
				if !ok || got != strings.TrimPrefix(value, " ") {
					t.Errorf("got %q, %v; want %q", got, ok, value)
				}
				return
			}
		}
		if ok || got != "" {
			t.Errorf("got %q, %v; want nothing", got, ok)
		}
	})
}
