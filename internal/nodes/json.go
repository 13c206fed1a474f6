package nodes

import (
	"io"
	"strconv"
	"time"

	"gdr-features/internal/label"
	"gdr-features/internal/show"
)

type nodeJSON struct {
	Node      string `json:"node"`
	Namespace string `json:"namespace"`
	// States are true, false or unknown; "" on a node without labels.
	Capable string `json:"capable"`
	Ready   string `json:"ready"`
	Reason  string `json:"reason"`
	Peermem string `json:"peermem"`
	DMABuf  string `json:"dmabuf"`
	Storage string `json:"storage"`
	// Expected is also unknown where the agent runs without --expect.
	Expected string `json:"expected"`
	// The rest is "" or null where it is unknown.
	PeerDirect  string    `json:"peerdirect"`
	MOFED       string    `json:"mofed"`
	Level       string    `json:"level"`
	LevelBest   string    `json:"levelBest"`
	NCCLDefault *bool     `json:"ncclDefault"`
	GPUs        *int      `json:"gpus"`
	NICs        *int      `json:"nics"`
	DataDirect  bool      `json:"dataDirect"`
	Topology    string    `json:"topology"`
	Rate        *int      `json:"rate"`
	Link        string    `json:"link"`
	IOMMU       string    `json:"iommu"`
	ACS         string    `json:"acs"`
	GPUProducts []Product `json:"gpuProducts"`
	NICProducts []Product `json:"nicProducts"`
	// Written is when the agent last changed what it publishes.
	Written *time.Time `json:"written"`
}

// JSON writes the nodes and their summary.
func JSON(w io.Writer, all []Node) error {
	out := struct {
		Nodes   []nodeJSON `json:"nodes"`
		Summary Summary    `json:"summary"`
	}{[]nodeJSON{}, Summarize(all)}
	for i := range all {
		out.Nodes = append(out.Nodes, all[i].json())
	}
	return show.JSON(w, out)
}

// SummaryJSON writes only the summary, under the same key as JSON.
func SummaryJSON(w io.Writer, s Summary) error {
	return show.JSON(w, map[string]Summary{"summary": s})
}

func (n *Node) json() nodeJSON {
	out := nodeJSON{
		Node: n.Name, Namespace: n.Namespace,
		Capable: n.state(label.Capable), Ready: n.state(label.Ready), Reason: n.Labels[label.Reason],
		Peermem: n.state(label.Peermem), DMABuf: n.state(label.DMABuf), Storage: n.state(label.Storage), Expected: n.state(label.Expected),
		PeerDirect: n.Labels[label.PeerDirect], MOFED: n.Labels[label.MOFED],
		Level: n.Labels[label.Level], LevelBest: n.Labels[label.BestLevel],
		GPUs: number(n.Labels[label.GPUs]), NICs: number(n.Labels[label.NICs]),
		DataDirect: n.Labels[label.DataDirect] == "true", Topology: n.Labels[label.Topology],
		Rate: number(n.Labels[label.Rate]), Link: n.Labels[label.Link], IOMMU: n.Labels[label.IOMMU], ACS: n.Labels[label.ACS],
		GPUProducts: append([]Product{}, n.GPUs...), NICProducts: append([]Product{}, n.NICs...),
	}
	if s := n.state(label.NCCLDefault); s == "true" || s == "false" {
		known := s == "true"
		out.NCCLDefault = &known
	}
	if !n.Written.IsZero() {
		written := n.Written.UTC()
		out.Written = &written
	}
	return out
}

// number returns nil for a text that is not a number.
func number(text string) *int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return &n
}
