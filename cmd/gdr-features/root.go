package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gdr-features/internal/cli"
	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/cli/nodescommand"
	"gdr-features/internal/config"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/snapshot"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/terminal"
	"gdr-features/topology"
)

// labelsLimit is how long printing labels may take beyond their reading: NFD waits for its
// hooks.
const labelsLimit = time.Second

type streams struct {
	in       io.Reader
	out, err io.Writer
	terminal bool      // out is a terminal
	columns  int       // its width, 0 for none
	color    bool      // it shows colors
	exit     func(int) // ends the process
	// become replaces the process with another of our programs and these arguments.
	// It returns only on an error.
	become func(program string, args []string) error
	now    func() time.Time
	limit  time.Duration // for a reading of a machine
}

type app struct {
	streams
	machineflags.Flags
	log  *logrus.Logger
	args []string
	// page is where text for people goes: out with lines broken on a terminal.
	page io.Writer
}

// run is the program without the process around it. It gives the exit status.
func run(ctx context.Context, args []string, s streams) int {
	page := terminal.NewWriter(s.out, s.columns).Colored(s.color)
	a := &app{streams: s, log: logrus.New(), args: args, page: page}
	return cli.Run(ctx, a.command(), args, page, s.err)
}

func (a *app) command() *cobra.Command {
	variables := map[*cobra.Command][]string{} // the flags that the environment sets
	c := &cobra.Command{
		Use:   "gdr-features",
		Short: "Tell whether this machine can do GPUDirect RDMA, and why not",
		Long: `gdr-features reads /sys and /proc and tells whether the GPUs and NICs of this machine
can exchange data directly (GPUDirect RDMA), whether all prerequisites are in place
now, and how close each GPU is to each NIC. It needs no privileges, no GPU driver
and no CUDA, and changes nothing.

Without a command it shows the matrix and the verdict on a terminal, and prints the
node labels otherwise, so that it works as a hook of Node Feature Discovery.

The flags --sysfs, --procfs, --topology-file, --nic-families, --nic-exclude and
--probe-verbs, and --expect of check and labels, can also be set by environment
variables (GDR_FEATURES_SYSFS for --sysfs), as those of the node agent: in its Pod a
command judges what the agent judges. The command line takes precedence; with --root
the variables are ignored.`,
		Example: `  gdr-features                         # what is here, and is it ready?
  gdr-features check                   # why is it not ready, and how to fix it
  gdr-features topo -o json            # every pair of GPU and NIC, for programs
  gdr-features labels                  # the labels NFD would put on the node
  gdr-features snapshot -f node7       # everything that was read, in one file to send
  gdr-features --root node7 check      # check that file, or a copy of another machine's /sys and /proc
  gdr-features --nic-families mlx5,irdma check   # judge only by ConnectX and Intel E810`,
		Args: noCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags(), variables[cmd]); err != nil {
				return err
			}
			return a.SetUp(a.log, a.err)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !a.terminal {
				return a.labels(cmd.Context(), labelOptions{format: "text", prefix: label.DefaultPrefix})
			}
			return a.overview(cmd.Context())
		},
	}
	c.SuggestionsMinimumDistance = 2
	c.SetOut(a.out) // the command completion takes it over when it is made
	a.Define(c.PersistentFlags())
	a.Complete(c)
	judging := []*cobra.Command{a.labelsCommand(), a.topoCommand(), a.checkCommand(), a.explainCommand(), a.envCommand(), a.claimCommand(), a.logCommand()}
	recording := a.snapshotCommand()
	proof, proofs := a.proofCommands()
	nodes := a.ofCluster(nodescommand.Nodes(&nodescommand.Flags{}))
	nodes.AddCommand(a.ofCluster(nodescommand.Diff(&nodescommand.Flags{}), "diff"), a.ofCluster(nodescommand.History(&nodescommand.Flags{}), "history"))
	c.AddCommand(judging...)
	c.AddCommand(proof, recording, a.diffCommand(), nodes, a.runCommand(), a.copyCommand(), cli.VersionCommand("gdr-features", version))
	for _, command := range slices.Concat(judging, proofs, []*cobra.Command{c}) {
		variables[command] = reportFlags
	}
	variables[recording] = fileFlags
	refuseUnknownShells(c)
	refuseUnknownTopics(c)
	return c
}

// fileFlags say where this machine's files are, reportFlags also how to judge it.
var (
	fileFlags   = []string{"sysfs", "procfs"}
	reportFlags = append(slices.Clone(fileFlags), "topology-file", "nic-families", "nic-exclude", "probe-verbs", "expect")
)

// fromEnvironment sets the named flags from their variables, those of the node agent, unless the
// command line has set them. With --root on the command line they are about another machine.
func fromEnvironment(f *pflag.FlagSet, names []string) error {
	if f.Changed("root") {
		return nil
	}
	named := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.VisitAll(func(flag *pflag.Flag) {
		if slices.Contains(names, flag.Name) {
			named.AddFlag(flag)
		}
	})
	return config.FromEnvironment(named, os.LookupEnv)
}

func expectFlag(c *cobra.Command, path *string) {
	c.Flags().StringVar(path, "expect", "", "YAML file with what is expected of each type of machine, see docs/expect.md")
}

func levelFlag(c *cobra.Command, level *string, help string) {
	c.Flags().StringVar(level, "level", "", "the farthest level allowed "+help+": PIX, PXB, PHB, NODE or SYS")
	cli.Words(c, "level", "PIX", "PXB", "PHB", "NODE", "SYS")
}

// refuseUnknownShells makes an unknown shell an error, where cobra prints help.
func refuseUnknownShells(c *cobra.Command) {
	c.InitDefaultCompletionCmd()
	completion, _, _ := c.Find([]string{"completion"})
	completion.Args = nil
	completion.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("no completion for %q; there is one for bash, fish, powershell and zsh", args[0])
		}
		return cmd.Help()
	}
}

// refuseUnknownTopics makes help for an unknown command an error, where cobra prints the help
// of the program.
func refuseUnknownTopics(c *cobra.Command) {
	c.InitDefaultHelpCmd()
	help, _, _ := c.Find([]string{"help"})
	help.Args = func(_ *cobra.Command, args []string) error {
		if topic, _, err := c.Find(args); err != nil || topic == c {
			return noCommand(c, args)
		}
		return nil
	}
}

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

func (a *app) collect(ctx context.Context, o report.Options) (*report.Report, error) {
	fs, o, err := a.Machine(snapshot.Open, o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	r := report.Collect(ctx, fs, o)
	return &r, nil
}

func (a *app) warn(r *report.Report) {
	for _, problem := range sanitize.Errors(r.Problems) {
		a.log.Warn(problem)
	}
}

// limitOf returns the level that --level names; without it topology.Unknown, for any level.
func limitOf(level string) (topology.Level, error) {
	if level == "" {
		return topology.Unknown, nil
	}
	return topology.ParseLevel(level)
}
