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

	"gdr-features/deploy/examples"
	"gdr-features/internal/cli"
	"gdr-features/internal/cli/imagecommand"
	"gdr-features/internal/cli/logcommand"
	"gdr-features/internal/cli/nodescommand"
	"gdr-features/internal/fleet/nodes"
	"gdr-features/internal/fleet/nodes/apiserver"
	"gdr-features/internal/label"
	"gdr-features/internal/regular"
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
	flags nodescommand.Flags
}

// command is kubectl gdr, which shows nodes, with the commands diff, history, example, log and image below it.
func command(s streams, page io.Writer) *cobra.Command {
	p := &program{streams: s, page: page}
	c, diff, history := nodescommand.Nodes(&p.flags), nodescommand.Diff(&p.flags), nodescommand.History(&p.flags)
	history.ValidArgsFunction = p.completeNode
	c.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl gdr"}
	c.Version = cli.Version(version)
	c.RunE, diff.RunE, history.RunE = p.nodes, p.diff, p.history
	c.Args = cobra.ArbitraryArgs // nodes, not commands
	c.CompletionOptions.DisableDefaultCmd = true
	c.SetHelpCommand(&cobra.Command{Hidden: true}) // help is the name of a node
	log := logcommand.Log{In: s.in, Out: s.out, Page: page, Err: s.err, Now: s.now}
	job := nodescommand.Example(&p.flags, examples.Names())
	job.RunE = p.example
	c.AddCommand(diff, history, job, log.Command("kubectl gdr", ""), imagecommand.New(s.out, os.Getenv))
	return c
}

func (p *program) nodes(cmd *cobra.Command, names []string) error {
	if cmd.Flags().Changed("wait") && p.flags.Wait <= 0 { // a script that computes 0 must not take any state for ready
		return errors.New("--wait: must be more than 0, such as 10m")
	}
	a, err := p.ask(names)
	if err != nil {
		return err
	}
	if p.flags.Wait > 0 {
		return p.wait(cmd.Context(), a)
	}
	r, err := p.look(cmd.Context(), a)
	if err != nil {
		return err
	}
	return p.print(names, &r)
}

// asked is what the flags and the names ask for: nodes of an API server that a filter picks. ofNodes
// is what Filter.Select returns.
type asked struct {
	access  *rest.Config
	query   apiserver.Query
	filter  nodes.Filter
	ofNodes string
}

// reading is what one look at the cluster shows.
type reading struct {
	all, picked []nodes.Node
	cluster     nodes.Cluster
}

// look reads what agents have published, and the cluster around it.
func (p *program) look(ctx context.Context, a *asked) (r reading, err error) {
	if r.all, err = p.list(ctx, a); err != nil {
		return r, err
	}
	rowsOnly := p.flags.NoHeaders && p.flags.Output != "json" // which show nothing of the cluster
	if !rowsOnly || a.ofNodes != "" || p.flags.Wait > 0 {
		if r.cluster, err = apiserver.Cluster(ctx, a.access, a.query, a.ofNodes); err != nil {
			return r, err
		}
	}
	if a.ofNodes != "" {
		a.filter.Only = r.cluster.Labels
	}
	r.cluster.Whole = len(a.query.Names) == 0 && a.filter.All() && p.flags.AllAgents()
	r.picked = a.filter.Pick(r.all)
	return r, nil
}

func (p *program) print(names []string, r *reading) error {
	summary, chain := nodes.Summarize(r.picked), r.cluster.Chain(r.picked, p.now())
	json := func() error { return nodes.JSON(p.out, r.picked, &chain) }
	text := func() error {
		if p.flags.NoHeaders {
			return nodes.Table(p.page, r.picked, p.style())
		}
		if err := chain.Text(p.page); err != nil {
			return err
		}
		fmt.Fprintln(p.page)
		if err := nodes.Table(p.page, r.picked, p.style()); err != nil {
			return err
		}
		fmt.Fprintln(p.page)
		return summary.Text(p.page)
	}
	if p.flags.Summarize {
		json = func() error { return nodes.SummaryJSON(p.out, summary, &chain) }
		text = func() error { return errors.Join(chain.Text(p.page), summary.Text(p.page)) }
	}
	var reasons []string // that can be selected
	for _, r := range nodes.Summarize(r.all).Reasons {
		reasons = append(reasons, r.Reason)
	}
	hint := ""
	if len(p.flags.Reasons) > 0 && len(reasons) > 0 {
		hint = "; existing reasons: " + strings.Join(reasons, " ")
	}
	return p.show(len(r.picked), nodes.Missing(names, r.all), json, text, hint)
}

