package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// copyCommand copies this program: its image has no shell and no cp.
func (a *app) copyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "copy DIR",
		Short: "Copy this program into a directory, for a container whose image lacks it",
		Long: `copy writes this program to DIR/gdr-features. It needs no libraries, so that it runs in
any image of the same processor: an initContainer of this image copies it to an emptyDir,
and the next one, of the job's own image, runs check --pod from there and sees the job's
libraries (docs/pod.md).`,
		Example: `  gdr-features copy /gdr`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			from, err := os.Executable()
			if err != nil {
				return err
			}
			program, err := os.ReadFile(from) //nolint:gosec // this program itself
			if err != nil {
				return err
			}
			return replace(filepath.Join(args[0], "gdr-features"), program)
		},
	}
}

// replace writes a program, whole or not at all: another process may be running the old one.
func replace(name string, program []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".gdr-features-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // it is not there any more when all is well
	_, err = file.Write(program)
	if err == nil {
		err = file.Chmod(0o755) // for every user of the other container
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.Rename(file.Name(), name)
}
