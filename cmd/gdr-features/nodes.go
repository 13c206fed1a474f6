package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gdr-features/internal/cli"
	"gdr-features/internal/cli/machineflags"
)

// nodesCommand knows the flags of nodes for help, completion and mistakes. What
// it does, another program does.
func (a *app) nodesCommand() *cobra.Command {
	c := cli.NodesCommand(&cli.Nodes{})
	var machine machineflags.Flags // its flags, hidden here
	others := pflag.NewFlagSet("", pflag.ContinueOnError)
	machine.DefineMachine(others)
	others.VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	c.Flags().AddFlagSet(others)
	c.RunE = func(cmd *cobra.Command, names []string) error {
		var wrong error
		others.VisitAll(func(f *pflag.Flag) {
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

// given writes down again the flags that were set.
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
