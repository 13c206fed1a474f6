// Package label has sets of node labels, their names and what their values may be.
// The table of the labels is in package nodelabel. This package is pure and knows
// nothing of how a machine is read, so kubectl-gdr can use it on any system.
package label

import (
	"maps"
	"slices"
	"strings"
)

// DefaultPrefix is the namespace NFD publishes labels in.
const DefaultPrefix = "feature.node.kubernetes.io/"

// Names that other packages refer to, without prefix.
const (
	Capable     = "gpudirect.rdma.capable"
	ConnectX    = "gpudirect.rdma.connectx"
	Level       = "gdr.level"
	BestLevel   = "gdr.level.best"
	NCCLDefault = "gdr.nccl-default"
	GPUs        = "gdr.gpus"
	NICs        = "gdr.nics"
	Topology    = "gdr.topology"
	DataDirect  = "gdr.datadirect"
	Align       = "gdr.align"

	Ready      = "gpudirect.rdma"
	Reason     = "gdr.reason"
	Peermem    = "gdr.peermem"
	DMABuf     = "gdr.dmabuf"
	PeerDirect = "gdr.peerdirect"
	MOFED      = "gdr.mofed"
	Rate       = "gdr.rate"
	Link       = "gdr.link"
	IOMMU      = "gdr.iommu"
	ACS        = "gdr.acs"
	Storage    = "gpudirect.storage"
	Expected   = "gdr.expected"
	Degraded   = "gdr.degraded"
)

// Set is labels by name, without prefix. A fact that is not known has no label.
type Set map[string]string

// Names is a set of labels' names, without prefix.
type Names map[string]bool

// Ours reports whether a name, without prefix, is that of one of our labels, also of a
// program of another version.
func Ours(name string) bool {
	return strings.HasPrefix(name, "gdr.") || strings.HasPrefix(name, "gpudirect.")
}

// Parse returns the name of a published label from its key with DefaultPrefix. ok is
// false for a label that is not ours, and for a value that is never published.
func Parse(key, value string) (name string, ok bool) {
	name, ok = strings.CutPrefix(key, DefaultPrefix)
	return name, ok && Ours(name) && value != "" && value == Value(value)
}

// Published returns those of the labels of an object that are ours.
func Published(labels map[string]string) Set {
	ours := Set{}
	for key, value := range labels {
		if name, ok := Parse(key, value); ok {
			ours[name] = value
		}
	}
	return ours
}

// Prefixed returns the labels with a prefix before each name.
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

// Value makes a valid Kubernetes label value of any text: each character that is not
// allowed becomes "_", other characters than letters and digits are cut off both
// ends, and it has at most 63 characters (k8s.io/apimachinery,
// validation.IsValidLabelValue).
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
