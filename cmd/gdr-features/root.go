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

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"gdr-features/internal/host"
	"gdr-features/internal/report"
	"gdr-features/internal/topology"
)

// Reading takes 4 seconds at the most; what has not answered by then is unknown.
// Printing labels takes 5 in all, whatever it waits for: NFD waits for its hooks.
const (
	readLimit = 4 * time.Second
	hookLimit = 5 * time.Second
)

// streams are where a run writes.
type streams struct {
	out, err io.Writer
	terminal bool      // out is a terminal
	exit     func(int) // ends the process
}

// statusError ends a run with an exit status and no message of its own.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// app holds the flags that every verb has.
type app struct {
	streams
	host         host.Options
	topologyFile string
	logLevel     string
	logFormat    string
	log          *logrus.Logger
}

// run is the whole program but for the process around it. It gives the exit
// status.
func run(ctx context.Context, args []string, s streams) int {
	a := &app{streams: s, log: logrus.New()}
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
	fmt.Fprintf(s.err, "gdr-features: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	return 1
}

func (a *app) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "gdr-features",
		Short: "Tell whether this machine can do GPUDirect RDMA, and why not",
		Long: `gdr-features reads /sys and /proc and tells whether GPUs and RDMA adapters of this
machine can exchange data directly (GPUDirect RDMA), whether all that it needs is
in place now, and how near each GPU is to each adapter. It needs no privileges, no
GPU driver and no CUDA, and changes nothing.

Without a verb it shows the matrix and the verdict on a terminal, and prints node
labels otherwise, as a hook of Node Feature Discovery does.`,
		Example: `  gdr-features                         # what is here, and is it ready?
  gdr-features check                   # why not, and what to do
  gdr-features topo -o json            # every pair of GPU and NIC, for programs
  gdr-features labels                  # what NFD would put on the node
  gdr-features --root /mnt/node check  # the same for another machine's /sys and /proc`,
		Args:          noVerb,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return a.setUpLog()
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
	f := c.PersistentFlags()
	f.StringVar(&a.host.Root, "root", "/", "directory that holds the machine's sys/ and proc/")
	f.StringVar(&a.host.Sysfs, "sysfs", "", "directory that stands in for /sys of --root")
	f.StringVar(&a.host.Procfs, "procfs", "", "directory that stands in for /proc of --root")
	f.StringVar(&a.topologyFile, "topology-file", "", "NCCL topology file (XML) to take the levels from")
	f.StringVar(&a.logLevel, "log-level", "warning", "least severity to log: error, warning, info or debug")
	f.StringVar(&a.logFormat, "log-format", "text", "how to log on standard error: text or json")
	words(c, "log-level", logLevels...)
	words(c, "log-format", "text", "json")
	c.AddCommand(a.labelsCommand(), a.topoCommand(), a.checkCommand(), a.versionCommand())
	refuseUnknownShells(c)
	return c
}

// refuseUnknownShells makes an error of what cobra answers with help.
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

// noVerb refuses what is no verb with a hint at what is.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "see gdr-features --help"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("no such verb: %q; %s", args[0], hint)
}

// words offers the values of a flag to shell completion.
func words(c *cobra.Command, flag string, values ...string) {
	offer := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
	if err := c.RegisterFlagCompletionFunc(flag, offer); err != nil {
		panic(err) // no such flag: a mistake in this file, found by every test
	}
}

// oneOf checks the value of a flag.
func oneOf(flag, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("--%s %s: must be one of %s", flag, value, strings.Join(values, ", "))
}

var logLevels = []string{"error", "warning", "info", "debug"}

func (a *app) setUpLog() error {
	if err := oneOf("log-level", a.logLevel, logLevels...); err != nil {
		return err
	}
	if err := oneOf("log-format", a.logFormat, "text", "json"); err != nil {
		return err
	}
	level, err := logrus.ParseLevel(a.logLevel)
	if err != nil {
		return err
	}
	a.log.SetOutput(a.err)
	a.log.SetLevel(level)
	a.log.SetFormatter(&logrus.TextFormatter{DisableTimestamp: true})
	if a.logFormat == "json" {
		a.log.SetFormatter(&logrus.JSONFormatter{})
	}
	return nil
}

// collect reads the machine that the flags name. The handles stay open: a read
// that was left behind may still use them.
func (a *app) collect(ctx context.Context, o report.Options) (*report.Report, error) {
	if a.host.Root == "" {
		return nil, errors.New("--root is empty; leave it out for this machine")
	}
	var err error
	if o.TopologyFile, err = a.readTopologyFile(); err != nil {
		return nil, err
	}
	fs, err := host.Open(a.host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	r := report.Collect(ctx, fs, o)
	return &r, nil
}

func (a *app) readTopologyFile() (*topology.File, error) {
	if a.topologyFile == "" {
		return nil, nil //nolint:nilnil // no file is no error
	}
	in, err := os.Open(a.topologyFile)
	if err != nil {
		return nil, fmt.Errorf("--topology-file: %w", err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, topology.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("--topology-file: %w", err)
	}
	if len(data) > topology.MaxFile {
		return nil, fmt.Errorf("--topology-file %s: larger than %d bytes", a.topologyFile, topology.MaxFile)
	}
	file, err := topology.ParseFile(data)
	if err != nil {
		return nil, fmt.Errorf("--topology-file %s: %w", a.topologyFile, err)
	}
	return file, nil
}
