// Package machineflags are the flags of the programs that read a machine: where
// its files lie, what is expected of it, and how to log.
package machineflags

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gdr-features/host"
	"gdr-features/internal/cli"
	"gdr-features/source/verbs"
	"gdr-features/topology"
)

// ReadLimit is how long reading a machine may take; what has not answered by
// then is unknown.
const ReadLimit = 4 * time.Second

var (
	logLevels  = []string{"error", "warning", "info", "debug"}
	logFormats = []string{"text", "json"}
)

// Flags are those that every command about a machine has.
type Flags struct {
	Host host.Options
	// Open opens what Host names; nil is host.Open.
	Open func(host.Options) (*host.FS, error)

	TopologyFile string
	ProbeVerbs   bool
	LogLevel     string
	LogFormat    string
}

// Define adds the flags to a set.
func (c *Flags) Define(f *pflag.FlagSet) {
	c.DefineMachine(f)
	f.StringVar(&c.LogLevel, "log-level", "warning", "least severity to log: error, warning, info or debug")
	f.StringVar(&c.LogFormat, "log-format", "text", "how to log on standard error: text or json")
}

// DefineMachine adds those that tell which machine to read, and how.
func (c *Flags) DefineMachine(f *pflag.FlagSet) {
	f.StringVar(&c.Host.Root, "root", "/", "directory that holds the machine's sys/ and proc/, or a file that snapshot wrote")
	f.StringVar(&c.Host.Sysfs, "sysfs", "", "directory that stands in for /sys of --root")
	f.StringVar(&c.Host.Procfs, "procfs", "", "directory that stands in for /proc of --root")
	f.StringVar(&c.TopologyFile, "topology-file", "", "NCCL topology file (XML) to take the levels from")
	f.BoolVar(&c.ProbeVerbs, "probe-verbs", false, "ask the RDMA devices themselves about DMA-BUF, through /dev/infiniband")
}

// Complete offers the values of the flags to shell completion.
func (c *Flags) Complete(cmd *cobra.Command) {
	cli.Words(cmd, "log-level", logLevels...)
	cli.Words(cmd, "log-format", logFormats...)
}

// SetUp makes log what the flags say.
func (c *Flags) SetUp(log *logrus.Logger, out io.Writer) error {
	if err := cli.OneOf("log-level", c.LogLevel, logLevels...); err != nil {
		return err
	}
	if err := cli.OneOf("log-format", c.LogFormat, logFormats...); err != nil {
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
func (c *Flags) Machine() (*host.FS, *topology.File, error) {
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
func (c *Flags) AskVerbs() func(context.Context, *host.FS, []string) []verbs.Answer {
	if !c.ProbeVerbs {
		return nil
	}
	return new(verbs.Prober).Ask
}

func (c *Flags) readTopologyFile() (*topology.File, error) {
	if c.TopologyFile == "" {
		return nil, nil //nolint:nilnil // no file is no error
	}
	data, err := ReadFile(c.TopologyFile, topology.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("--topology-file: %w", err)
	}
	file, err := topology.ParseFile(data)
	if err != nil {
		return nil, fmt.Errorf("--topology-file %s: %w", c.TopologyFile, err)
	}
	file.Name = c.TopologyFile
	return file, nil
}

// ReadFile reads a file of at most so many bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	in, err := os.Open(path) //nolint:gosec // the administrator names it
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: larger than %d bytes", path, most)
	}
	return data, err
}
