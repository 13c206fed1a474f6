// Package label names the node labels and says what their values may be; package
// derive gives them. It is pure and knows nothing of how a machine is read.
// Hardware labels change only when hardware changes; state labels follow drivers
// and links. An unknown fact is an absent label.
package label

import (
	"maps"
	"slices"
	"strings"
)

// DefaultPrefix is the namespace NFD publishes labels in.
const DefaultPrefix = "feature.node.kubernetes.io/"

// Labels about the hardware, without prefix.
const (
	Capable     = "gpudirect.rdma.capable"
	Level       = "gdr.level"
	BestLevel   = "gdr.level.best"
	NCCLDefault = "gdr.nccl-default"
	GPUs        = "gdr.gpus"
	NICs        = "gdr.nics"
	Topology    = "gdr.topology"
	DataDirect  = "gdr.datadirect"
)

// Labels about drivers and links, without prefix.
const (
	Ready      = "gpudirect.rdma"
	Reason     = "gdr.reason"
	Peermem    = "gdr.peermem"
	DMABuf     = "gdr.dmabuf"
	PeerDirect = "gdr.peerdirect"
	MOFED      = "gdr.mofed"
	Link       = "gdr.link"
	IOMMU      = "gdr.iommu"
	ACS        = "gdr.acs"
	Storage    = "gpudirect.storage"
	// Expected is not of package derive: it follows from what the owner expects as well.
	Expected = "gdr.expected"
)

// Set is labels by name, without prefix.
type Set map[string]string

// hardware and state are all labels there are.
var (
	hardware = []string{Capable, Level, BestLevel, NCCLDefault, GPUs, NICs, Topology, DataDirect}
	state    = []string{Ready, Reason, Peermem, DMABuf, PeerDirect, MOFED, Link, IOMMU, ACS, Storage, Expected}
)

// Names is a set of labels' names, without prefix.
type Names map[string]bool

// All names every label.
func All() Names {
	n := Names{}
	for _, name := range slices.Concat(hardware, state) {
		n[name] = true
	}
	return n
}

// Hardware tells whether a label is about the hardware.
func Hardware(name string) bool { return slices.Contains(hardware, name) }

// Known tells whether there is such a label, its name without prefix.
func Known(name string) bool { return Hardware(name) || slices.Contains(state, name) }

// Parse gives the name of a label that was published under a key of the usual
// prefix. ok is false for somebody else's, and for a value that is never published.
func Parse(key, value string) (name string, ok bool) {
	name, ok = strings.CutPrefix(key, DefaultPrefix)
	return name, ok && Known(name) && value != "" && value == Value(value)
}

// Hardware gives the labels about the hardware.
func (s Set) Hardware() Set {
	out := Set{}
	for name, value := range s {
		if Hardware(name) {
			out[name] = value
		}
	}
	return out
}

// Prefixed gives the labels with a prefix before each name.
func (s Set) Prefixed(prefix string) map[string]string {
	out := make(map[string]string, len(s))
	for name, value := range s {
		out[prefix+name] = value
	}
	return out
}

// Names lists the labels' names, sorted.
func (s Set) Names() []string { return slices.Sorted(maps.Keys(s)) }

// maxValue is the longest label value Kubernetes accepts.
const maxValue = 63

// Value makes a valid Kubernetes label value of any text: what may not stand in
// one becomes "_", the ends are letters or digits, and it has 63 characters at
// the most (k8s.io/apimachinery, validation.IsValidLabelValue).
func Value(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, text)
	if len(clean) > maxValue {
		clean = clean[:maxValue]
	}
	return strings.Trim(clean, "-_.")
}
