package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/source/pci"
)

func (a *app) topoCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "topo",
		Short: "Show how near each GPU is to each NIC",
		Long: `topo prints the matrix of GPUs and NICs in the manner of nvidia-smi topo -m, without
needing the GPU driver, and what each of them is.`,
		Example: `  gdr-features topo
  gdr-features topo -o json | jq '.pairs[] | select(.level == "PIX")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.OneOf("output", format, "table", "json"); err != nil {
				return err
			}
			r, err := a.collect(cmd.Context(), report.Options{Detail: pci.Everything})
			if err != nil {
				return err
			}
			if format == "json" {
				return render.TopoJSON(a.out, r)
			}
			return render.Topo(a.out, r)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "table", "output format: table or json")
	cli.Words(c, "output", "table", "json")
	return c
}

// overview is what a person sees who types no verb.
func (a *app) overview(ctx context.Context) error {
	r, err := a.collect(ctx, report.Options{Detail: pci.Everything})
	if err != nil {
		return err
	}
	if err := render.Topo(a.out, r); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "\n%s\n", render.Summary(r))
	if err == nil && r.Verdict.Reason != "" && len(r.Map.GPUs) > 0 {
		_, err = fmt.Fprintln(a.out, "gdr-features check says why, and what to do.")
	}
	return err
}
