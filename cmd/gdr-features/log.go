package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gdr-features/internal/cli"
	"gdr-features/internal/explain"
	"gdr-features/internal/joblog"
	"gdr-features/internal/report"
	"gdr-features/tristate"
)

func (a *app) logCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "log [FILE]",
		Short: "Tell from a job's NCCL log whether it used GPUDirect RDMA",
		Long: `log reads what NCCL or RCCL prints with NCCL_DEBUG=INFO, of a file or of standard input,
and tells which GPU sent to others over which NIC, with GPUDirect RDMA or without. The
lines of many ranks may be mixed, and may have the prefixes of mpirun, Ray, Slurm,
torchrun and kubectl logs. Every release from NCCL 2.4 on is known.

It prints a line for each node, rank and NIC: the network (IB, IBext, Socket, AWS
Libfabric, ...), the NIC by name, or by its index where the log does not name it, and
how many channels it sends and receives. A channel through the NIC of another rank
(PXN) says so. At the end stands one sentence.

On a node that the log names, or with --root and the snapshot of one, it also says what
check finds to be the reason for a GPU without GPUDirect RDMA.

Exit status: 0 all channels between nodes used GPUDirect RDMA; 2 some did not; 3 the
log does not tell; 1 on an error.`,
		Example: `  gdr-features log job.log
  kubectl logs -l job-name=train --prefix --tail=-1 | gdr-features log
  gdr-features --root node7 log job.log              # node7: a snapshot of one of its nodes
  gdr-features log -o json job.log | jq -r '.ranks[] | select(.gdr == "false") | .node' | sort -u`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.readLog(args)
			if err != nil {
				return err
			}
			if err := a.because(cmd.Context(), r); err != nil {
				return err
			}
			show := r.Text
			if format == "json" {
				show = r.JSON
			}
			if err := show(a.out); err != nil {
				return err
			}
			return statusOf(r.Used)
		},
	}
	cli.Output(c, &format, "text or json", "text", "json")
	return c
}

// readLog reads the log that the arguments name; standard input without one, and for "-".
func (a *app) readLog(args []string) (*joblog.Result, error) {
	in, size := a.in, int64(0)
	if len(args) > 0 && args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return nil, err
		}
		defer file.Close()
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		in = file
	} else if isTerminal(a.in) && len(args) == 0 {
		return nil, errors.New("name the file of a log, or pipe one in; - reads what is typed")
	}
	progress, done := a.progress(size)
	l, err := joblog.Read(in, progress)
	done()
	if err != nil {
		return nil, err
	}
	r := l.Result()
	return &r, nil
}

// because adds to the notes what check knows about the GPUs without GPUDirect RDMA: those of
// this machine where the log names it, and with --root those of whatever node have the same
// addresses.
func (a *app) because(ctx context.Context, r *joblog.Result) error {
	node := ""
	if a.Host.Root == "/" {
		name, err := os.Hostname()
		if err != nil {
			return nil //nolint:nilerr // then it is not known which lines are about this machine
		}
		node, _, _ = strings.Cut(name, ".") // as NCCL prints it
	}
	about := func(rank *joblog.Rank) bool {
		return rank.GDR() != tristate.True && (node == "" || rank.Node == node)
	}
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
		reason, ok := explain.NotUsed(&machine.Node, machine.Findings, rank.GPU, rank.NIC)
		if !ok {
			return "the machine has no such GPU"
		}
		return reason
	})
	return nil
}

// progress returns a function that shows on a terminal how much of a log was read, once a
// second, and one that takes the line away.
func (a *app) progress(size int64) (show func(read int64), done func()) {
	if !isTerminal(a.err) {
		return func(int64) {}, func() {}
	}
	const wipe, mega = "\r\x1b[K", 1 << 20
	next, shown := a.now().Add(time.Second), false
	show = func(read int64) {
		now := a.now()
		switch {
		case now.Before(next):
			return
		case size > 0:
			fmt.Fprintf(a.err, wipe+"read %d of %d MiB", read/mega, size/mega)
		default:
			fmt.Fprintf(a.err, wipe+"read %d MiB", read/mega)
		}
		next, shown = now.Add(time.Second), true
	}
	return show, func() {
		if shown {
			_, _ = io.WriteString(a.err, wipe)
		}
	}
}

// isTerminal says whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file handle
}
