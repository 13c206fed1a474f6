package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/config"
	"gdr-features/internal/snapshot"
)

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
