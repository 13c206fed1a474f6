// Package machineflags has the flags of the programs that read a machine: where its
// files are, what is expected of it, and how to log.
package machineflags

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gdr-features/host"
	"gdr-features/internal/cli"
	"gdr-features/internal/config"
	"gdr-features/internal/report"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/verbs"
	"gdr-features/topology/nccl"
)

// ReadLimit is how long reading a machine may take. What has not been read by then is
// unknown.
const ReadLimit = 4 * time.Second

var (
	logLevels  = []string{"error", "warning", "info", "debug"}
	logFormats = []string{"text", "json"}
)

// Flags are the flags of every command that reads a machine.
type Flags struct {
	Host         host.Options
	TopologyFile string
	NICFamilies  []string
	NICExclude   []string
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

// DefineMachine adds the flags that say which machine to read, and how.
func (c *Flags) DefineMachine(f *pflag.FlagSet) {
	f.StringVar(&c.Host.Root, "root", "/", "directory with the machine's sys/ and proc/, or a file written by snapshot")
	f.StringVar(&c.Host.Sysfs, "sysfs", "", "directory to read instead of /sys of --root")
	f.StringVar(&c.Host.Procfs, "procfs", "", "directory to read instead of /proc of --root")
	f.StringVar(&c.TopologyFile, "topology-file", "", "take the levels from this NCCL topology file (XML)")
	f.StringSliceVar(&c.NICFamilies, "nic-families", family.Names(family.Known().NICs), "families of NICs to judge by; those of other families are only listed")
	f.StringSliceVar(&c.NICExclude, "nic-exclude", nil, "NICs not to judge: PCI addresses, vendor:device[:subvendor:subdevice], names of RDMA devices")
	f.BoolVar(&c.ProbeVerbs, "probe-verbs", false, "ask the RDMA devices whether they support DMA-BUF, through /dev/infiniband")
}

// FileFlags say where the files of this machine are; ReportFlags are these and the flags that
// say how to judge it.
var (
	FileFlags   = []string{"sysfs", "procfs"}
	ReportFlags = append(slices.Clone(FileFlags), "topology-file", "nic-families", "nic-exclude", "probe-verbs", "expect")
)

// FromEnvironment sets the named flags from their variables (config.Variable) unless the command
// line has set them. These are the variables of the node agent: a command in its Pod judges what
// the agent judges. With --root on the command line the variables are about another machine.
func FromEnvironment(f *pflag.FlagSet, names []string, lookup func(string) (string, bool)) error {
	if f.Changed("root") {
		return nil
	}
	return config.FromEnvironment(f, func(variable string) (string, bool) {
		if !slices.ContainsFunc(names, func(name string) bool { return config.Variable(name) == variable }) {
			return "", false
		}
		return lookup(variable)
	})
}

// Complete offers the values of the flags to shell completion.
func (c *Flags) Complete(cmd *cobra.Command) {
	cli.List(cmd, "nic-families", family.Names(family.Every().NICs)...)
	cli.Words(cmd, "log-level", logLevels...)
	cli.Words(cmd, "log-format", logFormats...)
}

// SetUp configures a logger as the flags say.
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

// Machine opens the machine that the flags name, by open, which is host.Open or also
// accepts snapshots, and adds to the options of a report what the flags say. The files
// stay open: a read that timed out may still use them.
func (c *Flags) Machine(open func(host.Options) (*host.FS, error), o report.Options) (*host.FS, report.Options, error) {
	if c.Host.Root == "" {
		return nil, o, errors.New("--root is empty; leave it out for this machine")
	}
	if c.ProbeVerbs && c.Host.Root != "/" {
		return nil, o, errors.New("--probe-verbs asks the devices of this machine and does not go with --root")
	}
	var err error
	if o.Families, err = family.Select(c.NICFamilies); err != nil {
		return nil, o, fmt.Errorf("--nic-families: %w", err)
	}
	if o.Exclude, err = pci.ParseExclusion(c.NICExclude); err != nil {
		return nil, o, fmt.Errorf("--nic-exclude: %w", err)
	}
	if o.TopologyFile, err = Parsed("topology-file", c.TopologyFile, nccl.MaxFile, nccl.ParseFile); err != nil {
		return nil, o, err
	}
	if o.TopologyFile != nil {
		o.TopologyFile.Name = c.TopologyFile
	}
	if c.ProbeVerbs {
		prober := verbs.Prober{Families: o.Families}
		o.AskVerbs = prober.Ask
	}
	fs, err := open(c.Host)
	return fs, o, err
}

// Parsed reads the file that a flag names, of at most so many bytes, and parses it. Without
// a file it returns nil.
func Parsed[T any](flag, path string, most int64, parse func([]byte) (*T, error)) (*T, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no file is no error
	}
	data, err := ReadFile(path, most)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	parsed, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", flag, path, err)
	}
	return parsed, nil
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
