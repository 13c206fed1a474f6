package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gdr-features/internal/host"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/source/pci"
	"gdr-features/source/pci/names"
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
			if err := oneOf("output", format, "table", "json"); err != nil {
				return err
			}
			r, fs, err := a.collect(cmd.Context(), pci.Everything)
			if err != nil {
				return err
			}
			if format == "json" {
				return render.TopoJSON(a.out, r, a.names(cmd.Context(), fs, r))
			}
			return render.Topo(a.out, r, a.names(cmd.Context(), fs, r))
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "table", "output format: table or json")
	words(c, "output", "table", "json")
	return c
}

// nameLimit is how long the machine's pci.ids may take to read.
const nameLimit = 700 * time.Millisecond

func (a *app) names(ctx context.Context, fs *host.FS, r *report.Report) render.Names {
	if len(r.Map.GPUs)+len(r.Map.NICs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, nameLimit)
	defer cancel()
	return names.Read(ctx, fs, a.host.Sysfs)
}

// overview is what a person sees who types no verb.
func (a *app) overview(ctx context.Context) error {
	r, fs, err := a.collect(ctx, pci.Everything)
	if err != nil {
		return err
	}
	if err := render.Topo(a.out, r, a.names(ctx, fs, r)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "\n%s\n", render.Summary(r))
	if err == nil && r.Verdict.Reason != "" && len(r.Map.GPUs) > 0 {
		_, err = fmt.Fprintln(a.out, "gdr-features check says why, and what to do.")
	}
	return err
}
