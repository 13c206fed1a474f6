// Package nodescommand has the flags and help of kubectl gdr, which is also gdr-features nodes, and
// of the commands diff, history and example below it.
package nodescommand

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
)

// Program is what `gdr-features nodes` becomes, and what kubectl runs for `kubectl gdr`. It also
// runs on macOS and Windows.
const Program = "kubectl-gdr"

// Flags are those of the commands nodes, nodes diff and nodes history; only nodes has
// Summarize and Wait.
type Flags struct {
	Kubeconfig, Context  string
	Namespace            string
	JobNamespace         string // of example
	AllNamespaces        bool
	Selector, Ready      string
	Reasons              []string
	Output               string
	NoHeaders, Summarize bool
	ChunkSize            int
	Wait                 time.Duration
}

// Nodes is the command nodes with its flags and help, but without its action.
func Nodes(o *Flags) *cobra.Command {
	c := o.define(&cobra.Command{
		Use:   "nodes [NODE...]",
		Short: "Show the nodes of a cluster, one line each, and why some are not ready",
		Long: `nodes shows what the agents of a cluster have published, one line a node, after
a line on the chain from the agents to the labels, and followed by the number of
ready nodes, the reasons of the others, and the warnings. It reads and changes
nothing. The kubectl plugin kubectl gdr is the same command; it also runs on
macOS and Windows.

The chain: how many agents are ready; how many Nodes have other labels than
their agent published, and since when at most; how many NodeFeatures have no
agent; and, without names, filters and -n, how many Nodes have labels without an
agent's NodeFeature. If something is wrong, it names Nodes and the likely cause.
What you may not read it says, too (deploy/examples/reader.yaml has the rights).

A dash means unknown. A node without an NVIDIA or AMD GPU has no line, or only
dashes if it had a GPU before; one whose agent has not been ready yet has none.
READY is what the agent has published; jobs go by the labels of the Node, which
the chain compares. LEVEL is the level that every GPU reaches with its nearest
NIC. REASON/WARN is why the node is not ready, or the first warning of one that
is, and how many more there are; gdr-features explain CODE has more. AGE is the
time since something last changed on the node: kubectl gdr history NODE says
what. -o wide has more columns: GPUS and NICS count eligible devices, MECHANISM
is the way to GPU memory (peermem, DMA-BUF, or both). On a terminal that is too
narrow a long name is cut in the midst.

--selector has the syntax of kubectl. Labels of gdr-features, with or without
their prefix, are those that agents have published; any other is a label of the
Node. --wait ends as soon as all selected nodes are ready and their Nodes have
the label. A node without GPU never is: leave such nodes out, as -l gdr.gpus
does. Exit status: 0, whether nodes are ready or not; 2 with --wait if not all
became ready in that time; 1 on an error, also when a NODE has published
nothing.`,
		Example: `  kubectl gdr                                 # all nodes, and the reasons in numbers
  kubectl gdr --ready false --reason PeermemNotLoaded
  kubectl gdr -l 'pool=train,gdr.level in (PIX, PXB)' -o wide
  kubectl gdr --wait 10m -l pool=train        # after a driver roll-out
  kubectl gdr -o json | jq -r '.nodes[] | select(.ready != "true") | .node'
  gdr-features nodes --summary`,
	}, "print neither headings nor summary, for scripts")
	c.Flags().BoolVar(&o.Summarize, "summary", false, "print only the chain and the summary")
	c.Flags().DurationVar(&o.Wait, "wait", 0, "wait until all selected nodes are ready, at most so long, such as 10m")
	return c
}

// History is the command nodes history with its flags and help, but without its action.
func History(o *Flags) *cobra.Command {
	c := &cobra.Command{
		Use:   "history NODE",
		Short: "Show what changed on a node, and when",
		Long: `history prints the last 20 changes of the labels and findings of a node, the newest
first. The agent writes them into the NodeFeature of the node. A dash stands for
no value: the label or finding was new, or has gone. Exit status: 0; 1 on an
error, also when the node has published nothing.`,
		Example: `  kubectl gdr history hgx-2
  kubectl gdr history hgx-2 -o json | jq '.changes[] | select(.name == "gdr.rate")'`,
		Args: cli.Args(1, 1),
	}
	o.access(c)
	cli.Output(c, &o.Output, "table or json", "table", "json")
	c.Flags().BoolVar(&o.NoHeaders, "no-headers", false, "print no headings, for scripts")
	return c
}

