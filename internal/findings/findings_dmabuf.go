package findings

import (
	"slices"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

const (
	newerStack = "use Linux 5.12 or newer, or MOFED 5.5 or newer"
	newerMLX5  = newerStack + ", with mlx5_ib loaded"
)

// lack is what to say of a need of DMA-BUF that is not met. evidence is asked for
// then, and when it is unknown.
type lack struct {
	code       Code
	lacks, fix string
	evidence   func(f *Facts) string
}

// lack gives it for a need.
func (f *Facts) lack(need verdict.Need) lack {
	without := Code(verdict.GPUDriverNotLoaded)
	if f.AllPassthrough() == tristate.True {
		without = Code(verdict.GPUPassthrough)
	}
	return map[verdict.Need]lack{
		verdict.GPUDriverLoaded: {
			without, "no GPU driver is loaded", "see gpu-driver",
			func(f *Facts) string { return sawFile("/sys/module/nvidia", f.Kmod.Driver.Loaded) },
		},
		verdict.GPUBound: {without, "no eligible GPU is bound to the NVIDIA driver", "see gpu-driver", gpuDrivers},
		verdict.TuringGPU: {
			PreTuring, "no eligible GPU that the driver drives is of the Turing generation or newer",
			"use nvidia-peermem: DMA-BUF needs Turing or newer",
			func(f *Facts) string { return strings.Join(f.ids(pci.GPU), " ") },
		},
		verdict.OpenModules: {
			ClosedDriver, "the GPU driver is not the open kernel module",
			"install the open kernel modules (GPU Operator: kernelModuleType open), for Turing or newer",
			func(f *Facts) string {
				return saw(nvVersion, strings.TrimSpace(f.Kmod.Driver.Version+" "+flavour(f.Kmod.Driver.Open)))
			},
		},
		verdict.MLX5Device: {
			NoMLX5Device, "no eligible adapter has an RDMA device of mlx5",
			"DMA-BUF needs ConnectX-4 or newer with mlx5_ib",
			func(f *Facts) string { return strings.Join(f.drivers((*pci.Function).NICEligible), " ") },
		},
		verdict.DevicesAccept: {
			DMABufRefused, "the RDMA devices cannot register DMA-BUF",
			newerStack + ", with CONFIG_INFINIBAND_ON_DEMAND_PAGING",
			func(*Facts) string { return saw(verbsNodes, "operation not supported") },
		},
		verdict.CoreSymbol: {
			NoDMABuf, "the RDMA core has no DMA-BUF (ib_umem_dmabuf_get)", newerStack,
			func(f *Facts) string { return sawSymbol("ib_umem_dmabuf_get", f.Kmod.Symbols.UmemDMABuf) },
		},
		verdict.DriverSymbol: {
			NoDMABuf, "mlx5_ib has no DMA-BUF (mlx5_ib_reg_user_mr_dmabuf)", newerMLX5,
			func(f *Facts) string { return sawSymbol("mlx5_ib_reg_user_mr_dmabuf", f.Kmod.Symbols.MLX5DMABuf) },
		},
	}[need]
}

func gpuDrivers(f *Facts) string { return strings.Join(f.drivers((*pci.Function).GPUEligible), " ") }

func (f *Facts) dmabufFinding(v verdict.Verdict) Finding {
	out := Finding{Check: "dmabuf", Status: either(v.DMABuf, v.Peermem), Sources: []string{nvVersion, kallsyms}}
	switch needs := f.DMABufNeeds(); v.DMABuf {
	case tristate.True:
		out.Detail = "the open GPU driver and mlx5 show all that DMA-BUF needs (inferred; only a transfer proves it)"
		if f.DevicesSay() == tristate.True {
			out.Detail = "the GPU driver is the open one, and mlx5 can register DMA-BUF (only a transfer proves more)"
		}
	case tristate.Unknown:
		out.Reason, out.Detail = verdict.Unreadable, "the kernel's symbols or the GPU driver's flavour cannot be read"
		out.Fix = "read as root, or in a container that shows /proc/kallsyms"
		for _, p := range needs {
			if p.Met != tristate.Unknown {
				continue
			}
			if evidence := f.lack(p.Need).evidence(f); evidence != "" && !slices.Contains(out.Evidence, evidence) {
				out.Evidence = append(out.Evidence, evidence)
			}
		}
	case tristate.False:
		for _, p := range needs {
			if p.Met == tristate.False {
				f.missing(&out, p.Need, v.Peermem)
				break
			}
		}
	}
	if len(f.Asked) > 0 {
		out.Detail += "; " + f.asked()
		out.Sources = append(out.Sources, verbsNodes)
	}
	return out
}

// missing says that a prerequisite is missing, and what to do unless peermem
// serves.
func (f *Facts) missing(out *Finding, need verdict.Need, peermem tristate.State) {
	lack := f.lack(need)
	out.Detail = lack.lacks
	if peermem == tristate.True {
		out.Detail += "; not needed, peermem serves"
		return
	}
	out.Code, out.Fix, out.Evidence = lack.code, lack.fix, []string{lack.evidence(f)}
}

// asked lists what devices said when they were asked.
func (f *Facts) asked() string {
	var names [3][]string
	for _, a := range f.Asked {
		names[a.DMABuf] = append(names[a.DMABuf], a.Device)
	}
	var parts []string
	for _, answer := range [...]struct {
		state tristate.State
		words string
	}{{tristate.True, "can"}, {tristate.False, "cannot"}, {tristate.Unknown, "gave no clear answer"}} {
		if list := names[answer.state]; len(list) > 0 {
			parts = append(parts, strings.Join(list, " ")+" "+answer.words)
		}
	}
	return "asked: " + strings.Join(parts, ", ")
}
