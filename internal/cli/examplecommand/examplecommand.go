// Package examplecommand has the flags and help of kubectl gdr example.
package examplecommand

import (
	"github.com/spf13/cobra"

	"gdr-features/deploy/examples"
	"gdr-features/internal/cli"
	"gdr-features/internal/cli/nodescommand"
)

// New is the command with its flags and help, but without its action.
func New(o *nodescommand.Flags) *cobra.Command {
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
		ValidArgs: examples.Names(),
	}
	o.Access(c)
	c.Flags().StringVarP(&o.Selector, "selector", "l", "", "label selector of Nodes, such as pool=train,gdr.level=PIX")
	c.Flags().StringVar(&o.JobNamespace, "job-namespace", "", "namespace of the job, instead of that of the kubeconfig")
	return c
}
