package nccl

import "strings"

// pciGens are rates of PCIe links, x100 Mbit/s for each lane (src/graph/topo.cc, kvDictPciGen).
var pciGens = []struct {
	text  string
	speed int
}{
	{"2.5 GT/s", 15},
	{"5 GT/s", 30},
	{"8 GT/s", 60},
	{"16 GT/s", 120},
	{"32 GT/s", 240},
	{"5.0 GT/s PCIe", 30},
	{"8.0 GT/s PCIe", 60},
	{"16.0 GT/s PCIe", 120},
	{"32.0 GT/s PCIe", 240},
	{"64.0 GT/s PCIe", 480},
}

// linkBw is the bandwidth of an element's PCIe link in GB/s (src/graph/topo.cc, ncclTopoAddPci): 16
// lanes and 8 GT/s where it is not known.
func linkBw(e *Element) float32 {
	width, speed := strtol(e.attr("link_width")), 60
	if width == 0 {
		width = 16
	}
	for _, gen := range pciGens {
		if strings.HasPrefix(e.attr("link_speed"), gen.text) {
			speed = gen.speed
			break
		}
	}
	return float32(float64(int(width)*speed) / 80)
}

// getInterCPUBw is ncclTopoGetInterCpuBw (src/graph/topo.cc), with the models of ncclTopoAddCpu: the
// bandwidth from a CPU to others in GB/s.
func getInterCPUBw(e *Element) float32 {
	family, model := strtol(e.attr("familyid")), strtol(e.attr("modelid"))
	switch arch, vendor := e.attr("arch"), e.attr("vendor"); {
	case strings.HasPrefix(arch, "ppc64"):
		return 32
	case strings.HasPrefix(arch, "arm64"):
		return 6
	case !strings.HasPrefix(arch, x86):
		return locBw
	case vendor == "AuthenticAMD":
		return 16
	case vendor == "CentaurHauls", vendor == "  Shanghai  ":
		if family == 7 && model == 0x5b {
			return 9
		}
		return 6
	case vendor != "GenuineIntel":
		return locBw
	case family == 6 && model >= 0xcf:
		return 40
	case family == 6 && model >= 0x8f:
		return 22
	case family == 6 && model >= 0x55:
		return 10
	}
	return 6
}
