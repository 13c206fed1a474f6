package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gdr-features/internal/cli"
	"gdr-features/internal/cli/machineflags"
)

// nodesCommand and slicesCommand have the flags of nodes, nodes diff and slices, for help,
// completion and mistakes. kubectl-gdr does the work.
func (a *app) nodesCommand() *cobra.Command {
	c := a.ofCluster(cli.NodesCommand(&cli.Nodes{}))
	c.AddCommand(a.ofCluster(cli.DiffCommand(&cli.Nodes{}), "diff"))
	return c
}

func (a *app) slicesCommand() *cobra.Command {
	return a.ofCluster(cli.SlicesCommand(&cli.Nodes{}), "slices")
}

// ofCluster makes kubectl-gdr do the work of a command; words are what it is called there.
func (a *app) ofCluster(c *cobra.Command, words ...string) *cobra.Command {
	var machine machineflags.Flags // accepted only to explain why they do not fit
	machineOnly := pflag.NewFlagSet("", pflag.ContinueOnError)
	machine.DefineMachine(machineOnly)
	machineOnly.VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	c.Flags().AddFlagSet(machineOnly)
	c.RunE = func(cmd *cobra.Command, names []string) error {
		var wrong error
		machineOnly.VisitAll(func(f *pflag.Flag) {
			if f.Changed {
				wrong = fmt.Errorf("--%s is about one machine and does not go with %s, which reads a cluster", f.Name, cmd.Name())
			}
		})
		if wrong != nil {
			return wrong
		}
		return a.become(cli.NodesProgram, slices.Concat(words, given(cmd.LocalFlags()), []string{"--"}, names))
	}
	return c
}

// given returns the flags that were set as arguments.
func given(flags *pflag.FlagSet) []string {
	var args []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, value := range list.GetSlice() {
				args = append(args, "--"+f.Name+"="+value)
			}
			return
		}
		args = append(args, "--"+f.Name+"="+f.Value.String())
	})
	return args
}
