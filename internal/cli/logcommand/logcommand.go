// Package logcommand is the command log of gdr-features and kubectl gdr.
package logcommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
	"gdr-features/internal/fleet/joblog"
	"gdr-features/internal/terminal"
)

// Log is the command log, which reads the log of a job.
type Log struct {
	In       io.Reader
	Out, Err io.Writer
	// Page is where text goes, Out with lines broken on a terminal.
	Page io.Writer
	Now  func() time.Time
	// Because adds what the machine tells, which Help says; nil where no machine is read.
	Because func(context.Context, *joblog.Result) error
	Help    string
}

// Command returns the command, for the program of this name, with more lines of examples.
func (a *Log) Command(program, more string) *cobra.Command {
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

NCCL prints these lines before it registers memory: they say what was asked for. What
failed then, its warnings say, and those of the plugins for libfabric and UCX. They are
printed with what they mean and a page of gdr-features explain, and GPUDirect RDMA was
not used. A line that was cut or torn is counted, and makes the answer unknown.
` + a.Help + `
Exit status: 0 all channels between nodes used GPUDirect RDMA and none failed; 2 some
did not, or failed; 3 the log does not tell; 1 on an error.`,
		Example: `  ` + program + ` log job.log
  kubectl logs -l job-name=train --prefix --tail=-1 | ` + program + ` log
` + more + `  ` + program + ` log -o json job.log | jq -r '.ranks[] | select(.gdr == "false") | .node' | sort -u`,
		Args: cli.Args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.read(args)
			if err == nil && a.Because != nil {
				err = a.Because(cmd.Context(), r)
			}
			if err != nil {
				return err
			}
			show, to := r.Text, a.Page
			if format == "json" {
				show, to = r.JSON, a.Out
			}
			if err := show(to); err != nil {
				return err
			}
			return cli.StatusOf(r.Used)
		},
	}
	cli.Output(c, &format, "text or json", "text", "json")
	return c
}

// read reads the log that the arguments name; standard input without one, and for "-".
func (a *Log) read(args []string) (*joblog.Result, error) {
	in, size := a.In, int64(0)
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
	} else if terminal.Is(a.In) && len(args) == 0 {
		return nil, errors.New("name the file of a log, or pipe one in; - reads what is typed")
	}
	progress, done := a.progress(size)
	r, err := joblog.Read(in, progress)
	done()
	return r, err
}

// progress returns a function that shows on a terminal how much of a log was read, once a
// second, and one that takes the line away.
func (a *Log) progress(size int64) (show func(read int64), done func()) {
	if !terminal.Is(a.Err) {
		return func(int64) {}, func() {}
	}
	const wipe, mega = "\r\x1b[K", 1 << 20
	next, shown, of := a.Now().Add(time.Second), false, ""
	if size > 0 {
		of = fmt.Sprintf(" of %d", size/mega)
	}
	show = func(read int64) {
		if now := a.Now(); !now.Before(next) {
			fmt.Fprintf(a.Err, wipe+"read %d%s MiB", read/mega, of)
			next, shown = now.Add(time.Second), true
		}
	}
	return show, func() {
		if shown {
			_, _ = io.WriteString(a.Err, wipe)
		}
	}
}
