package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"gdr-features/host"
	"gdr-features/internal/cli"
	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/report"
	"gdr-features/internal/snapshot"
)

// hookLimit is how long printing labels may take in all: NFD waits for its hooks.
const hookLimit = 5 * time.Second

// streams are where a run reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
	terminal bool      // out is a terminal
	exit     func(int) // ends the process
	// become replaces the process with another of our programs and these arguments.
	// It returns only on an error.
	become func(program string, args []string) error
	now    func() time.Time
}

// statusError ends a run with an exit status and without a message.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// app holds the flags of all commands.
type app struct {
	streams
	machineflags.Flags
	log  *logrus.Logger
	args []string
}

// run is the program without the process around it. It gives the exit status.
func run(ctx context.Context, args []string, s streams) int {
	a := &app{streams: s, log: logrus.New(), args: args}
	root := a.command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var status statusError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	cli.OneLine(s.err, err)
	return 1
}

func (a *app) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "gdr-features",
		Short: "Tell whether this machine can do GPUDirect RDMA, and why not",
		Long: `gdr-features reads /sys and /proc and tells whether the GPUs and NICs of this machine
can exchange data directly (GPUDirect RDMA), whether all prerequisites are in place
now, and how close each GPU is to each NIC. It needs no privileges, no GPU driver
and no CUDA, and changes nothing.

Without a command it shows the matrix and the verdict on a terminal, and prints the
node labels otherwise, so that it works as a hook of Node Feature Discovery.`,
		Example: `  gdr-features                         # what is here, and is it ready?
  gdr-features check                   # why is it not ready, and how to fix it
  gdr-features topo -o json            # every pair of GPU and NIC, for programs
  gdr-features labels                  # the labels NFD would put on the node
  gdr-features snapshot -f node7       # everything that was read, in one file to send
  gdr-features --root node7 check      # check that file, or a copy of another machine's /sys and /proc
  gdr-features --nic-families mlx5,irdma check   # judge only by ConnectX and Intel E810`,
		Args:          noCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return a.SetUp(a.log, a.err)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !a.terminal {
				return a.labels(cmd.Context(), labelOptions{format: "text", prefix: defaultPrefix})
			}
			return a.overview(cmd.Context())
		},
	}
	c.SuggestionsMinimumDistance = 2
	c.SetOut(a.out)
	c.SetErr(a.err)
	a.Define(c.PersistentFlags())
	a.Complete(c)
	c.AddCommand(a.labelsCommand(), a.topoCommand(), a.checkCommand(), a.explainCommand(), a.envCommand(), a.claimCommand(), a.snapshotCommand(), a.runCommand(), a.nodesCommand(), a.slicesCommand(), a.versionCommand())
	refuseUnknownShells(c)
	return c
}

// refuseUnknownShells makes an unknown shell an error, where cobra prints help.
func refuseUnknownShells(c *cobra.Command) {
	c.InitDefaultCompletionCmd()
	completion, _, err := c.Find([]string{"completion"})
	if err != nil || completion == c {
		return
	}
	completion.Args = nil
	completion.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("no completion for %q; there is one for bash, fish, powershell and zsh", args[0])
		}
		return cmd.Help()
	}
}

// noCommand refuses an unknown command and suggests a known one.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "see gdr-features --help"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("no such command: %q; %s", args[0], hint)
}

// collect reads the machine that the flags name.
func (a *app) collect(ctx context.Context, o report.Options) (*report.Report, error) {
	_, r, err := a.read(ctx, o)
	return r, err
}

// read does what collect does, and returns the machine's files too.
func (a *app) read(ctx context.Context, o report.Options) (*host.FS, *report.Report, error) {
	fs, o, err := a.Machine(snapshot.Open, o)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, machineflags.ReadLimit)
	defer cancel()
	r := report.Collect(ctx, fs, o)
	return fs, &r, nil
}
