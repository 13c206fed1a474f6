package nfdsource

import (
	"context"
	"errors"
	"strings"

	"sigs.k8s.io/node-feature-discovery/source"

	"gdr-features/host"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/source/pci"
)

// Name is the name of the source that knows the whole node.
const Name = "gdr"

// Node is the source of the labels, and of raw features about GPUs, NICs and how
// near they are to each other; see Features.
type Node struct{ base }

var (
	_ source.FeatureSource = (*Node)(nil)
	_ source.LabelSource   = (*Node)(nil)
)

// NewNode gives the source gdr.
func NewNode(fs *host.FS) *Node { return &Node{base{name: Name, fs: fs}} }

// Discover reads and judges the machine. The error tells that the PCI bus cannot
// be read; then there are neither features nor labels.
func (s *Node) Discover() error {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	r := report.Collect(ctx, s.fs, report.Options{Detail: pci.Published})
	if !r.PCIRead {
		return s.failed(errors.New(strings.Join(r.Problems, "; ")))
	}
	problems := make([]error, len(r.Problems))
	for i, text := range r.Problems {
		problems[i] = errors.New(text)
	}
	s.keep(features(&r, ""), problems)
	return nil
}

// GetLabels gives the labels that the last Discover found, none where there is
// no NVIDIA GPU. Each name has its namespace: the worker takes such a name as it
// is, and would put the name of the source before any other. It never fails.
func (s *Node) GetLabels() (source.FeatureLabels, error) {
	labels := source.FeatureLabels{}
	for name, value := range s.GetFeatures().Attributes[nodeFeature].Elements {
		labels[label.DefaultPrefix+name] = value
	}
	return labels, nil
}

// Priority is that of NFD's own sources: an administrator's custom rules (10)
// and feature files (20) have the last word on a label.
func (s *Node) Priority() int { return 0 }
