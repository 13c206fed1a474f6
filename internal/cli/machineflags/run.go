package machineflags

import (
	"os"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
	"gdr-features/internal/config"
)

// AgentProgram is the program that `gdr-features run` becomes. It lies beside
// gdr-features. It is one of its own since all that speaks to Kubernetes would
// slow down every start of the others.
const AgentProgram = "gdr-features-agent"

// RunCommand is the verb run, without what it does.
func RunCommand(agent *config.Agent) *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the node agent: publish the labels and keep them true",
		Long: `run reads the machine over and over and publishes its labels: as a NodeFeature
object (nodefeature), or as a feature file (file), or both. It writes when
something has changed, and when somebody has changed what it published. What is
published stays when it ends; --cleanup removes it.

Hardware labels change after two equal readings. State labels turn true at once,
and anything else when the cause has held for --settle. What cannot be read keeps
the labels it had.

Every flag is also an environment variable, GDR_FEATURES_INTERVAL for --interval,
and a key of the file that --config names. The command line comes first, then the
environment, then the file. Unless told otherwise it logs from info on.`,
		Example: `  gdr-features run                                    # in a pod: a NodeFeature of this node
  gdr-features run --publish file                     # a feature file for the nfd-worker of this node
  gdr-features run --once --kubeconfig ~/.kube/config --node-name n1 --namespace gdr-features
  gdr-features run --cleanup --publish file           # remove the feature file`,
		Args: cobra.NoArgs,
	}
	agent.Define(c.Flags(), os.Getenv)
	cli.Words(c, "publish", config.Publishers...)
	return c
}
