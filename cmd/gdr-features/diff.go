package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/diff"
	"gdr-features/tristate"
)

func (a *app) diffCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show what changed on a machine between two snapshots",
		Long: `diff compares two snapshots, or directories with sys/ and proc/, and prints a line for
each fact that is not the same in both: labels and what check finds, then GPUs and NICs
that came or went, their names, levels and PCIe links, ports, rates, MTUs and GID
indexes, then versions, driver parameters and the IOMMU. What a job feels comes first.
"/" is this machine.

A dash means that there is no such thing, "unknown" that it could not be read. The speed
of a GPU's link is not compared, as it is low while the GPU is idle. Devices are compared
by their PCI addresses.

To compare the nodes of a cluster with each other, see gdr-features nodes diff.

Exit status: 0 alike; 2 something changed; 1 on an error.`,
		Example: `  gdr-features snapshot -f yesterday       # while all is well
  gdr-features diff yesterday /            # later: what is different now
  gdr-features diff node7 node8            # why is one of two nodes slow?
  gdr-features diff -o json yesterday / | jq -r '.changes[] | select(.fact == "check") | .new'`,
		Args: cli.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("root") {
				return errors.New("--root does not go with diff, which takes OLD and NEW")
			}
			return a.diff(cmd.Context(), args[0], args[1], format == "json")
		},
	}
	cli.Output(c, &format, "table or json", "table", "json")
	return c
}

func (a *app) diff(ctx context.Context, old, now string, asJSON bool) error {
	before, err := a.collectOf(ctx, old)
	if err != nil {
		return err
	}
	after, err := a.collectOf(ctx, now)
	if err != nil {
		return err
	}
	changes := diff.Compare(before, after)
	if asJSON {
		err = render.DiffJSON(a.out, changes, before, after)
	} else {
		err = render.Diff(a.page, changes, before, after)
	}
	return cmp.Or(err, cli.StatusOf(tristate.Of(len(changes) == 0)))
}

// collectOf reads another machine than that of --root.
func (a *app) collectOf(ctx context.Context, root string) (*report.Report, error) {
	of := *a
	of.Host.Root = root
	r, err := of.collect(ctx, report.ForDiff)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", root, err)
	}
	return r, nil
}
