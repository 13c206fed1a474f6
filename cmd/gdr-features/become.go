package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/cli/nodescommand"
	"gdr-features/internal/config"
	"gdr-features/internal/rooms/snapshot"
)

// ofCluster returns nodes or nodes diff, which has its flags for help, completion and
// mistakes. kubectl-gdr does the work; words are what the command is called there.
func (a *app) ofCluster(c *cobra.Command, words ...string) *cobra.Command {
	var machine machineflags.Flags // accepted only to explain why they do not fit
	machineOnly := pflag.NewFlagSet("", pflag.ContinueOnError)
	machine.DefineMachine(machineOnly)
	machineOnly.VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	c.Flags().AddFlagSet(machineOnly)
	c.RunE = func(cmd *cobra.Command, names []string) error {
		args := slices.Clone(words)
		var wrong error
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			list, isList := f.Value.(pflag.SliceValue)
			switch {
			case !f.Changed:
			case machineOnly.Lookup(f.Name) != nil:
				wrong = fmt.Errorf("--%s is about one machine and does not go with %s, which reads a cluster", f.Name, cmd.Name())
			case isList:
				for _, value := range list.GetSlice() {
					args = append(args, "--"+f.Name+"="+value)
				}
			default:
				args = append(args, "--"+f.Name+"="+f.Value.String())
			}
		})
		if wrong != nil {
			return wrong
		}
		return a.become(nodescommand.Program, slices.Concat(args, []string{"--"}, names))
	}
	return c
}

// runCommand has the flags of run, for help, completion and mistakes.
// gdr-features-agent does the work.
func (a *app) runCommand() *cobra.Command {
	// In one binary, client-go would take every command over the bounds of make bench.
	const agentProgram = "gdr-features-agent"
	c := machineflags.RunCommand(&config.Agent{})
	c.RunE = func(*cobra.Command, []string) error {
		if snapshot.Is(a.Host.Root) {
			return fmt.Errorf("run needs a live machine; --root %s is a snapshot", a.Host.Root)
		}
		return a.become(agentProgram, a.args)
	}
	return c
}

// become replaces this process with the program of that name in the same directory.
func become(program string, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	path := filepath.Join(filepath.Dir(self), program)
	err = syscall.Exec(path, append([]string{program}, args...), os.Environ()) //nolint:gosec // our own program
	return fmt.Errorf("%s: %w; install %s beside %s", path, err, program, filepath.Base(self))
}
