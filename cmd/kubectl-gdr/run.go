package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // a way to log in that a kubeconfig may name
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"gdr-features/internal/cli"
	"gdr-features/internal/cli/imagecommand"
	"gdr-features/internal/cli/logcommand"
	"gdr-features/internal/label"
	"gdr-features/internal/nodes"
	"gdr-features/internal/nodes/apiserver"
	"gdr-features/internal/terminal"
)

type streams struct {
	in       io.Reader
	out, err io.Writer
	terminal bool // err is a terminal
	columns  int  // of the terminal that out is; 0 for none
	now      func() time.Time
}

// run is the program without the process around it. It gives the exit status.
func run(ctx context.Context, args []string, s streams) int {
	klog.LogToStderr(false) // client-go also returns what it logs as errors
	klog.SetOutput(io.Discard)
	page := terminal.NewWriter(s.out, s.columns)
	return cli.Run(ctx, command(s, page), args, page, s.err)
}

type program struct {
	streams
	page  io.Writer // out with lines broken on a terminal
	flags cli.Nodes
}

// command is kubectl gdr, which shows nodes, with the commands diff, log and image below it.
func command(s streams, page io.Writer) *cobra.Command {
	p := &program{streams: s, page: page}
	c, diff := cli.NodesCommand(&p.flags), cli.DiffCommand(&p.flags)
	c.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl gdr"}
	c.Version = cli.Version(version)
	c.RunE, diff.RunE = p.nodes, p.diff
	c.Args = cobra.ArbitraryArgs // nodes, not commands
	c.CompletionOptions.DisableDefaultCmd = true
	c.SetHelpCommand(&cobra.Command{Hidden: true}) // help is the name of a node
	log := logcommand.Log{In: s.in, Out: s.out, Page: page, Err: s.err, Now: s.now}
	c.AddCommand(diff, log.Command("kubectl gdr", ""), imagecommand.New(s.out, os.Getenv))
	return c
}

func (p *program) nodes(cmd *cobra.Command, names []string) error {
	filter, _, err := p.filter(names, false)
	if err != nil {
		return err
	}
	all, err := p.read(cmd.Context(), apiserver.Query{Names: names}, nil)
	if err != nil {
		return err
	}
	picked := filter.Pick(all)
	summary := nodes.Summarize(picked)
	json := func() error { return nodes.JSON(p.out, picked) }
	text := func() error {
		if err := nodes.Table(p.page, picked, p.style()); err != nil || p.flags.NoHeaders {
			return err
		}
		if _, err := fmt.Fprintln(p.page); err != nil {
			return err
		}
		return summary.Text(p.page)
	}
	if p.flags.Summarize {
		json = func() error { return nodes.SummaryJSON(p.out, summary) }
		text = func() error { return summary.Text(p.page) }
	}
	var reasons []string // that can be selected
	for _, r := range nodes.Summarize(all).Reasons {
		reasons = append(reasons, r.Reason)
	}
	hint := ""
	if len(p.flags.Reasons) > 0 && len(reasons) > 0 {
		hint = "; existing reasons: " + strings.Join(reasons, " ")
	}
	return p.show(len(picked), nodes.Missing(names, all), json, text, hint)
}

// show writes the picked nodes, so many, as the flags say; nothing if none was picked and one
// that was named is missing. Missing nodes are an error.
func (p *program) show(picked int, missing []string, json, text func() error, hint string) error {
	var err error
	switch {
	case picked == 0 && len(missing) > 0:
	case p.flags.Output == "json":
		err = json()
	case picked == 0 && !p.flags.Summarize:
		_, err = fmt.Fprintln(p.err, "no node matches"+hint)
	default:
		err = text()
	}
	if err != nil || len(missing) == 0 {
		return err
	}
	return fmt.Errorf("no agent has published a NodeFeature of %s; is there a node of that name, and does it have an NVIDIA or AMD GPU?", strings.Join(missing, ", "))
}

// read reads what the agents of the nodes of a query have published. Then it calls more, if
// that is not nil, with what to read of the same nodes.
func (p *program) read(ctx context.Context, query apiserver.Query, more func(*rest.Config, apiserver.Query) error) ([]nodes.Node, error) {
	access, err := p.access()
	if err != nil {
		return nil, err
	}
	query.Namespace, query.PageSize = p.flags.Namespace, p.flags.ChunkSize
	if p.flags.AllNamespaces {
		query.Namespace = ""
	}
	if p.terminal {
		show, done := p.progress()
		defer done()
		query.Progress = show
	}
	all, err := apiserver.List(ctx, access, query)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 && len(query.Names) == 0 {
		return nil, apiserver.Nothing(query.Namespace)
	}
	if more != nil {
		err = more(access, query)
	}
	return all, err
}

// filter checks the flags and the names and returns the filter that the flags describe. With
// others the selector may name other labels of Nodes; ofNodes is what Filter.Select returns.
func (p *program) filter(names []string, others bool) (f *nodes.Filter, ofNodes string, err error) {
	if err := p.flags.Validate(); err != nil {
		return nil, "", err
	}
	for _, name := range names {
		if name == "" || name != label.Value(name) {
			return nil, "", fmt.Errorf("%q: not a valid node name", name)
		}
	}
	f = &nodes.Filter{Ready: p.flags.Ready, Reasons: p.flags.Reasons}
	if ofNodes, err = f.Select(p.flags.Selector, others); err != nil {
		err = fmt.Errorf("--selector %s: %w", p.flags.Selector, err)
	}
	return f, ofNodes, err
}

func (p *program) style() nodes.Style {
	return nodes.Style{
		Now: p.now(), Namespaces: p.flags.AllNamespaces, Wide: p.flags.Output == "wide", Headers: !p.flags.NoHeaders,
	}
}

// maxKubeconfig is the size in bytes of the largest kubeconfig that is read: that of a thousand
// clusters.
const maxKubeconfig = 4 << 20

// access says how to reach the API server. It looks where kubectl looks.
func (p *program) access() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.flags.Kubeconfig
	for _, path := range rules.GetLoadingPrecedence() {
		if err := cli.Regular(path, maxKubeconfig); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: p.flags.Context}
	access, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("no cluster: nothing in %s, and this is not a pod; give --kubeconfig or $KUBECONFIG", strings.Join(rules.GetLoadingPrecedence(), " or "))
	case errors.Is(err, os.ErrNotExist) && p.flags.Kubeconfig != "":
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	access.UserAgent = "gdr-features/" + cli.Version(version)
	return access, nil
}

// progress returns a function that shows on a terminal how many nodes have been read, after
// the first second, and one that takes the line away.
func (p *program) progress() (show func(n int), done func()) {
	begun, width := p.now(), 0
	show = func(n int) {
		if p.now().Sub(begun) >= time.Second {
			line := fmt.Sprintf("%d nodes read", n)
			width = len(line)
			fmt.Fprint(p.err, "\r"+line)
		}
	}
	return show, func() {
		if width > 0 { // by spaces: a Windows console may print escape sequences
			fmt.Fprintf(p.err, "\r%*s\r", width, "")
		}
	}
}
