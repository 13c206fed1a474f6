// Package machineflags has the flags of the programs that read a machine: where its
// files are, what is expected of it, and how to log.
package machineflags

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gdr-features/host"
	"gdr-features/internal/cli"
	"gdr-features/internal/config"
	"gdr-features/internal/expect"
	"gdr-features/internal/regular"
	"gdr-features/internal/report"
	"gdr-features/internal/show"
	"gdr-features/internal/yamlfile"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/verbs"
	"gdr-features/topology/nccl"
	"gdr-features/verdict"
)

// ReadLimit is how long reading a machine may take. What has not been read then is unknown.
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
	f.StringVar(&c.TopologyFile, "topology-file", "", "take the levels from this NCCL topology file (XML), or from a list of them by type of machine (.yaml)")
	f.StringSliceVar(&c.NICFamilies, "nic-families", family.Names(family.Known().NICs), "families of NICs to judge by; those of other families are only listed")
	f.StringSliceVar(&c.NICExclude, "nic-exclude", nil, "NICs not to judge: PCI addresses, vendor:device[:subvendor:subdevice], names of RDMA devices")
	f.BoolVar(&c.ProbeVerbs, "probe-verbs", false, "ask the RDMA devices whether they support DMA-BUF, through /dev/infiniband")
}

// Complete offers the values of the flags to shell completion.
func (c *Flags) Complete(cmd *cobra.Command) {
	cli.List(cmd, "nic-families", family.Names(family.Every().NICs)...)
	cli.Words(cmd, "log-level", logLevels...)
	cli.Words(cmd, "log-format", logFormats...)
}

// SetUp configures a logger as the flags say.
func (c *Flags) SetUp(log *logrus.Logger, out io.Writer) error {
	err := cmp.Or(cli.OneOf("log-level", c.LogLevel, logLevels...), cli.OneOf("log-format", c.LogFormat, logFormats...))
	if err != nil {
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
		log.SetFormatter(safeJSON{})
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
	switch ext := filepath.Ext(c.TopologyFile); {
	case ext == ".yaml" || ext == ".yml":
		o.TopologyOf, err = readTopologies(c.TopologyFile)
	case c.TopologyFile != "":
		o.TopologyFile, err = readTopology(c.TopologyFile)
	}
	if err != nil {
		return nil, o, err
	}
	if c.ProbeVerbs {
		prober := verbs.Prober{Families: o.Families}
		o.AskVerbs = prober.Ask
	}
	fs, err := open(c.Host)
	return fs, o, err
}

func readTopology(path string) (*nccl.File, error) {
	text, err := regular.ReadFile(path, nccl.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("--topology-file: %w", err)
	}
	file, err := nccl.ParseFile(text)
	if err != nil {
		return nil, fmt.Errorf("--topology-file %s: %w", path, err)
	}
	file.Name = path
	return file, nil
}

// readTopologies reads a list of types of machines, and the topology file of each.
func readTopologies(path string) (func(*verdict.Node) (*nccl.File, error), error) {
	text, err := regular.ReadFile(path, yamlfile.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("--topology-file: %w", err)
	}
	types, err := expect.ParseTopologies(text)
	if err != nil {
		return nil, fmt.Errorf("--topology-file %s:%w", path, err) // path:line:column: reason
	}
	files := map[string]*nccl.File{}
	for name, file := range types.Files {
		if files[name], err = readTopology(filepath.Join(filepath.Dir(path), file)); err != nil {
			return nil, err
		}
	}
	return func(node *verdict.Node) (*nccl.File, error) {
		name, err := types.Of(node)
		return files[name], err
	}, nil
}

// RunCommand is the command run with its flags and help, but without its action.
func RunCommand(agent *config.Agent) *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the node agent: publish the labels and keep them up to date",
		Long: `run keeps reading the machine and publishes its labels as a NodeFeature object
(nodefeature), as a feature file (file), or both. It writes when something has
changed, and reverts changes made by others. What is published stays when it ends;
--cleanup removes it. The program gdr-features-agent, beside gdr-features, does the work.

Hardware labels change after two equal readings. State labels become true at once;
any other change must persist for --settle. If a fact cannot be read, the labels
derived from it keep their last published value.

Every flag is also an environment variable (GDR_FEATURES_INTERVAL for --interval) and
a key of the YAML file that --config names. The command line takes precedence over
the environment, and that over the file. The log level is info by default.`,
		Example: `  gdr-features run                                    # in a pod: a NodeFeature of this node
  gdr-features run --publish file                     # a feature file for the nfd-worker of this node
  gdr-features run --once --kubeconfig ~/.kube/config --node-name n1 --namespace gdr-features
  gdr-features run --cleanup --publish file           # remove the feature file`,
		Args: cli.Args(0, 0),
	}
	agent.Define(c.Flags(), os.Getenv)
	cli.List(c, "publish", config.Publishers...)
	return c
}

// safeJSON writes log lines as JSON that a terminal does not obey.
type safeJSON struct{ logrus.JSONFormatter }

// Format implements logrus.Formatter.
func (f safeJSON) Format(e *logrus.Entry) ([]byte, error) {
	line, err := f.JSONFormatter.Format(e)
	return show.Escape(line), err
}
