package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// NodesProgram is the program that `gdr-features nodes` and `slices` become, and that kubectl
// runs for `kubectl gdr`: it also runs on macOS and Windows.
const NodesProgram = "kubectl-gdr"

// Nodes are the flags of the commands nodes and nodes diff; only nodes has Summarize.
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
	c := o.define(&cobra.Command{
		Use:   "nodes [NODE...]",
		Short: "Show the nodes of a cluster, one line each, and why some are not ready",
		Long: `nodes shows what the agents of a cluster have published, one line a node, followed by
the number of ready nodes and the reasons of the others, the most frequent first. It
reads the NodeFeature objects gdr-features-NODE and changes nothing. The kubectl
plugin kubectl gdr is the same command; it also runs on macOS and Windows.

A dash means unknown; a node without an NVIDIA or AMD GPU has only dashes. LEVEL is the
level that every GPU reaches with its nearest NIC; GPUS and NICS count eligible devices.
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
	}, "print neither headings nor summary, for scripts")
	c.Flags().BoolVar(&o.Summarize, "summary", false, "print only the summary")
	return c
}

// DiffCommand is the command nodes diff with its flags and help, but without its action.
func DiffCommand(o *Nodes) *cobra.Command {
	c := o.define(&cobra.Command{
		Use:   "diff [NODE...]",
		Short: "Show which nodes of a kind are not alike, and in what",
		Long: `diff compares nodes of one kind: those with the same GPUs and NICs at the same
PCI addresses, devices that are missing on some nodes aside. It prints for each
kind in what nodes differ from most of them, from what the agents have
published. It changes nothing.

What a job needs alike for all its ranks comes first (JOB yes): the names of the
NICs by rail, the active MTU, the number of NICs and GPUs, link layer, GID index
and state of the ports. Then follow rates, NUMA nodes, readiness, findings, and
the versions of GPU driver, RDMA stack and kernel. A rail is the number of a NIC
among those that jobs use, in the order of their addresses. MOST is what most
nodes of the kind have, and how many of those of which it is known.

The MTU is what the RDMA device says if the agent runs with --probe-verbs, and
otherwise follows from the mtu of the network device of a RoCE port; that of
InfiniBand is then not known. The GID index is the entry that NCCL chooses by
itself. What is not known is not compared, and counted below the table.

-o wide has a line for each node and NIC. --selector is as in "kubectl get
nodes": it may name any label of the nodes, and labels of gdr-features also
without their prefix. Exit status: 0 alike; 2 some nodes differ; 1 on an error,
also when a NODE has published nothing.`,
		Example: `  kubectl gdr diff                       # the whole cluster, by kind
  kubectl gdr diff -l pool=train         # the nodes of a pool
  kubectl gdr diff hgx-1 hgx-2 -o wide   # two nodes, NIC by NIC
  kubectl gdr diff -o json | jq -r '.kinds[].differences[] | select(.job) | .node' | sort -u
  gdr-features nodes diff -l pool=train > /dev/null || echo "not alike"`,
	}, "print only the lines of the tables, for scripts")
	c.Flags().Lookup("selector").Usage = "label selector, as kubectl get nodes takes it"
	return c
}

// define defines the flags that all these commands have; noHeaders is the help of one.
func (o *Nodes) define(c *cobra.Command, noHeaders string) *cobra.Command {
	c.ValidArgsFunction = cobra.NoFileCompletions
	f := c.Flags()
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig file, instead of $KUBECONFIG and ~/.kube/config")
	f.StringVar(&o.Context, "context", "", "context of the kubeconfig, instead of the current one")
	f.StringVarP(&o.Namespace, "namespace", "n", "gdr-features", "namespace of the agents")
	f.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "show the agents of all namespaces")
	f.StringVarP(&o.Selector, "selector", "l", "", "label selector, such as gdr.level=PIX,gdr.gpus")
	f.StringVar(&o.Ready, "ready", "", "only nodes with this readiness: true, false or unknown")
	f.StringSliceVar(&o.Reasons, "reason", nil, "only nodes with one of these reasons")
	Output(c, &o.Output, "table, wide or json", "table", "wide", "json")
	f.BoolVar(&o.NoHeaders, "no-headers", false, noHeaders)
	f.IntVar(&o.ChunkSize, "chunk-size", 500, "how many objects to ask the API server for at a time, 0 for all at once")
	Words(c, "ready", nodesReady...)
	return c
}

var nodesReady = []string{"true", "false", "unknown"}

// Validate finds flags that are wrong or contradict each other.
func (o *Nodes) Validate() error {
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
