package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gdr-features/internal/cli"
	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/config"
	"gdr-features/internal/snapshot"
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

// runCommand has the flags of run, for help, completion and mistakes.
// gdr-features-agent does the work.
func (a *app) runCommand() *cobra.Command {
	c := machineflags.RunCommand(&config.Agent{})
	c.RunE = func(*cobra.Command, []string) error {
		if snapshot.Is(a.Host.Root) {
			return fmt.Errorf("run needs a live machine; --root %s is a snapshot", a.Host.Root)
		}
		return a.become(machineflags.AgentProgram, a.args)
	}
	return c
}

// become replaces this process with the program of that name in the same directory,
// and keeps the environment.
func become(program string, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	path := filepath.Join(filepath.Dir(self), program)
	err = syscall.Exec(path, append([]string{program}, args...), os.Environ()) //nolint:gosec // our own program
	return fmt.Errorf("%s: %w; install %s beside %s", path, err, program, filepath.Base(self))
}