// Diff is the command nodes diff with its flags and help, but without its action.
func Diff(o *Flags) *cobra.Command {
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

-o wide has a line for each node and NIC. --selector is as that of nodes. Exit
status: 0 alike; 2 some nodes differ; 1 on an error,
also when a NODE has published nothing.`,
		Example: `  kubectl gdr diff                       # the whole cluster, by kind
  kubectl gdr diff -l pool=train         # the nodes of a pool
  kubectl gdr diff hgx-1 hgx-2 -o wide   # two nodes, NIC by NIC
  kubectl gdr diff -o json | jq -r '.kinds[].differences[] | select(.job) | .node' | sort -u
  gdr-features nodes diff -l pool=train > /dev/null || echo "not alike"`,
	}, "print only the lines of the tables, for scripts")
	return c
}

// Example is the command example, of the files with these names, without its action.
func Example(o *Flags, names []string) *cobra.Command {
	c := &cobra.Command{
		Use:   "example [NAME]",
		Short: "Print an example job, filled in from the cluster",
		Long: `example prints a file of deploy/examples with what the cluster knows filled in:
the resources of GPUs and RDMA devices and how many there are of them, level and
rate, the networks of the job's namespace, tolerations of the nodes' taints, and
the image of gdr-features. It is for the ready nodes, or those of them that
--selector selects; where these differ, for the kind that most of them are of.
Its Pods with GPUs run on no others: their node affinity has the selector, too.
Without NAME it lists the examples. It changes nothing.

What the cluster cannot know is a line "# TODO: ..." where it belongs. Once these
are filled in the file applies.

It reads Nodes, NetworkAttachmentDefinitions and the DaemonSet of the agents. Exit
status: 0; 1 on an error, also when no ready node is selected.`,
		Example: `  kubectl gdr example                             # which there are
  kubectl gdr example nccl > job.yaml && grep TODO job.yaml
  kubectl gdr example vllm -l pool=inference --job-namespace serving`,
		Args:      cli.Args(0, 1),
		ValidArgs: names,
	}
	o.access(c)
	c.Flags().StringVarP(&o.Selector, "selector", "l", "", "label selector of Nodes, such as pool=train,gdr.level=PIX")
	c.Flags().StringVar(&o.JobNamespace, "job-namespace", "", "namespace of the job, instead of that of the kubeconfig")
	return c
}

// define defines the flags that all these commands have; noHeaders is the help of one.
func (o *Flags) define(c *cobra.Command, noHeaders string) *cobra.Command {
	c.ValidArgsFunction = cobra.NoFileCompletions
	o.access(c)
	f := c.Flags()
	f.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "show the agents of all namespaces")
	f.StringVarP(&o.Selector, "selector", "l", "", "label selector, such as pool=train,gdr.level=PIX")
	f.StringVar(&o.Ready, "ready", "", "only nodes with this readiness: true, false or unknown")
	f.StringSliceVar(&o.Reasons, "reason", nil, "only nodes with one of these reasons")
	cli.Output(c, &o.Output, "table, wide or json", "table", "wide", "json")
	f.BoolVar(&o.NoHeaders, "no-headers", false, noHeaders)
	f.IntVar(&o.ChunkSize, "chunk-size", 500, "how many objects to ask the API server for at a time, 0 for all at once")
	cli.Words(c, "ready", nodesReady...)
	return c
}

// access defines the flags that say where the agents are.
func (o *Flags) access(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig file, instead of $KUBECONFIG and ~/.kube/config")
	f.StringVar(&o.Context, "context", "", "context of the kubeconfig, instead of the current one")
	f.StringVarP(&o.Namespace, "namespace", "n", namespace, "namespace of the agents")
}

// namespace is the default one of agents.
const namespace = "gdr-features"

// AllAgents reports whether all agents are asked for: those of all namespaces, or of the one in which
// they are unless somebody has moved them.
func (o *Flags) AllAgents() bool { return o.AllNamespaces || o.Namespace == namespace }

var nodesReady = []string{"true", "false", "unknown"}

// Validate finds flags that are wrong or contradict each other.
func (o *Flags) Validate() error {
	if o.Ready != "" {
		if err := cli.OneOf("ready", o.Ready, nodesReady...); err != nil {
			return err
		}
	}
	switch {
	case o.Summarize && o.NoHeaders:
		return errors.New("--summary and --no-headers exclude each other")
	case o.Namespace == "" && !o.AllNamespaces:
		return errors.New("--namespace is empty; use -A for all namespaces")
	case o.Wait > 0 && (o.Ready != "" || len(o.Reasons) > 0):
		return errors.New("--wait waits for nodes that are not ready; it excludes --ready and --reason")
	case o.ChunkSize < 0:
		return errors.New("--chunk-size: must be 0 or more")
	}
	return nil
}
