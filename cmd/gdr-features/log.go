package main

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli/logcommand"
	"gdr-features/internal/fleet/joblog"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/explain"
	"gdr-features/tristate"
)

func (a *app) logCommand() *cobra.Command {
	l := logcommand.Log{In: a.in, Out: a.out, Page: a.page, Err: a.err, Now: a.now, Because: a.because, Help: `
On a node that the log names, or with --root and the snapshot of one, it also says what
check finds to be the reason for a GPU without GPUDirect RDMA, and which NIC is near a
GPU that used a far one. The kubectl plugin kubectl gdr has the same command without
that; it also runs on macOS and Windows.
`}
	return l.Command("gdr-features", "  gdr-features --root node7 log job.log              # node7: a snapshot of one of its nodes\n")
}

// because adds what check knows about the GPUs without GPUDirect RDMA, and about those whose NIC
// is far: those of this machine where the log names it, and with --root those of any node that
// have the same addresses.
func (a *app) because(ctx context.Context, r *joblog.Result) error {
	node := ""
	if a.Host.Root == "/" {
		name, err := os.Hostname()
		if err != nil {
			return nil //nolint:nilerr // then it is not known which lines are about this machine
		}
		node, _, _ = strings.Cut(name, ".") // as NCCL prints it
	}
	about := func(rank *joblog.Rank) bool { return node == "" || rank.Node == node }
	if !slices.ContainsFunc(r.Ranks, func(rank joblog.Rank) bool { return about(&rank) }) {
		return nil
	}
	machine, err := a.collect(ctx, report.ForCheck)
	if err != nil {
		return err
	}
	r.Because(func(rank *joblog.Rank) string {
		if !about(rank) {
			return ""
		}
		return reasonOf(machine, r, rank)
	})
	return nil
}

// reasonOf says why a rank was without GPUDirect RDMA, or that its NIC is far; "" for neither.
func reasonOf(machine *report.Report, r *joblog.Result, rank *joblog.Rank) string {
	far := explain.FarNIC(&machine.Node, r.NearGPU(rank), rank.NIC)
	if chose := r.Chose(); far != "" && chose != "" {
		far += " (the log: " + chose + ")"
	}
	if rank.GDR() == tristate.True {
		return far
	}
	reason, ok := explain.NotUsed(&machine.Node, machine.Findings, rank.GPU, rank.NIC)
	switch {
	case !ok:
		return "the machine has no such GPU"
	case far != "" && machine.Verdict.Ready == tristate.True:
		return far
	}
	return reason
}
