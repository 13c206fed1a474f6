package verdict

import (
	"slices"
	"strings"

	"gdr-features/internal/tri"
	"gdr-features/source/pci"
)

// prerequisite is one thing DMA-BUF needs, and what to say when it is missing.
type prerequisite struct {
	state      tri.State
	code       Code
	lacks, fix string
	evidence   string
}

const (
	newerStack = "use Linux 5.12 or newer, or MOFED 5.5 or newer"
	newerMLX5  = newerStack + ", with mlx5_ib loaded"
)

// prerequisites are in the order in which the first missing one is named.
func (f *Facts) prerequisites() []prerequisite {
	driver := saw(nvVersion, strings.TrimSpace(f.Kmod.Driver.Version+" "+flavour(f.Kmod.Driver.Open)))
	if f.Kmod.Driver.Loaded == tri.False { // neither open nor closed
		return []prerequisite{{tri.False, Code(f.gpuDriver().Reason), "no GPU driver is loaded", "see gpu-driver", sawFile("/sys/module/nvidia", tri.False)}}
	}
	if f.gpuDriven() == tri.False {
		return []prerequisite{{tri.False, Code(f.gpuDriver().Reason), "no eligible GPU is bound to the NVIDIA driver", "see gpu-driver", strings.Join(f.drivers((*pci.Function).GPUEligible), " ")}}
	}
	parts := []prerequisite{ // hardware before drivers: open ones do not drive older GPUs
		{
			f.turing(), PreTuring, "no eligible GPU that the driver drives is of the Turing generation or newer",
			"use nvidia-peermem: DMA-BUF needs Turing or newer", strings.Join(f.ids(pci.GPU), " "),
		},
		{
			f.Kmod.Driver.Open, ClosedDriver, "the GPU driver is not the open kernel module",
			"install the open kernel modules (GPU Operator: kernelModuleType open), for Turing or newer", driver,
		},
		{
			f.mlx5Device(), NoMLX5Device, "no eligible adapter has an RDMA device of mlx5",
			"DMA-BUF needs ConnectX-4 or newer with mlx5_ib", strings.Join(f.drivers((*pci.Function).NICEligible), " "),
		},
	}
	if f.mlx() == "mlx4" {
		parts[1], parts[2] = parts[2], parts[1]
	}
	if said := f.devicesSay(); said != tri.Unknown {
		return append(parts, prerequisite{
			said, DMABufRefused, "the RDMA devices cannot register DMA-BUF",
			newerStack + ", with CONFIG_INFINIBAND_ON_DEMAND_PAGING", saw(verbsNodes, "operation not supported"),
		})
	}
	umem, mlx5 := f.Kmod.Symbols.UmemDMABuf, f.Kmod.Symbols.MLX5DMABuf
	return append(parts,
		prerequisite{umem, NoDMABuf, "the RDMA core has no DMA-BUF (ib_umem_dmabuf_get)", newerStack, sawSymbol("ib_umem_dmabuf_get", umem)},
		prerequisite{mlx5, NoDMABuf, "mlx5_ib has no DMA-BUF (mlx5_ib_reg_user_mr_dmabuf)", newerMLX5, sawSymbol("mlx5_ib_reg_user_mr_dmabuf", mlx5)})
}

func (f *Facts) dmabufFinding(v Verdict) Finding {
	out := Finding{Check: "dmabuf", Status: either(v.DMABuf, v.Peermem), Sources: []string{nvVersion, kallsyms}}
	switch v.DMABuf {
	case tri.True:
		out.Detail = "the open GPU driver and mlx5 show all that DMA-BUF needs (inferred; only a transfer proves it)"
		if f.devicesSay() == tri.True {
			out.Detail = "the GPU driver is the open one, and mlx5 can register DMA-BUF (only a transfer proves more)"
		}
	case tri.Unknown:
		out.Reason, out.Detail = Unreadable, "the kernel's symbols or the GPU driver's flavour cannot be read"
		out.Fix = "read as root, or in a container that shows /proc/kallsyms"
		for _, p := range f.prerequisites() {
			if p.state == tri.Unknown && p.evidence != "" && !slices.Contains(out.Evidence, p.evidence) {
				out.Evidence = append(out.Evidence, p.evidence)
			}
		}
	case tri.False:
		parts := f.prerequisites()
		first := parts[slices.IndexFunc(parts, func(p prerequisite) bool { return p.state == tri.False })]
		out.Detail = first.lacks
		if v.Peermem != tri.True {
			out.Code, out.Fix, out.Evidence = first.code, first.fix, []string{first.evidence}
		} else {
			out.Detail += "; not needed, peermem serves"
		}
	}
	if len(f.Asked) > 0 {
		out.Detail += "; " + f.asked()
		out.Sources = append(out.Sources, verbsNodes)
	}
	return out
}

// asked lists what devices said when they were asked.
func (f *Facts) asked() string {
	var names [3][]string
	for _, a := range f.Asked {
		names[a.DMABuf] = append(names[a.DMABuf], a.Device)
	}
	var parts []string
	for _, answer := range [...]struct {
		state tri.State
		words string
	}{{tri.True, "can"}, {tri.False, "cannot"}, {tri.Unknown, "gave no clear answer"}} {
		if list := names[answer.state]; len(list) > 0 {
			parts = append(parts, strings.Join(list, " ")+" "+answer.words)
		}
	}
	return "asked: " + strings.Join(parts, ", ")
}
