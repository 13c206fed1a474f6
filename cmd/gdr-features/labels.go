package main

import (
	"context"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"gdr-features/internal/label"
	"gdr-features/internal/render"
	"gdr-features/source/pci"
)

const defaultPrefix = label.DefaultPrefix

type labelOptions struct{ format, prefix string }

func (a *app) labelsCommand() *cobra.Command {
	var o labelOptions
	c := &cobra.Command{
		Use:   "labels",
		Short: "Print the node labels, as a feature file of Node Feature Discovery",
		Long: `labels prints one label a line, key=value, sorted, and nothing else: a valid
feature file of Node Feature Discovery. A machine without NVIDIA GPU has no labels,
and a fact that cannot be read has none. What could not be read is logged on
standard error.`,
		Example: `  gdr-features labels
  gdr-features labels -o json
  gdr-features labels > /etc/kubernetes/node-feature-discovery/features.d/gdr-features.features`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.labels(cmd.Context(), o) },
	}
	c.Flags().StringVarP(&o.format, "output", "o", "text", "output format: text or json")
	c.Flags().StringVar(&o.prefix, "label-prefix", defaultPrefix, "what each label's name begins with: a DNS name and a slash, or nothing")
	words(c, "output", "text", "json")
	return c
}

// prefixShape is a DNS subdomain and a slash, as label keys begin.
var prefixShape = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?$`)

// maxPrefix is the longest DNS subdomain, and the slash.
const maxPrefix = 253 + 1

func (a *app) labels(ctx context.Context, o labelOptions) error {
	if err := oneOf("output", o.format, "text", "json"); err != nil {
		return err
	}
	if !prefixShape.MatchString(o.prefix) || len(o.prefix) > maxPrefix {
		return fmt.Errorf("--label-prefix %q: must be a DNS name and a slash, such as %s", o.prefix, defaultPrefix)
	}
	r, _, err := a.collect(ctx, pci.Needed)
	if err != nil {
		return err
	}
	for _, problem := range r.Problems {
		a.log.Warn(problem)
	}
	if o.format == "json" {
		return render.LabelsJSON(a.out, r.Labels, o.prefix)
	}
	return render.Labels(a.out, r.Labels, o.prefix)
}
