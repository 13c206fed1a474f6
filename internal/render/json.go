// Package render shows a report to people and to programs: tables and JSON.
package render

import (
	"io"

	"gdr-features/internal/findings"
	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
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
	return functionJSON{f.Family(), hex4(f.Device), f.Name(), max(f.NUMA, pci.None), f.RootBus, f.Driver}
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
		out.GPUs = append(out.GPUs, gpuJSON{g.Address.String(), function(g.Function), g.Eligible})
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
	out := nicJSON{n.Address(), n.Name(), function(n.Function), n.Eligible, n.Aside(), []portJSON{}}
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

func finding(f *findings.Finding) findingJSON {
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
	// Expected and MachineType are there only with --expect; the type is "" where
	// none matches.
	Expected    *tristate.State `json:"expected,omitempty"`
	MachineType *string         `json:"machineType,omitempty"`
	// Pod is there only with --pod: whether the findings about the container let it use
	// GPUDirect RDMA.
	Pod *tristate.State `json:"pod,omitempty"`
}

// CheckJSON writes the verdict and its findings.
func CheckJSON(w io.Writer, r *report.Report) error {
	v := &r.Verdict
	out := checkJSON{
		Capable: v.Capable, Ready: v.Ready, Reason: string(v.Reason), Peermem: v.Peermem, DMABuf: v.DMABuf,
		PeerDirect: string(r.PeerDirect()), MOFED: nodelabel.MOFED(r.Kmod.MOFED),
		Level: r.Matrix.Level, LevelBest: r.Matrix.Best, NCCLDefault: known(r.Matrix.NCCLDefault), Findings: []findingJSON{},
		Problems: sanitize.Errors(r.Problems),
	}
	if r.Expected != nil {
		out.Expected, out.MachineType = &r.Expected.State, &r.Expected.Type
	}
	if r.Pod != nil {
		out.Pod = new(findings.InPod(r.Findings))
	}
	for i := range r.Findings {
		out.Findings = append(out.Findings, finding(&r.Findings[i]))
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
