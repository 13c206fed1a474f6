package platform

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source"
	"gdr-features/source/pci"
)

// TestAdvice reads what only advice needs, on request.
func TestAdvice(t *testing.T) {
	files := map[string]string{
		"proc/sys/kernel/numa_balancing": "1\n",
		"proc/cmdline":                   "BOOT_IMAGE=/vmlinuz root=UUID=1-2 intel_iommu=on iommu=pt quiet\n",
		"proc/cpuinfo":                   "processor\t: 0\nFeatures\t: fp asimd\n",
		"proc/device-tree/compatible":    "nvidia,p3701\x00nvidia,tegra234\x00",
	}
	st := scan(t, files, &pci.Inventory{}, source.What{Advice: true})
	if st.NUMABalancing != "1" || st.Tegra != "nvidia,tegra234" || st.CPU.Arch != "arm64" || len(st.Problems) > 0 {
		t.Errorf("%+v", st)
	}
	if diff := cmp.Diff([]string{"intel_iommu=on", "iommu=pt"}, st.CommandLine); diff != "" {
		t.Errorf("command line (-want +got):\n%s", diff)
	}
	if st := scan(t, files, &pci.Inventory{}, source.What{}); st.NUMABalancing != "" || st.Tegra != "" || st.CommandLine != nil {
		t.Errorf("advice that nobody asked for: %+v", st)
	}
	// On a bare tree nothing is known, and nothing is a problem.
	if st := scan(t, nil, &pci.Inventory{}, source.What{Advice: true}); st.NUMABalancing != "" || st.Tegra != "" || st.CommandLine != nil || len(st.Problems) > 0 {
		t.Errorf("bare: %+v", st)
	}
}
