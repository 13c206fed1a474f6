package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/proof"
	"gdr-features/internal/rooms/snapshot"
)

func (a *app) snapshotCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "snapshot",
		Short: "Write what was read of this machine to one text file, to send to others",
		Long: `snapshot reads what all commands read, once, and writes it to one text file: the
content of each file, each link, each directory, and what was missing, not permitted,
or gave no answer. Every command but run and nodes accepts the file as --root
and prints what it prints on this machine.

Serial numbers, GUIDs, UUIDs, MACs and the addresses in GID tables are replaced by
numbers, consistently; a GID stays link-local, one of IPv4 or of IPv6. Kernel
addresses, users and host names are overwritten. A device that is named after its MAC
or GUID gets another name. PCI addresses, products, versions, NUMA nodes and MTUs are
kept: look through the file before you send it.

It holds what every command needs for any --nic-families.

Run it as root: what only root may read (ACS, VPD) is missing otherwise. Results of
--probe-verbs and the contents of --topology-file are not included.`,
		Example: `  gdr-features snapshot -f node7.snapshot
  gdr-features --root node7.snapshot check           # on any other machine
  ssh node7 sudo gdr-features snapshot > node7.snapshot
  diff <(ssh node7 gdr-features snapshot) <(ssh node8 gdr-features snapshot)`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := a.snapshot(cmd.Context())
			if err != nil {
				return err
			}
			return a.write(file, text)
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "", "file to write, whole or not at all; standard output by default")
	return c
}

func (a *app) snapshot(ctx context.Context) ([]byte, error) {
	if a.ProbeVerbs {
		return nil, errors.New("--probe-verbs does not go with snapshot: answers of devices are not included in it")
	}
	if a.TopologyFile != "" {
		return nil, errors.New("--topology-file does not go with snapshot; use it with the command that reads the snapshot")
	}
	fs, _, err := a.Machine(snapshot.Open, report.Options{})
	if err != nil {
		return nil, err
	}
	recorder := snapshot.Record(fs)
	for _, o := range report.ForSnapshot() {
		ctx, cancel := context.WithTimeout(ctx, a.limit)
		recorded := recorder.FS(fs.Root())
		if o.What.Everything {
			_, here := readHere(ctx, recorded, o)
			proof.ReadFacts(ctx, recorded, here) // what they lack is recorded, too
		} else {
			_ = report.Collect(ctx, recorded, o)
		}
		cancel()
	}
	recording, late := recorder.Finish()
	for _, name := range late {
		a.log.Warnf("%s: no answer in time; the snapshot says so", name)
	}
	recording.Notes = []string{
		"gdr-features " + cli.Version(version),
		"taken " + a.now().UTC().Format(time.RFC3339),
	}
	recording.Scrub()
	return recording.Text()
}
