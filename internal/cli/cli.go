// Package cli is what the command line and the node agent have in common: where
// the machine's files lie, how to log, and how flags are checked.
package cli

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
	"github.com/spf13/pflag"

	"gdr-features/internal/host"
	"gdr-features/internal/printable"
	"gdr-features/internal/topology"
	"gdr-features/source/verbs"
)

// ReadLimit is how long reading a machine may take; what has not answered by
// then is unknown.
const ReadLimit = 4 * time.Second

var (
	logLevels  = []string{"error", "warning", "info", "debug"}
	logFormats = []string{"text", "json"}
)

// Common are the flags that every verb has.
type Common struct {
	Host host.Options
	// Open opens what Host names; nil is host.Open.
	Open func(host.Options) (*host.FS, error)

	TopologyFile string
	ProbeVerbs   bool
	LogLevel     string
	LogFormat    string
}

// Define adds the flags to a set.
func (c *Common) Define(f *pflag.FlagSet) {
	c.DefineMachine(f)
	f.StringVar(&c.LogLevel, "log-level", "warning", "least severity to log: error, warning, info or debug")
	f.StringVar(&c.LogFormat, "log-format", "text", "how to log on standard error: text or json")
}

// DefineMachine adds those that tell which machine to read, and how.
func (c *Common) DefineMachine(f *pflag.FlagSet) {
	f.StringVar(&c.Host.Root, "root", "/", "directory that holds the machine's sys/ and proc/, or a file that snapshot wrote")
	f.StringVar(&c.Host.Sysfs, "sysfs", "", "directory that stands in for /sys of --root")
	f.StringVar(&c.Host.Procfs, "procfs", "", "directory that stands in for /proc of --root")
	f.StringVar(&c.TopologyFile, "topology-file", "", "NCCL topology file (XML) to take the levels from")
	f.BoolVar(&c.ProbeVerbs, "probe-verbs", false, "ask the RDMA devices themselves about DMA-BUF, through /dev/infiniband")
}

// Complete offers the values of the flags to shell completion.
func (c *Common) Complete(cmd *cobra.Command) {
	Words(cmd, "log-level", logLevels...)
	Words(cmd, "log-format", logFormats...)
}

// SetUp makes log what the flags say.
func (c *Common) SetUp(log *logrus.Logger, out io.Writer) error {
	if err := OneOf("log-level", c.LogLevel, logLevels...); err != nil {
		return err
	}
	if err := OneOf("log-format", c.LogFormat, logFormats...); err != nil {
		return err
	}
	level, err := logrus.ParseLevel(c.LogLevel)
	if err != nil {
		return err
	}
	log.SetOutput(out)
	log.SetLevel(level)
	log.SetFormatter(&logrus.TextFormatter{DisableTimestamp: true})
	if c.LogFormat == "json" {
		log.SetFormatter(&logrus.JSONFormatter{})
	}
	return nil
}

// Machine opens the machine that the flags name. Its handles stay open: a read
// that was left behind may still use them.
func (c *Common) Machine() (*host.FS, *topology.File, error) {
	if c.Host.Root == "" {
		return nil, nil, errors.New("--root is empty; leave it out for this machine")
	}
	if c.ProbeVerbs && c.Host.Root != "/" {
		return nil, nil, errors.New("--probe-verbs asks the devices of this machine and does not go with --root")
	}
	file, err := c.readTopologyFile()
	if err != nil {
		return nil, nil, err
	}
	open := host.Open
	if c.Open != nil {
		open = c.Open
	}
	fs, err := open(c.Host)
	return fs, file, err
}

// AskVerbs gives what --probe-verbs wants for the options of a report, nil for
// nothing.
func (c *Common) AskVerbs() func(context.Context, *host.FS, []string) []verbs.Answer {
	if !c.ProbeVerbs {
		return nil
	}
	return new(verbs.Prober).Ask
}

func (c *Common) readTopologyFile() (*topology.File, error) {
	if c.TopologyFile == "" {
		return nil, nil //nolint:nilnil // no file is no error
	}
	in, err := os.Open(c.TopologyFile)
	if err != nil {
		return nil, fmt.Errorf("--topology-file: %w", err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, topology.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("--topology-file: %w", err)
	}
	if len(data) > topology.MaxFile {
		return nil, fmt.Errorf("--topology-file %s: larger than %d bytes", c.TopologyFile, topology.MaxFile)
	}
	file, err := topology.ParseFile(data)
	if err != nil {
		return nil, fmt.Errorf("--topology-file %s: %w", c.TopologyFile, err)
	}
	file.Name = c.TopologyFile
	return file, nil
}

// OneOf checks the value of a flag.
func OneOf(flag, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("--%s %s: must be one of %s", flag, value, strings.Join(values, ", "))
}

// Words offers the values of a flag to shell completion.
func Words(c *cobra.Command, flag string, values ...string) {
	offer := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
	if err := c.RegisterFlagCompletionFunc(flag, offer); err != nil {
		panic(err) // no such flag: a mistake of the caller, found by every test
	}
}

// OneLine prints an error as one line. What others wrote into it, a server or a
// file, does not move the cursor.
func OneLine(w io.Writer, err error) {
	fmt.Fprintf(w, "gdr-features: %s\n", printable.Text(strings.ReplaceAll(err.Error(), "\n", "; ")))
}