// show writes the picked nodes, so many, as the flags say; nothing if none was picked and one
// that was named is missing. Missing nodes are an error.
func (p *program) show(picked int, none []string, json, text func() error, hint string) error {
	var err error
	switch {
	case picked == 0 && len(none) > 0:
	case p.flags.Output == "json":
		err = json()
	case picked == 0 && !p.flags.Summarize:
		_, err = fmt.Fprintln(p.err, "no node matches"+hint)
	default:
		err = text()
	}
	if err != nil || len(none) == 0 {
		return err
	}
	return missing(none)
}

func missing(names []string) error {
	return fmt.Errorf("no agent has published a NodeFeature of %s: there is no such node, its agent is not ready "+
		"(kubectl gdr shows that), or it has no NVIDIA or AMD GPU", strings.Join(names, ", "))
}

// query asks for nodes of these names, none for all.
func (p *program) query(names []string) apiserver.Query {
	q := apiserver.Query{Names: names, Namespace: p.flags.Namespace, PageSize: p.flags.ChunkSize}
	if p.flags.AllNamespaces {
		q.Namespace = ""
	}
	return q
}

// list reads what the agents of the nodes have published. It is an error if there is nothing at all,
// unless this waits for it.
func (p *program) list(ctx context.Context, a *asked) ([]nodes.Node, error) {
	query := a.query
	if p.terminal && p.flags.Wait == 0 {
		show, done := p.progress()
		defer done()
		query.Progress = show
	}
	all, err := apiserver.List(ctx, a.access, query)
	if err == nil && len(all) == 0 && len(query.Names) == 0 && p.flags.Wait == 0 {
		err = apiserver.Nothing(query.Namespace)
	}
	return all, err
}

// ask checks the flags and the names.
func (p *program) ask(names []string) (*asked, error) {
	if err := p.flags.Validate(); err != nil {
		return nil, err
	}
	for _, name := range names {
		if name == "" || name != label.Value(name) {
			return nil, fmt.Errorf("%q: not a valid node name", name)
		}
	}
	a := asked{query: p.query(names), filter: nodes.Filter{Ready: p.flags.Ready, Reasons: p.flags.Reasons}}
	var err error
	if a.ofNodes, err = a.filter.Select(p.flags.Selector); err != nil {
		return nil, fmt.Errorf("--selector %s: %w", p.flags.Selector, err)
	}
	a.access, err = p.access()
	return &a, err
}

func (p *program) style() nodes.Style {
	return nodes.Style{
		Now: p.now(), Namespaces: p.flags.AllNamespaces, Wide: p.flags.Output == "wide", Headers: !p.flags.NoHeaders,
		Columns: p.columns,
	}
}

// maxKubeconfig is the size in bytes of the largest kubeconfig that is read: that of a thousand
// clusters.
const maxKubeconfig = 4 << 20

// kubeconfig is what the flags and the environment name. It looks where kubectl looks.
func (p *program) kubeconfig() (clientcmd.ClientConfig, *clientcmd.ClientConfigLoadingRules) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.flags.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: p.flags.Context}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides), rules
}

// access says how to reach the API server.
func (p *program) access() (*rest.Config, error) {
	config, rules := p.kubeconfig()
	for _, path := range rules.GetLoadingPrecedence() {
		if err := regular.Check(path, maxKubeconfig); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
	}
	access, err := config.ClientConfig()
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
