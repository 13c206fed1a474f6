package family_test

import (
	"testing"

	"gdr-features/source/family"
)

// TestVirtualGPU: names of g_nv_name_released.h (NVIDIA/open-gpu-kernel-modules 595.45.04).
func TestVirtualGPU(t *testing.T) {
	for name, want := range map[string]bool{
		"NVIDIA A30-8C": true, "GRID A100-1-5CME": true, "NVIDIA A10-24": true, "GRID T4-1B4": true, "NVIDIA RTX Pro 6000 Blackwell DC-4-96Q": true, "NVIDIA H100XM-80C": true,
		"NVIDIA A30": false, "NVIDIA A100-SXM4-80GB": false, "NVIDIA A100-PG509-200": false, "Tesla V100-SXM2-32GB": false, "NVIDIA H100 80GB HBM3": false, "NVIDIA PG506-232": false, "": false,
	} {
		for _, g := range family.Known().GPUs {
			if got := g.Virtual(name); got != (want && g.Name == "nvidia") {
				t.Errorf("%s %q: %v", g.Name, name, got)
			}
		}
	}
}
