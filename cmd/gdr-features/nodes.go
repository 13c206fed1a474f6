package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gdr-features/internal/cli"
	"gdr-features/internal/cli/machineflags"
)

// nodesCommand has the flags of nodes, for help, completion and mistakes. kubectl-gdr
// does the work.
func (a *app) nodesCommand() *cobra.Command {
	c := cli.NodesCommand(&cli.Nodes{})
	var machine machineflags.Flags // accepted only to explain why they do not fit
	machineOnly := pflag.NewFlagSet("", pflag.ContinueOnError)
	machine.DefineMachine(machineOnly)
	machineOnly.VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	c.Flags().AddFlagSet(machineOnly)
	c.RunE = func(cmd *cobra.Command, names []string) error {
		var wrong error
		machineOnly.VisitAll(func(f *pflag.Flag) {
			if f.Changed {
				wrong = fmt.Errorf("--%s is about one machine and does not go with nodes, which reads a cluster", f.Name)
			}
		})
		if wrong != nil {
			return wrong
		}
		return a.become(cli.NodesProgram, append(given(cmd.LocalFlags()), append([]string{"--"}, names...)...))
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
