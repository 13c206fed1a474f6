package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// NodesProgram is the program that `gdr-features nodes` executes in its own place, and
// that kubectl runs for `kubectl gdr`. It is a program of its own because it also runs
// on macOS and Windows.
const NodesProgram = "kubectl-gdr"

// Nodes are the flags of the command nodes.
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

// NodesCommand is the command nodes with its flags and help, but without its action.
func NodesCommand(o *Nodes) *cobra.Command {
	c := &cobra.Command{
		Use:   "nodes [NODE...]",
		Short: "Show the nodes of a cluster, one line each, and why some are not ready",
		Long: `nodes shows what the agents of a cluster have published, one line a node, followed by
the number of ready nodes and the reasons of the others, the most frequent first. It
reads the NodeFeature objects gdr-features-NODE and changes nothing. The kubectl
plugin kubectl gdr is the same command; it also runs on macOS and Windows.

A dash means unknown; a node without an NVIDIA GPU has only dashes. LEVEL is the level
that every GPU reaches with its nearest NIC; GPUS and NICS count eligible devices.
MECHANISM is the way to GPU memory: peermem, DMA-BUF, or both. AGE is the time since
the agent last changed what it publishes, which it does only when something changes: a
high AGE means that nothing has changed, or that the agent does not run (kubectl -n
gdr-features get pods).

--selector has the syntax of kubectl, and selects by the published labels, with or
without their prefix. Exit status: 0, whether nodes are ready or not; 1 on an error,
also when a NODE has published nothing.`,
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
	f.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "show the agents of all namespaces")
	f.StringVarP(&o.Selector, "selector", "l", "", "label selector, such as gdr.level=PIX,gdr.gpus")
	f.StringVar(&o.Ready, "ready", "", "only nodes with this readiness: true, false or unknown")
	f.StringSliceVar(&o.Reasons, "reason", nil, "only nodes with one of these reasons")
	f.StringVarP(&o.Output, "output", "o", "table", "output format: table, wide or json")
	f.BoolVar(&o.NoHeaders, "no-headers", false, "print neither headings nor summary, for scripts")
	f.BoolVar(&o.Summarize, "summary", false, "print only the summary")
	f.IntVar(&o.ChunkSize, "chunk-size", 500, "how many objects to ask the API server for at a time, 0 for all at once")
	Words(c, "output", nodesOutputs...)
	Words(c, "ready", nodesReady...)
	return c
}

var (
	nodesOutputs = []string{"table", "wide", "json"}
	nodesReady   = []string{"true", "false", "unknown"}
)

// Validate finds flags that are wrong or contradict each other.
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
		return errors.New("--summary and --no-headers exclude each other")
	case o.Namespace == "" && !o.AllNamespaces:
		return errors.New("--namespace is empty; use -A for all namespaces")
	case o.ChunkSize < 0:
		return errors.New("--chunk-size: must be 0 or more")
	}
	return nil
}
