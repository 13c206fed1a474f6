// Package render shows a report to people and to programs: tables and JSON.
package render

import (
	"io"

	"gdr-features/internal/finding"
	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/explain"
	"gdr-features/internal/rooms/pod"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
	"gdr-features/internal/view"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

type functionJSON struct {
	Family   string `json:"family"`
	Device   string `json:"device"`
	Name     string `json:"name"`
	NUMANode int    `json:"numaNode"`
	PCIeRoot string `json:"pcieRoot"`
	Driver   string `json:"driver"`
}

func function(f *pci.Function) functionJSON {
	if f == nil {
		return functionJSON{NUMANode: pci.None}
	}
	return functionJSON{f.Family(), show.Hex(f.Device), f.Name(), max(f.NUMA, pci.None), f.RootBus, f.Driver}
}

type gpuJSON struct {
	Address string `json:"address"`
	functionJSON
	Eligible bool `json:"eligible"`
}

type nicJSON struct {
	Address string `json:"address"`
	RDMA    string `json:"rdma"`
	functionJSON
	Eligible bool       `json:"eligible"`
	Role     string     `json:"role"` // "north-south", or "excluded" by the user; "" for the others
	Ports    []portJSON `json:"ports"`
	// Of a NIC that is in no table: its vendor, which no family tells, and that it is not judged.
	Vendor string `json:"vendor,omitempty"`
	Note   string `json:"note,omitempty"`
}

type portJSON struct {
	Port      int     `json:"port"`
	State     string  `json:"state"`
	LinkLayer string  `json:"linkLayer"`
	RateGbps  float64 `json:"rateGbps"`
}

type pairJSON struct {
	GPU    string         `json:"gpu"`
	NIC    string         `json:"nic"`
	RDMA   string         `json:"rdma"`
	Level  topology.Level `json:"level"`
	NCCL   topology.Level `json:"nccl"`
	Bridge string         `json:"bridge"`
}

type topoJSON struct {
	Topology string     `json:"topology"`
	GPUs     []gpuJSON  `json:"gpus"`
	NICs     []nicJSON  `json:"nics"`
	Pairs    []pairJSON `json:"pairs"`
	Problems []string   `json:"problems"`
}

// TopoJSON writes GPUs, NICs and every pair.
func TopoJSON(w io.Writer, r *report.Report) error {
	out := topoJSON{
		Topology: string(r.Matrix.Origin),
		GPUs:     []gpuJSON{}, NICs: []nicJSON{}, Pairs: []pairJSON{},
		Problems: sanitize.Errors(r.Problems),
	}
	for _, g := range r.Matrix.GPUs {
		out.GPUs = append(out.GPUs, gpuJSON{g.Address.String(), function(g.Function), g.Counts()})
	}
	for _, n := range r.Matrix.NICs {
		out.NICs = append(out.NICs, nic(&n))
	}
	for _, p := range r.Matrix.Pairs {
		n := &r.Matrix.NICs[p.NIC]
		pair := pairJSON{GPU: r.Matrix.GPUs[p.GPU].Address.String(), NIC: n.Address(), RDMA: n.Name(), Level: p.Level, NCCL: p.NCCL}
		if p.Bridge != nil {
			pair.Bridge = p.Bridge.String()
		}
		out.Pairs = append(out.Pairs, pair)
	}
	return show.JSON(w, out)
}

func nic(n *topology.NIC) nicJSON {
	out := nicJSON{
		Address: n.Address(), RDMA: n.Name(), functionJSON: function(n.Function), Eligible: n.Counts(), Role: n.Aside(), Ports: []portJSON{},
	}
	if view.InNoTable(n) {
		out.Vendor, out.Note = show.Hex(n.Function.Vendor), "in no table: listed and not judged"
	}
	if n.RDMA != nil {
		for _, p := range n.RDMA.Ports {
			out.Ports = append(out.Ports, portJSON{p.Number, p.State, p.LinkLayer, p.RateGbps})
		}
	}
	return out
}

type findingJSON struct {
	Check   string   `json:"check"`
	Status  string   `json:"status"`
	Reason  string   `json:"reason"`
	Detail  string   `json:"detail"`
	Fix     string   `json:"fix"`
	Sources []string `json:"sources"`
	// Code names what was found, Help is the page about it; "" where Status is OK.
	Code string `json:"code"`
	Help string `json:"help"`
	// Evidence are the files that matter with what they held, "file=value".
	Evidence []string `json:"evidence"`
}

func findingOf(f *finding.Finding) findingJSON {
	out := findingJSON{
		Check: f.Check, Status: string(f.Status), Reason: string(f.Reason), Detail: f.Detail, Fix: f.FixText(),
		Sources: f.Sources, Code: string(f.Code), Evidence: append([]string{}, f.Evidence...),
	}
	if f.Code != "" {
		out.Help = "docs/reasons/" + string(f.Code) + ".md"
	}
	return out
}

type checkJSON struct {
	Capable    tristate.State `json:"capable"`
	Ready      tristate.State `json:"ready"`
	Reason     string         `json:"reason"`
	Peermem    tristate.State `json:"peermem"`
	DMABuf     tristate.State `json:"dmabuf"`
	PeerDirect string         `json:"peerdirect"`
	MOFED      string         `json:"mofed"`
	Level      topology.Level `json:"level"`
	LevelBest  topology.Level `json:"levelBest"`
	// NCCLDefault is null when it is not known.
	NCCLDefault *bool         `json:"ncclDefault"`
	Findings    []findingJSON `json:"findings"`
	Problems    []string      `json:"problems"`
	// Expected and MachineType are for --expect; the type is "" where none matches.
	Expected    *tristate.State `json:"expected,omitempty"`
	MachineType *string         `json:"machineType,omitempty"`
	// Pod is for --pod: whether the container's findings let it use GPUDirect RDMA.
	Pod *tristate.State `json:"pod,omitempty"`
}

// CheckJSON writes the verdict and its findings; inPod, with those about a container.
func CheckJSON(w io.Writer, r *report.Report, inPod bool) error {
	v := &r.Verdict
	out := checkJSON{
		Capable: v.Capable, Ready: v.Ready, Reason: string(v.Reason), Peermem: v.Peermem, DMABuf: v.DMABuf,
		PeerDirect: string(r.PeerDirect()), MOFED: nodelabel.MOFED(r.Kmod.MOFED),
		Level: r.Matrix.Hardware.Level, LevelBest: r.Matrix.Best, NCCLDefault: known(r.Matrix.Hardware.NCCLDefault), Findings: []findingJSON{},
		Problems: sanitize.Errors(r.Problems),
	}
	if r.Expected != nil {
		out.Expected, out.MachineType = &r.Expected.State, &r.Expected.Type
	}
	if inPod {
		out.Pod = new(pod.Ready(r.Findings))
	}
	for i := range r.Findings {
		out.Findings = append(out.Findings, findingOf(&r.Findings[i]))
	}
	return show.JSON(w, out)
}

// known returns a state as a boolean, nil for unknown.
func known(s tristate.State) *bool {
	if s == tristate.Unknown {
		return nil
	}
	return new(s == tristate.True)
}

// LabelsJSON writes labels with their prefix.
func LabelsJSON(w io.Writer, labels label.Set, prefix string) error {
	return show.JSON(w, map[string]map[string]string{"labels": labels.Prefixed(prefix)})
}

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
	j.Product, j.Device = f.Name(), show.Hex(f.Vendor)+":"+show.Hex(f.Device)
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

// ExplainNICJSON writes a NIC's level with every GPU.
func ExplainNICJSON(w io.Writer, r *report.Report, nic int) error {
	type level struct {
		GPU     endJSON        `json:"gpu"`
		Level   topology.Level `json:"level"`
		NCCL    topology.Level `json:"nccl"`
		Nearest string         `json:"nearest"` // "yes", "no", or "?" for unknown
	}
	n := &r.Matrix.NICs[nic]
	out := struct {
		NIC      endJSON  `json:"nic"`
		State    string   `json:"state"`
		Levels   []level  `json:"levels"`
		Problems []string `json:"problems"`
	}{nicEnd(r, nic), view.NICNote(n), []level{}, sanitize.Errors(r.Problems)}
	for i := range r.Matrix.GPUs {
		p := &r.Matrix.PairsOf(i)[nic]
		out.Levels = append(out.Levels, level{gpuEnd(r, i), p.Level, p.NCCL, isNearest(r, i, nic)})
	}
	return show.JSON(w, out)
}
