package render

import (
	"io"

	"gdr-features/internal/explain"
	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

type hopJSON struct {
	Role      string            `json:"role"`
	Name      string            `json:"name"`
	Product   string            `json:"product"`
	Device    string            `json:"device"`
	Link      *linkJSON         `json:"link"`
	NUMANode  *int              `json:"numaNode"`
	Group     *groupJSON        `json:"iommuGroup"`
	ACS       *acsJSON          `json:"acs"`
	Turn      bool              `json:"turn"`
	Narrowest bool              `json:"narrowest"`
	Sources   map[string]string `json:"sources"`
}

type linkJSON struct {
	Speed    float64 `json:"speedGTs"`
	Width    int     `json:"width"`
	MaxSpeed float64 `json:"maxSpeedGTs"`
	MaxWidth int     `json:"maxWidth"`
}

type groupJSON struct {
	Number int    `json:"number"`
	Type   string `json:"type"`
}

type acsJSON struct {
	Present  bool     `json:"present"`
	Redirect []string `json:"redirect"`
}

type endJSON struct {
	Name    string `json:"name"`
	Address string `json:"address"`
}

type pathJSON struct {
	GPU        endJSON        `json:"gpu"`
	NIC        endJSON        `json:"nic"`
	Level      topology.Level `json:"level"`
	Why        string         `json:"why"`
	NCCL       topology.Level `json:"nccl"`
	NCCLWhy    string         `json:"ncclWhy"`
	Default    *bool          `json:"ncclDefault"`
	DefaultWhy string         `json:"ncclDefaultWhy"`
	Hops       []hopJSON      `json:"hops"`
	DataDirect []hopJSON      `json:"dataDirect"`
	Notes      []string       `json:"notes"`
	Problems   []string       `json:"problems"`
}

// ExplainPairJSON writes one path.
func ExplainPairJSON(w io.Writer, r *report.Report, p explain.Path) error {
	return show.JSON(w, pathJSON{
		GPU: gpuEnd(r, p.GPU), NIC: nicEnd(r, p.NIC),
		Level: p.Level, Why: p.Why, NCCL: p.NCCL, NCCLWhy: p.NCCLWhy, Default: known(p.Default), DefaultWhy: p.DefaultWhy,
		Hops: hopsJSON(p.Hops), DataDirect: hopsJSON(p.DataDirect),
		Notes: append([]string{}, p.Notes...), Problems: sanitize.Errors(r.Problems),
	})
}

func gpuEnd(r *report.Report, i int) endJSON {
	return endJSON{explain.GPUName(i), r.Matrix.GPUs[i].Address.String()}
}

func nicEnd(r *report.Report, i int) endJSON {
	n := &r.Matrix.NICs[i]
	return endJSON{explain.NICName(n), n.Address()}
}

func hopsJSON(list []explain.Hop) []hopJSON {
	out := []hopJSON{}
	for _, h := range list {
		j := hopJSON{Role: h.Role, Name: h.Name, Turn: h.Turn, Narrowest: h.Narrowest, Sources: map[string]string{}}
		if f := h.Function; f != nil {
			j.function(f, h.IOMMU)
		}
		out = append(out, j)
	}
	return out
}

// function fills in what is known of a PCI function, and the files it is read from.
func (j *hopJSON) function(f *pci.Function, groupType string) {
	file := f.Address.File
	j.Product, j.Device = f.Name(), hex4(f.Vendor)+":"+hex4(f.Device)
	j.Sources["name"], j.Sources["product"] = file(""), file(f.IDFile)
	if l := f.Link; l != nil {
		j.Link = &linkJSON{l.Speed, l.Width, l.MaxSpeed, l.MaxWidth}
		j.Sources["link.speedGTs"], j.Sources["link.width"] = file(pci.LinkSpeedFile), file(pci.LinkWidthFile)
		j.Sources["link.maxSpeedGTs"], j.Sources["link.maxWidth"] = file(pci.MaxLinkSpeedFile), file(pci.MaxLinkWidthFile)
	}
	if f.NUMA != pci.Unread {
		j.NUMANode, j.Sources["numaNode"] = &f.NUMA, file(pci.NUMAFile)
	}
	if f.IOMMUGroup >= 0 {
		j.Group = &groupJSON{f.IOMMUGroup, groupType}
		j.Sources["iommuGroup.number"] = file(pci.IOMMUGroupFile)
		j.Sources["iommuGroup.type"] = platform.GroupFile(f.IOMMUGroup)
	}
	if f.Bridge() && f.ACS != nil {
		j.ACS = &acsJSON{f.ACS.Present, append([]string{}, f.ACS.Redirects()...)}
		j.Sources["acs"] = file(pci.ConfigFile)
	}
}

type nearestJSON struct {
	GPU     endJSON        `json:"gpu"`
	Level   topology.Level `json:"level"`
	NCCL    topology.Level `json:"nccl"`
	Default *bool          `json:"ncclDefault"`
	NICs    []endJSON      `json:"nics"`
	Way     []string       `json:"way"`
}

type explainJSON struct {
	Ready    tristate.State `json:"ready"`
	Reason   verdict.Reason `json:"reason"`
	Nearest  []nearestJSON  `json:"nearest"`
	Chain    []explain.Step `json:"chain"`
	Problems []string       `json:"problems"`
}

// ExplainJSON writes the nearest NICs and the chain from hardware to GPU memory.
func ExplainJSON(w io.Writer, r *report.Report) error {
	out := explainJSON{
		Ready: r.Verdict.Ready, Reason: r.Verdict.Reason, Nearest: []nearestJSON{}, Chain: explain.Stack(&r.Node, r.Findings),
		Problems: sanitize.Errors(r.Problems),
	}
	for _, n := range explain.NearestNICs(&r.Node) {
		out.Nearest = append(out.Nearest, nearestOf(r, n))
	}
	return show.JSON(w, out)
}

func nearestOf(r *report.Report, n explain.Nearest) nearestJSON {
	j := nearestJSON{GPU: gpuEnd(r, n.GPU), Level: n.Level, NCCL: n.NCCL, Default: known(n.Default), NICs: []endJSON{}, Way: []string{}}
	for _, i := range n.NICs {
		j.NICs = append(j.NICs, nicEnd(r, i))
	}
	for _, h := range n.Hops {
		j.Way = append(j.Way, h.Name)
	}
	return j
}

type levelJSON struct {
	NIC   endJSON        `json:"nic"`
	Level topology.Level `json:"level"`
	NCCL  topology.Level `json:"nccl"`
}

// ExplainGPUJSON writes the nearest NICs of a GPU, and its level with every NIC.
func ExplainGPUJSON(w io.Writer, r *report.Report, gpu int) error {
	out := struct {
		Nearest  nearestJSON `json:"nearest"`
		Levels   []levelJSON `json:"levels"`
		Problems []string    `json:"problems"`
	}{nearestOf(r, explain.NearestNICs(&r.Node)[gpu]), []levelJSON{}, sanitize.Errors(r.Problems)}
	for _, p := range r.Matrix.PairsOf(gpu) {
		out.Levels = append(out.Levels, levelJSON{nicEnd(r, p.NIC), p.Level, p.NCCL})
	}
	return show.JSON(w, out)
}
