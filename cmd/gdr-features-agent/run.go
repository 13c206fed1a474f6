package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/bombsimon/logrusr/v4"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"gdr-features/host"
	"gdr-features/internal/agent"
	"gdr-features/internal/cli"
	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/config"
	"gdr-features/internal/monitor"
	"gdr-features/internal/publish"
	"gdr-features/internal/publish/featurefile"
	"gdr-features/internal/publish/nodefeature"
	"gdr-features/internal/regular"
	"gdr-features/internal/report"
	"gdr-features/internal/terminal"
	"gdr-features/internal/uevent"
	"gdr-features/internal/yamlfile"
)

// run is the whole program without the process around it. It gives the exit status.
func run(ctx context.Context, args []string, now func() time.Time, out, err io.Writer) int {
	p := program{err: err, log: logrus.New(), now: now}
	return cli.Run(ctx, p.command(), args, terminal.NewWriter(out, terminal.Width(out)), err)
}

type program struct {
	machineflags.Flags
	settings config.Agent
	err      io.Writer
	log      *logrus.Logger
	now      func() time.Time
}

func (p *program) command() *cobra.Command {
	root := &cobra.Command{
		Use:               "gdr-features",
		Short:             "The node agent; started by gdr-features run",
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	p.Define(root.PersistentFlags())
	c := machineflags.RunCommand(&p.settings)
	c.PreRunE = func(cmd *cobra.Command, _ []string) error { return p.configure(cmd) }
	c.RunE = func(cmd *cobra.Command, _ []string) error { return p.runAgent(cmd.Context()) }
	root.AddCommand(c, cli.VersionCommand("gdr-features-agent", version))
	return root
}

// configure adds the settings of environment and file to those of the command line.
func (p *program) configure(cmd *cobra.Command) error {
	f := cmd.Flags()
	if err := config.FromEnvironment(f, os.LookupEnv); err != nil {
		return err
	}
	if p.settings.Path != "" {
		text, err := regular.ReadFile(p.settings.Path, yamlfile.MaxSize)
		if err != nil {
			return fmt.Errorf("--config: %w", err)
		}
		if err := config.FromFile(f, text); err != nil {
			return fmt.Errorf("--config: %s:%w", p.settings.Path, err) // path:line:column: reason
		}
	}
	if !f.Changed("log-level") {
		p.LogLevel = "info"
	}
	if err := p.SetUp(p.log, p.err); err != nil {
		return err
	}
	if text, ok := p.log.Formatter.(*logrus.TextFormatter); ok {
		text.DisableTimestamp, text.FullTimestamp = false, true
	}
	klog.SetLogger(logrusr.New(p.log))
	return p.settings.Validate()
}

func (p *program) runAgent(ctx context.Context) error {
	a := agent.Agent{Interval: p.settings.Interval, Settle: p.settings.Settle, Now: p.now, Log: p.log}
	if !p.settings.Cleanup { // cleanup reads no machine
		if err := p.openMachine(&a); err != nil {
			return err
		}
	}
	var err error
	if a.Publishers, err = p.publishers(ctx); err != nil {
		return err
	}
	switch {
	case p.settings.Cleanup:
		return a.Cleanup(ctx)
	case p.settings.Once:
		return a.Once(ctx)
	}
	return p.runUntilEnd(ctx, &a)
}

func (p *program) openMachine(a *agent.Agent) error {
	fs, o, err := p.Machine(host.Open, report.ForPublishing)
	if err != nil {
		return err
	}
	o.Expect = machineflags.ExpectAgain(p.settings.Expect)
	if p.settings.Once { // a bad file fails the command
		if o.Expect, err = machineflags.ExpectOnce(p.settings.Expect); err != nil {
			return err
		}
	}
	machine := report.NewReader(fs, o)
	a.Collect = func(ctx context.Context, parts report.Parts) report.Report {
		ctx, cancel := context.WithTimeout(ctx, machineflags.ReadLimit)
		defer cancel()
		return machine.Read(ctx, parts)
	}
	a.PortsChanged, a.BootID = machine.PortsMoved, p.bootID(fs)
	return nil
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// bootID reads the kernel's random id of this boot; "" where it is unknown.
func (p *program) bootID(fs *host.FS) string {
	const file = "/proc/sys/kernel/random/boot_id"
	id, err := fs.Line(file)
	if err != nil || !uuid.MatchString(id) {
		p.log.WithError(err).Debugf("%s gives no boot id; a reboot looks like a restart of the agent", file)
		return ""
	}
	return id
}

// The agent counts as stuck after two intervals and stuckAfter without a reading.
const stuckAfter = 30 * time.Second

func (p *program) runUntilEnd(ctx context.Context, a *agent.Agent) error {
	p.log.WithField("version", cli.Version(version)).Info("gdr-features started")
	if p.settings.Listen != "" {
		m := monitor.New(cli.Version(version), p.settings.Publish, 2*p.settings.Interval+stuckAfter, p.now)
		m.Pairs = p.settings.MetricsPairs
		if err := p.serve(ctx, p.settings.Listen, m.Handler()); err != nil {
			return err
		}
		a.Monitor = m
	}
	if p.Host.Root == "/" { // events are about the running machine only
		a.Events = events(ctx, p.log, uevent.Listen)
	}
	return a.Run(ctx)
}

func (p *program) publishers(ctx context.Context) ([]publish.Publisher, error) {
	var all []publish.Publisher
	for _, name := range p.settings.Publish {
		if name == config.File {
			all = append(all, featurefile.New(p.settings.FeaturesDir, p.now))
			continue
		}
		one, err := p.nodeFeature(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (p *program) nodeFeature(ctx context.Context) (publish.Publisher, error) {
	access, token, err := p.access()
	if err != nil {
		return nil, err
	}
	if p.settings.NodeName == "" {
		bound, err := nodefeature.BoundNode(token)
		if err != nil {
			return nil, err
		}
		p.settings.NodeName = bound.Name
	}
	switch {
	case p.settings.NodeName == "":
		return nil, errors.New("the name of this node is unknown; set --node-name or $NODE_NAME")
	case p.settings.Namespace == "":
		return nil, errors.New("the namespace for the NodeFeature is unknown; set --namespace or $POD_NAMESPACE")
	}
	log := p.log.WithField("publisher", config.NodeFeature)
	one, err := nodefeature.New(access, token, p.settings.Namespace, p.settings.NodeName, p.now, log)
	if err != nil {
		return nil, err
	}
	if !p.settings.Once && !p.settings.Cleanup {
		one.Watch(ctx)
	}
	return one, nil
}
