package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/label"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
)

type labelOptions struct{ format, prefix, expect string }

func (a *app) labelsCommand() *cobra.Command {
	var o labelOptions
	c := &cobra.Command{
		Use:   "labels",
		Short: "Print the node labels, as a feature file of Node Feature Discovery",
		Long: `labels prints one label a line, key=value, sorted, and nothing else: a valid
feature file of Node Feature Discovery. A machine without an NVIDIA or AMD GPU has no
labels, and an unreadable fact produces no label. What could not be read is logged
on standard error.`,
		Example: `  gdr-features labels
  gdr-features labels -o json
  cd /etc/kubernetes/node-feature-discovery   # NFD must never see half a file: write it elsewhere, then move it
  gdr-features labels > gdr.tmp && mv gdr.tmp features.d/gdr-features.features`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.labels(cmd.Context(), o) },
	}
	cli.Output(c, &o.format, "text or json", "text", "json")
	c.Flags().StringVar(&o.prefix, "label-prefix", label.DefaultPrefix, "prefix of all labels: a DNS name and a slash, or nothing")
	expectFlag(c, &o.expect)
	return c
}

// validPrefix accepts what label keys may begin with: a DNS subdomain and a slash, or nothing.
func validPrefix(prefix string) bool {
	name, slash := strings.CutSuffix(prefix, "/")
	return prefix == "" || slash && validDNSName(name)
}

// validDNSName accepts a DNS subdomain, as the names of most Kubernetes objects must be
// (k8s.io/apimachinery, validation.IsDNS1123Subdomain).
func validDNSName(name string) bool {
	const part, longest = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, 253
	ok, err := regexp.MatchString("^"+part+`(\.`+part+")*$", name)
	return ok && err == nil && len(name) <= longest
}

func (a *app) labels(ctx context.Context, o labelOptions) error {
	if !validPrefix(o.prefix) {
		return fmt.Errorf("--label-prefix %q: must be a DNS name and a slash, such as %s", o.prefix, label.DefaultPrefix)
	}
	want, err := machineflags.ExpectOnce(o.expect)
	if err != nil {
		return err
	}
	limit := time.AfterFunc(a.limit+labelsLimit, func() {
		a.log.Errorf("gave up after %v", a.limit+labelsLimit)
		a.exit(1)
	})
	defer limit.Stop()
	r, err := a.collect(ctx, report.ForLabels.Expecting(want))
	if err != nil {
		return err
	}
	a.warn(r)
	if o.format == "json" {
		return render.LabelsJSON(a.out, r.Labels, o.prefix)
	}
	return render.Labels(a.out, r.Labels, o.prefix)
}
