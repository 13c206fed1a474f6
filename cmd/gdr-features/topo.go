package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/picture"
	"gdr-features/internal/view"
)

// topoFormats are the values of topo's -o, the default first.
var topoFormats = []struct {
	name string
	// write is nil for those that need more than a report.
	write func(io.Writer, *report.Report) error
	// forPeople: its lines are broken on a terminal.
	forPeople bool
}{
	{"table", render.Topo, true},
	{"json", render.TopoJSON, false},
	{"wide", render.TopoWide, true},
	{"dot", picture.Dot, false},
	{"html", nil, false},
	{"nccl-xml", render.TopoNCCLXML, false},
	{"slurm", nil, false},
}

func (a *app) topoCommand() *cobra.Command {
	var format string
	var names []string
	for _, f := range topoFormats {
		names = append(names, f.name)
	}
	c := &cobra.Command{
		Use:   "topo",
		Short: "Show how near each GPU is to each NIC",
		Long: `topo prints the matrix of GPUs and NICs as nvidia-smi topo -m does, without needing
the GPU driver, and what each of them is. -o wide adds links, NUMA nodes, IOMMU
groups, firmware and network devices.

-o html is a page for a browser, with the PCI tree, the matrix and what check finds.
-o dot is the same tree and matrix for Graphviz, which makes pictures of it.

-o nccl-xml is a topology file for NCCL_TOPO_FILE, for virtual machines whose PCI tree
is not the host's: write it in the virtual machine and group GPUs and NICs below
switches by hand. Use the guest's bus IDs for GPUs and NICs, and unused bus IDs for
switches. A NIC is there as device 0, function 0 of its bus, which is where NCCL looks
for it (NCCL_IB_MERGE_VFS=1). NCCL adds GPUs and network devices to the file by itself.
--topology-file shows what NCCL makes of it.

-o slurm is this node's part of Slurm's slurm.conf and gres.conf: the device nodes of
GPUs and usable NICs, and features by which jobs choose nodes. A node that is ready has
the features gdr, gdr-pix or that of another level, and gdr-400g for its rate. What is
not known is left out, and a comment says so.`,
		Example: `  gdr-features topo
  gdr-features topo -o html > topo.html
  gdr-features topo -o dot | dot -Tsvg > topo.svg
  gdr-features topo -o json | jq '.pairs[] | select(.level == "PIX")'
  gdr-features topo -o nccl-xml > topo.xml   # then: export NCCL_TOPO_FILE=$PWD/topo.xml
  gdr-features topo --topology-file topo.xml
  gdr-features topo -o slurm | sed "s/=NODE /=$(hostname -s) /"`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			as := topoFormats[slices.Index(names, format)]
			if format == "slurm" {
				r, here, err := a.here(cmd.Context())
				if err != nil {
					return err
				}
				return render.TopoSlurm(a.out, r, here.Visible)
			}
			r, err := a.collect(cmd.Context(), report.ForTopo)
			if err != nil {
				return err
			}
			switch {
			case as.write == nil:
				return picture.HTML(a.out, r, a.machineName())
			case as.forPeople:
				return as.write(a.page, r)
			}
			return as.write(a.out, r)
		},
	}
	cli.Output(c, &format, strings.Join(names, ", "), names...)
	return c
}

// machineName is the name of the node, of this machine, or of the file that was recorded on
// another; "" for a directory, which may have any name.
func (a *app) machineName() string {
	if a.Host.Root != "/" {
		if info, err := os.Stat(a.Host.Root); err == nil && info.Mode().IsRegular() {
			return filepath.Base(a.Host.Root)
		}
		return ""
	}
	if name := os.Getenv("NODE_NAME"); name != "" { // in a Pod of the agent
		return name
	}
	name, _ := os.Hostname()
	return name
}

func (a *app) overview(ctx context.Context) error {
	r, err := a.collect(ctx, report.ForTopo)
	if err != nil {
		return err
	}
	if err := render.Topo(a.page, r); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.page, "\n%s\n", view.Summary(&r.Node, r.Findings))
	if err == nil && (r.Verdict.Reason != "" || len(view.Warnings(r.Findings)) > 0) && len(r.Matrix.GPUs) > 0 {
		_, err = fmt.Fprintln(a.page, "gdr-features check says why, and what to do.")
	}
	return err
}
