package verdict

import (
	"slices"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// prerequisite is one thing DMA-BUF needs, and what to say when it is missing.
// evidence is asked for only then, and when it is unknown.
type prerequisite struct {
	state      tristate.State
	code       Code
	lacks, fix string
	evidence   func() string
}

const (
	newerStack = "use Linux 5.12 or newer, or MOFED 5.5 or newer"
	newerMLX5  = newerStack + ", with mlx5_ib loaded"
)

// dmabuf: the GPU driver can export memory as DMA-BUF and the RDMA stack can
// register it, as far as both show.
func (f *Facts) dmabuf() tristate.State {
	all := tristate.True
	for _, p := range f.prerequisites() {
		all = tristate.And(all, p.state)
	}
	return all
}

// prerequisites are in the order in which the first missing one is named.
func (f *Facts) prerequisites() []prerequisite {
	driver := &f.Kmod.Driver
	without := GPUDriverNotLoaded
	if f.allPassthrough() == tristate.True {
		without = GPUPassthrough
	}
	loaded := prerequisite{
		driver.Loaded, Code(without), "no GPU driver is loaded", "see gpu-driver",
		func() string { return sawFile("/sys/module/nvidia", driver.Loaded) },
	}
	bound := prerequisite{
		f.gpuDriven(), Code(without), "no eligible GPU is bound to the NVIDIA driver", "see gpu-driver",
		func() string { return strings.Join(f.drivers((*pci.Function).GPUEligible), " ") },
	}
	turing := prerequisite{
		f.turing(), PreTuring, "no eligible GPU that the driver drives is of the Turing generation or newer",
		"use nvidia-peermem: DMA-BUF needs Turing or newer",
		func() string { return strings.Join(f.ids(pci.GPU), " ") },
	}
	open := prerequisite{
		driver.Open, ClosedDriver, "the GPU driver is not the open kernel module",
		"install the open kernel modules (GPU Operator: kernelModuleType open), for Turing or newer",
		func() string { return saw(nvVersion, strings.TrimSpace(driver.Version+" "+flavour(driver.Open))) },
	}
	device := prerequisite{
		f.mlx5Device(), NoMLX5Device, "no eligible adapter has an RDMA device of mlx5",
		"DMA-BUF needs ConnectX-4 or newer with mlx5_ib",
		func() string { return strings.Join(f.drivers((*pci.Function).NICEligible), " ") },
	}
	// Hardware before drivers: open ones do not drive older GPUs.
	parts := []prerequisite{loaded, bound, turing, open, device}
	if f.mlx() == "mlx4" {
		parts = []prerequisite{loaded, bound, turing, device, open}
	}
	return append(parts, f.registration()...)
}

// registration is what the RDMA stack needs to register DMA-BUF: what the devices
// said where they were asked, otherwise the kernel's symbols.
func (f *Facts) registration() []prerequisite {
	if said := f.devicesSay(); said != tristate.Unknown {
		return []prerequisite{{
			said, DMABufRefused, "the RDMA devices cannot register DMA-BUF",
			newerStack + ", with CONFIG_INFINIBAND_ON_DEMAND_PAGING",
			func() string { return saw(verbsNodes, "operation not supported") },
		}}
	}
	umem, mlx5 := f.Kmod.Symbols.UmemDMABuf, f.Kmod.Symbols.MLX5DMABuf
	return []prerequisite{
		{
			umem, NoDMABuf, "the RDMA core has no DMA-BUF (ib_umem_dmabuf_get)", newerStack,
			func() string { return sawSymbol("ib_umem_dmabuf_get", umem) },
		},
		{
			mlx5, NoDMABuf, "mlx5_ib has no DMA-BUF (mlx5_ib_reg_user_mr_dmabuf)", newerMLX5,
			func() string { return sawSymbol("mlx5_ib_reg_user_mr_dmabuf", mlx5) },
		},
	}
}

func (f *Facts) dmabufFinding(v Verdict) Finding {
	out := Finding{Check: "dmabuf", Status: either(v.DMABuf, v.Peermem), Sources: []string{nvVersion, kallsyms}}
	switch parts := f.prerequisites(); v.DMABuf {
	case tristate.True:
		out.Detail = "the open GPU driver and mlx5 show all that DMA-BUF needs (inferred; only a transfer proves it)"
		if f.devicesSay() == tristate.True {
			out.Detail = "the GPU driver is the open one, and mlx5 can register DMA-BUF (only a transfer proves more)"
		}
	case tristate.Unknown:
		out.Reason, out.Detail = Unreadable, "the kernel's symbols or the GPU driver's flavour cannot be read"
		out.Fix = "read as root, or in a container that shows /proc/kallsyms"
		for _, p := range parts {
			if p.state != tristate.Unknown {
				continue
			}
			if evidence := p.evidence(); evidence != "" && !slices.Contains(out.Evidence, evidence) {
				out.Evidence = append(out.Evidence, evidence)
			}
		}
	case tristate.False:
		for _, p := range parts {
			if p.state == tristate.False {
				out.missing(p, v.Peermem)
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
func (out *Finding) missing(p prerequisite, peermem tristate.State) {
	out.Detail = p.lacks
	if peermem == tristate.True {
		out.Detail += "; not needed, peermem serves"
		return
	}
	out.Code, out.Fix, out.Evidence = p.code, p.fix, []string{p.evidence()}
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
