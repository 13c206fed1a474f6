// Package nodes shows a cluster at a glance: a line for each node from what its agent
// has published, how many nodes are ready, and why the others are not. It is pure;
// package apiserver reads the nodes.
package nodes

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gdr-features/internal/journal"
	"gdr-features/internal/label"
)

// Node is what the agent of a node has published.
type Node struct {
	Name, Namespace string
	// Labels are those of the agent, without prefix. There are none on a node without
	// an NVIDIA or AMD GPU, nor after `gdr-features run --cleanup`.
	Labels label.Set
	// Written is when the agent last changed the object; zero for unknown.
	Written time.Time
	// Changes are those of its journal, the oldest first. JournalError is why it cannot be read.
	Changes      []journal.Change
	JournalError error
	// Findings are what is not as it should be, what failed first.
	Findings []Finding
	// GPUs and NICs are the products found, eligible or not.
	GPUs, NICs []Product
	// Hardware is nil unless it was asked for.
	Hardware *Hardware
}

// Finding is what a check says of a node. An older agent publishes only codes.
type Finding struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Code   string `json:"code"`
}

// Statuses of findings that are not as they should be.
const (
	Fail = "FAIL"
	Warn = "WARN"
)

// Codes are those of what is not as it should be, without the reason why the node is not ready.
func (n *Node) Codes() (codes []string) {
	for _, f := range n.Findings {
		if f.Code != n.Labels[label.Reason] && !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// changed is when something last changed on the node, as far as that is known; zero for unknown.
func (n *Node) changed() time.Time {
	if len(n.Changes) > 0 {
		return n.Changes[len(n.Changes)-1].Time
	}
	return n.Written
}

// Hardware are the GPUs and NICs that the agent of a node has published, eligible or not.
type Hardware struct {
	// GPUs have an entry each, NICs one for each RDMA device.
	GPUs, NICs []Function
	// Software is nil where an older agent has published, or one that had to leave NICs out.
	Software *Software
}

// Software are versions of a node. Text that is not known is "".
type Software struct {
	Kernel     string `json:"kernel"`        // its release
	Driver     string `json:"driverVersion"` // that of the GPU driver
	DriverOpen string `json:"driverOpen"`    // "true" for open kernel modules of that, "false" for others
}

// Function is a PCI function as an agent publishes it. Text that is not known is "".
type Function struct {
	Address  string `json:"address"`  // "0000:1b:00.0"
	Family   string `json:"family"`   // "nvidia", "mlx5"
	Device   string `json:"device"`   // the PCI device ID, "2330"
	Name     string `json:"name"`     // of the product
	NUMANode string `json:"numaNode"` // "0"
	// The rest is of NICs.
	Role     string `json:"role"`      // see Product
	RDMA     string `json:"rdma"`      // the name of its RDMA device
	Rail     string `json:"rail"`      // its number among the NICs that jobs use, "0"; "" for others
	State    string `json:"state"`     // of its port, "ACTIVE"
	Link     string `json:"linkLayer"` // "InfiniBand"
	Rate     string `json:"rateGbps"`  // "400"
	MTU      string `json:"mtu"`       // the active one in bytes, "4096"
	GIDIndex string `json:"gidIndex"`  // of the GID that NCCL chooses, "3"
}

// Product is how many devices there are of one name and role.
type Product struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
	// Role says what NICs are for instead of GPUs: "north-south", or "excluded" by the user
	// (--nic-exclude); "" for all others.
	Role string `json:"role,omitempty"`
}

// Sort sorts by name of the node, then namespace.
func Sort(all []Node) {
	slices.SortFunc(all, func(a, b Node) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
	})
}

// Unknown is the state of a fact whose label is absent.
const Unknown = "unknown"

// state returns "true", "false" or Unknown by a label; "" on a node without labels.
func (n *Node) state(name string) string {
	switch value := n.Labels[name]; {
	case len(n.Labels) == 0:
		return ""
	case value == "true", value == "false":
		return value
	}
	return Unknown
}

// mechanism names the ways a NIC can reach GPU memory; "" for none or unknown.
func (n *Node) mechanism() string {
	switch peermem, dmabuf := n.Labels[label.Peermem] == "true", n.Labels[label.DMABuf] == "true"; {
	case peermem && dmabuf:
		return "both"
	case peermem:
		return "peermem"
	case dmabuf:
		return "DMA-BUF"
	}
	return ""
}

// Summary counts nodes.
type Summary struct {
	Nodes    int `json:"nodes"`
	Ready    int `json:"ready"`
	NotReady int `json:"notReady"`
	Unknown  int `json:"unknown"`
	// Unlabelled is the number of nodes without labels.
	Unlabelled int `json:"unlabelled"`
	// Reasons are those of nodes that are not ready, the most frequent first.
	Reasons []Reason `json:"reasons"`
	// Warned is the number of ready nodes that have findings, and Warnings are the codes of these.
	Warned   int      `json:"warned"`
	Warnings []Reason `json:"warnings"`
}

// Reason is a reason with the number of nodes that have it.
type Reason struct {
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
}

// Summarize counts nodes and reasons.
func Summarize(all []Node) Summary {
	s := Summary{Nodes: len(all)}
	byState := map[string]*int{"true": &s.Ready, "false": &s.NotReady, Unknown: &s.Unknown, "": &s.Unlabelled}
	reasons, warnings := map[string]int{}, map[string]int{}
	for i := range all {
		*byState[all[i].state(label.Ready)]++
		if reason := all[i].Labels[label.Reason]; reason != "" {
			reasons[reason]++
		}
		codes := all[i].Codes()
		if len(codes) == 0 || all[i].state(label.Ready) != "true" {
			continue
		}
		s.Warned++
		for _, code := range codes {
			warnings[code]++
		}
	}
	s.Reasons, s.Warnings = frequent(reasons), frequent(warnings)
	return s
}

// frequent are counted codes, the most frequent first.
func frequent(counts map[string]int) []Reason {
	all := []Reason{}
	for code, n := range counts {
		all = append(all, Reason{code, n})
	}
	slices.SortFunc(all, func(a, b Reason) int {
		return cmp.Or(b.Nodes-a.Nodes, strings.Compare(a.Reason, b.Reason))
	})
	return all
}
