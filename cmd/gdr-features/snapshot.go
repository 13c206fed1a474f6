package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/report"
	"gdr-features/internal/snapshot"
)

func (a *app) snapshotCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "snapshot",
		Short: "Write what was read of this machine to one text file, for somebody else",
		Long: `snapshot reads what all verbs read, once, and writes it as one text: each file with
its content, each link, each directory, and what was missing, not allowed, or gave
no answer. Every verb but run and nodes takes the file as --root and prints what it
prints here.

Serial numbers, GUIDs, UUIDs and MACs are replaced by numbers, the same by the same;
kernel addresses, users and host names are overwritten. Where a device is named
after its MAC or GUID, its name is another one then. PCI addresses, products,
versions and NUMA nodes are in it as they are: look through it before you send it.

Take it as root: what only root may read (ACS, VPD) is not in it otherwise. What
--probe-verbs asks devices and what --topology-file names are no part of it.`,
		Example: `  gdr-features snapshot -f node7.snapshot
  gdr-features --root node7.snapshot check           # on any other machine
  ssh node7 sudo gdr-features snapshot > node7.snapshot
  diff <(ssh node7 gdr-features snapshot) <(ssh node8 gdr-features snapshot)`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := a.snapshot(cmd.Context())
			if err != nil {
				return err
			}
			if file == "" {
				_, err = a.out.Write(text)
				return err
			}
			return writeWhole(file, text)
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "file to write, whole or not at all; standard output by default")
	return c
}

// snapshot reads what every verb reads.
func (a *app) snapshot(ctx context.Context) ([]byte, error) {
	if a.ProbeVerbs {
		return nil, errors.New("--probe-verbs asks devices, and what they say is no part of a snapshot")
	}
	if a.TopologyFile != "" {
		return nil, errors.New("--topology-file is no part of a snapshot; give it to the verb that reads the snapshot")
	}
	fs, _, err := a.Machine(snapshot.Open)
	if err != nil {
		return nil, err
	}
	tape := snapshot.Record(fs)
	for _, o := range report.Commands {
		ctx, cancel := context.WithTimeout(ctx, machineflags.ReadLimit)
		_ = report.Collect(ctx, tape.FS(fs.Root()), o)
		cancel()
	}
	for _, name := range tape.Finish() {
		a.log.Warnf("%s: no answer in time, and none in the snapshot", name)
	}
	tape.Header = []string{
		"gdr-features " + cli.Version(version),
		"taken " + a.now().UTC().Format(time.RFC3339),
	}
	tape.Scrub()
	return tape.Text()
}

// writeWhole makes a file that has all of the text as soon as it has its name.
func writeWhole(name string, text []byte) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", name)
	}
	temp := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d", filepath.Base(name), os.Getpid()))
	to, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // for others to read: it is to be sent
	if err != nil {
		return err
	}
	_, err = to.Write(text)
	if err = errors.Join(err, to.Close()); err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}
