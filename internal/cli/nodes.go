package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// NodesProgram is the program that `gdr-features nodes` becomes, and kubectl runs
// for `kubectl gdr`. It is one of its own
// since all that speaks to Kubernetes would slow down every start of the others, and
// since it runs where kubectl runs, also on macOS and Windows.
const NodesProgram = "kubectl-gdr"

// Nodes are the flags of the verb nodes.
type Nodes struct {
	Kubeconfig, Context  string
	Namespace            string
	AllNamespaces        bool
	Selector, Ready      string
	Reasons              []string
	Output               string
	NoHeaders, Summarize bool
	ChunkSize            int
}

// NodesCommand is the verb nodes, without what it does.
func NodesCommand(o *Nodes) *cobra.Command {
	c := &cobra.Command{
		Use:   "nodes [NODE...]",
		Short: "Show all nodes of a cluster, a line each, and why some are not ready",
		Long: `nodes shows what the agents of a cluster have published, a line a node, and below
how many are ready and the reasons of the others, the most frequent first. It
reads the NodeFeature objects gdr-features-NODE, and changes nothing. As a plugin
of kubectl the same command is kubectl gdr, which also runs on macOS and Windows.

A dash is what is not known, and everything on a node without NVIDIA GPU. LEVEL is
the level that every GPU reaches with its nearest NIC; GPUS and NICS count those
that are eligible. MECHANISM is the way to GPU memory: peermem, DMA-BUF, or both.
AGE is how long ago the agent last changed what it publishes, which it does when
something changes: a great age means that nothing has changed, or that the agent
does not run (kubectl -n gdr-features get pods).

--selector takes what kubectl takes, over the published labels, with or without
their prefix. Exit status: 0, whether nodes are ready or not; 1 on an error, also
when a NODE has published nothing.`,
		Example: `  kubectl gdr                                     # all nodes, and the reasons in numbers
  kubectl gdr --ready false --reason PeermemNotLoaded
  kubectl gdr -l 'gdr.level in (PIX, PXB)' -o wide
  kubectl gdr -o json | jq -r '.nodes[] | select(.ready != "true") | .node'
  gdr-features nodes --summary`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig file, instead of $KUBECONFIG and ~/.kube/config")
	f.StringVar(&o.Context, "context", "", "context of the kubeconfig, instead of the current one")
	f.StringVarP(&o.Namespace, "namespace", "n", "gdr-features", "namespace of the agents")
	f.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "agents of all namespaces")
	f.StringVarP(&o.Selector, "selector", "l", "", "label selector, such as gdr.level=PIX,gdr.gpus")
	f.StringVar(&o.Ready, "ready", "", "only nodes that are ready, that are not, or of which it is unknown: true, false or unknown")
	f.StringSliceVar(&o.Reasons, "reason", nil, "only nodes with one of these reasons")
	f.StringVarP(&o.Output, "output", "o", "table", "output format: table, wide or json")
	f.BoolVar(&o.NoHeaders, "no-headers", false, "the lines of nodes alone, for scripts: neither headings nor summary")
	f.BoolVar(&o.Summarize, "summary", false, "the summary alone")
	f.IntVar(&o.ChunkSize, "chunk-size", 500, "how many objects to ask the API server for at a time, 0 for all at once")
	Words(c, "output", nodesOutputs...)
	Words(c, "ready", nodesReady...)
	return c
}

var (
	nodesOutputs = []string{"table", "wide", "json"}
	nodesReady   = []string{"true", "false", "unknown"}
)

// Validate checks what flags alone can tell.
func (o *Nodes) Validate() error {
	if err := OneOf("output", o.Output, nodesOutputs...); err != nil {
		return err
	}
	if o.Ready != "" {
		if err := OneOf("ready", o.Ready, nodesReady...); err != nil {
			return err
		}
	}
	switch {
	case o.Summarize && o.NoHeaders:
		return errors.New("--summary and --no-headers leave nothing to show")
	case o.Namespace == "" && !o.AllNamespaces:
		return errors.New("--namespace is empty; -A is for all namespaces")
	case o.ChunkSize < 0:
		return errors.New("--chunk-size: must be 0 or more")
	}
	return nil
}
