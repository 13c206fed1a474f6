package main

import (
	"slices"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Exit statuses of check.
const (
	exitNotReady statusError = 2
	exitUnknown  statusError = 3
)

func (a *app) checkCommand() *cobra.Command {
	var format, level, expected string
	c := &cobra.Command{
		Use:   "check",
		Short: "Tell whether GPUDirect RDMA is ready here, and why not",
		Long: `check tests every prerequisite of GPUDirect RDMA and prints a line for each: OK, WARN,
FAIL or UNKNOWN, what was found, how to fix it, and the files it was read from. Every
finding that is not OK has a code, and "explain CODE" tells more about it. "Ready"
means that all prerequisites are in place; only a transfer proves more.

With --expect it compares the machine with what the file expects of machines of its
type (docs/expect.md) and prints a line for each deviation.

Exit status: 0 ready; 2 not ready, or a GPU whose nearest NIC is farther than
--level, or a deviation from --expect; 3 unknown; 1 on an error.`,
		Example: `  gdr-features check
  gdr-features check --level PXB && start-training
  gdr-features check --expect fleet.yaml
  gdr-features check -o json | jq -r '.findings[] | select(.status != "OK") | .fix'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.OneOf("output", format, "table", "json"); err != nil {
				return err
			}
			limit := topology.SYS
			if level != "" {
				var err error
				if limit, err = topology.ParseLevel(level); err != nil {
					return err
				}
			}
			want, err := machineflags.ExpectOnce(expected)
			if err != nil {
				return err
			}
			r, err := a.collect(cmd.Context(), report.ForCheck.Expecting(want))
			if err != nil {
				return err
			}
			show := render.Check
			if format == "json" {
				show = render.CheckJSON
			}
			if err := show(a.out, r); err != nil {
				return err
			}
			return checkStatus(r, level != "", limit)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "table", "output format: table or json")
	c.Flags().StringVar(&level, "level", "", "the farthest level allowed for a GPU's nearest NIC: PIX, PXB, PHB, NODE or SYS")
	machineflags.DefineExpect(c.Flags(), &expected)
	cli.Words(c, "output", "table", "json")
	cli.Words(c, "level", "PIX", "PXB", "PHB", "NODE", "SYS")
	return c
}

// checkStatus returns the exit status for verdict, level and expectations. An unknown
// level does not count as near enough.
func checkStatus(r *report.Report, limited bool, limit topology.Level) error {
	tooFar := func(g topology.GPU) bool { return g.Eligible && g.Level > limit }
	switch {
	case r.Verdict.Ready == tristate.False, limited && slices.ContainsFunc(r.Matrix.GPUs, tooFar), r.Expected != nil && r.Expected.State == tristate.False:
		return exitNotReady
	case r.Verdict.Ready == tristate.Unknown, limited && r.Matrix.Level == topology.Unknown, r.Expected != nil && r.Expected.State == tristate.Unknown:
		return exitUnknown
	}
	return nil
}
