package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
)

// write writes what a command prints: to standard output, or to a file of this name.
func (a *app) write(name string, text []byte) error {
	if name == "" {
		_, err := a.out.Write(text)
		return err
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", name)
	}
	const forOthers = 0o644 // it is to be sent, or read by another container
	return replace(name, text, forOthers)
}

// replace writes a file under another name and renames it, so that it is never seen in part:
// another process may be running or reading the old one.
func replace(name string, text []byte, mode fs.FileMode) error {
	to, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = to.Write(text)
	if err = errors.Join(err, to.Chmod(mode), to.Close()); err == nil {
		err = os.Rename(to.Name(), name)
	}
	if err != nil {
		_ = os.Remove(to.Name())
	}
	return err
}

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
		Args:    cli.Args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			from, err := os.Executable()
			if err != nil {
				return err
			}
			program, err := os.ReadFile(from) //nolint:gosec // this program itself
			if err != nil {
				return err
			}
			const forAll = 0o755 // for every user of the other container
			return replace(filepath.Join(args[0], "gdr-features"), program, forAll)
		},
	}
}
