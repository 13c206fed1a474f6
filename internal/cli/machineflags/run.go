package machineflags

import (
	"os"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
	"gdr-features/internal/config"
)

// AgentProgram is the program that `gdr-features run` executes in its own place, from
// the directory of gdr-features. In one binary, client-go would raise the CPU time
// of every command to five times that of a bare C program; the bound is four (make
// bench).
const AgentProgram = "gdr-features-agent"

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
		Args: cobra.NoArgs,
	}
	agent.Define(c.Flags(), os.Getenv)
	cli.List(c, "publish", config.Publishers...)
	return c
}
