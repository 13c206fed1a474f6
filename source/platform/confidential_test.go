package platform_test

import (
	"os"
	"path/filepath"
	"testing"

	"gdr-features/host"
	"gdr-features/source/platform"
	"gdr-features/tristate"
)

// TestConfidential: what tells a confidential guest, and what only looks like it.
func TestConfidential(t *testing.T) {
	for _, c := range []struct{ name, flags, entry, want string }{
		{"a plain guest", "fpu hypervisor", "", ""},
		{"TDX", "fpu hypervisor tdx_guest", "", "/proc/cpuinfo=tdx_guest"},
		{"SEV-SNP by the CPU", "fpu hypervisor sev_snp", "", "/proc/cpuinfo=sev_snp"},
		{"a host with SEV-SNP", "fpu sev_snp", "dev/sev", ""},
		{"SEV-SNP by its class", "fpu hypervisor", "sys/class/misc/sev-guest", "/sys/class/misc/sev-guest=present"},
		{"SEV-SNP by its node", "fpu hypervisor", "dev/sev-guest", "/dev/sev-guest=present"},
		{"SEV-SNP by its privilege level", "fpu hypervisor", "sys/devices/system/cpu/sev", "/sys/devices/system/cpu/sev=present"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"proc/cpuinfo": "processor\t: 0\nflags\t\t: " + c.flags + "\n\n", c.entry: ""} {
				if name == "" {
					continue
				}
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			fs, err := host.Open(host.Options{Root: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer fs.Close()
			cpu, err := platform.ReadCPU(fs)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := platform.ReadConfidential(fs, cpu); got != c.want || err != nil {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// TestKernelBefore compares releases as distributions write them.
func TestKernelBefore(t *testing.T) {
	for release, want := range map[string]tristate.State{
		"6.8.0-1028-nvidia-64k": tristate.True, "6.10.14": tristate.True, "5.14.0-503.el9.aarch64+64k": tristate.True,
		"6.11.0-29-generic": tristate.False, "6.11-rc1": tristate.False, "7.0.0": tristate.False, "6.100.0": tristate.False,
		"": tristate.Unknown, "garbage": tristate.Unknown, "6.x": tristate.Unknown,
	} {
		if got := platform.KernelBefore(release, 6, 11); got != want {
			t.Errorf("%q: %v, want %v", release, got, want)
		}
	}
}
