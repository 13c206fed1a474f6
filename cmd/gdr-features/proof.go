package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"gdr-features/internal/cli"
	"gdr-features/internal/finding"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/explain"
	"gdr-features/internal/rooms/proof"
	"gdr-features/internal/rooms/snapshot"
	"gdr-features/internal/show"
	"gdr-features/tristate"
)

func (a *app) proofCommands() (parent *cobra.Command, both []*cobra.Command) {
	c := &cobra.Command{
		Use:   "proof",
		Short: "Plan transfers that prove GPUDirect RDMA on this node, and read what they show",
		Long: `proof is for measuring what check can only conclude: that a NIC transfers data of a GPU.
plan writes a script that runs perftest on this node alone, and read says what its
output means. Neither starts another program, and no label follows from them.
docs/proof.md says what they prove, and what they do not.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("proof %q: the commands are plan and read", args[0])
			}
			return cmd.Help()
		},
	}
	both = []*cobra.Command{a.proofPlan(), a.proofRead()}
	c.AddCommand(both...)
	return c, both
}

func (a *app) proofPlan() *cobra.Command {
	var format, file string
	c := &cobra.Command{
		Use:   "plan",
		Short: "Print the perftest transfers that measure each GPU with its near NICs",
		Long: `plan prints a script for sh that measures each GPU here with each of the NICs that env
gives it. A transfer goes from GPU memory through one port of a NIC and back, on this node
alone, by each way to GPU memory that the node has. If it fails, the script tries GPU
memory on one side alone. The same transfer with host memory is the baseline.

The script needs sh, timeout and perftest, and for GPU memory a perftest that was built
with CUDA or ROCm. It bounds each step, ends what it has started, and writes one folder
for gdr-features proof read. It takes bandwidth and memory of the GPUs: run it on a node
without jobs. Its head says how to see who uses the GPUs.

What cannot be measured here is a comment with the reason: a GPU without a near NIC, a
port that is down, a GPU that is divided into MIG instances, a NIC without a GID to use.

Exit status: 0 there is something to measure; 2 there is nothing; 1 on an error.`,
		Example: `  gdr-features proof plan > proof.sh && sh proof.sh out; gdr-features proof read out
  gdr-features proof plan -o json | jq -r '.notMeasured[] | .what + ": " + .why'`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.planProof(cmd.Context(), format, file) },
	}
	cli.Output(c, &format, "sh or json", "sh", "json")
	c.Flags().StringVarP(&file, "file", "f", "", "file to write, whole or not at all; standard output by default")
	return c
}

func (a *app) planProof(ctx context.Context, format, file string) error {
	fs, o, err := a.Machine(snapshot.Open, report.ForEnv)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	r, here := readHere(ctx, fs, o)
	facts := proof.ReadFacts(ctx, fs, here)
	r.Problems = append(r.Problems, facts.Problems...)
	a.warn(r)
	plan := proof.New(here, facts)
	var text bytes.Buffer
	if format == "json" {
		err = show.JSON(&text, plan)
	} else {
		err = plan.Script(&text)
	}
	if err == nil {
		err = a.write(file, text.Bytes())
	}
	if err == nil && file != "" { // the reasons must be in the log of a container
		_, err = fmt.Fprint(a.err, plan.Reasons())
	}
	return cmp.Or(err, cli.StatusOf(tristate.Of(len(plan.Steps) > 0)))
}

func (a *app) proofRead() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "read PATH...",
		Short: "Say what the output of perftest shows about GPUDirect RDMA",
		Long: `read reads the folder that the script of proof plan wrote, or single outputs of perftest
4.5 or newer with names like those there: NAME.s.out and NAME.c.out for the two sides,
.err for standard error, .cmd for the command, .rc for the exit status, .json.

It prints a line for each transfer. GPU MEM is the side with GPU memory, %HOST the rate as a
share of the baseline's, %PORT and %PCIE as one of what the NIC's port and its PCI Express
link carry. The last two are not judged. PROVEN is

  true     both sides show GPU memory and the way that was asked for, they agree, and the
           rate is at least 90 % of that with host memory on the same NIC
  false    only the memory of the GPU can be the cause: the NIC could not register it, or a
           transfer failed, while host memory passed; or the rate is less than 50 %
  unknown  all else, with the reason: a busy GPU, no memory to lock, a port in use, a
           perftest without CUDA, a side that is missing, a torn file, sides that disagree

Both percentages are guesses until more machines were measured. No result of a real GPU
has been seen by the authors: the texts are from the sources of perftest. A true proves
neither the fabric, nor another node, nor that a job takes this way.

With --root and a snapshot of the node, or a copy of its files, it also prints what check
knows about the lines that are not true, and the shares that the folder does not tell.
--root / is this machine.

Exit status: 0 all GPUs were measured, and all lines about them are true; 2 one is false;
3 unknown; 1 on an error.`,
		Example: `  gdr-features proof read out
  gdr-features --root node7 proof read out      # node7: a snapshot of the node
  gdr-features proof read -o json out | jq -r '.lines[] | select(.state != "true") | .why'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := proofFiles(args)
			if err != nil {
				return err
			}
			var r proof.Result
			if cmd.Flags().Changed("root") {
				r, err = a.proofOfNode(cmd.Context(), files)
			} else {
				r = proof.Read(files, nil)
			}
			if err != nil {
				return err
			}
			if format == "json" {
				err = show.JSON(a.out, r)
			} else {
				err = r.Text(a.page)
			}
			return cmp.Or(err, cli.StatusOf(r.State))
		},
	}
	cli.Output(c, &format, "text or json", "text", "json")
	return c
}

// proofOfNode adds what the node tells: the rates of its NICs, and what check knows: the finding that
// the output names, or why the node is without GPUDirect RDMA.
func (a *app) proofOfNode(ctx context.Context, files []proof.File) (r proof.Result, err error) {
	machine, err := a.collect(ctx, report.ForCheck)
	if err != nil {
		return r, err
	}
	r = proof.Read(files, func(nic string) proof.Rates { return proof.RatesOf(&machine.Node, nic) })
	r.Because(func(l *proof.Line) string {
		for i := range machine.Findings {
			if f := &machine.Findings[i]; f.Code == finding.Code(l.Code) && l.Code != "" {
				return strings.TrimSuffix(f.Check+" "+string(f.Code)+": "+f.Detail+"; "+f.FixText(), "; ")
			}
		}
		reason, ok := explain.NotUsed(&machine.Node, machine.Findings, l.GPU, l.NIC)
		if !ok {
			return "the machine has no such GPU"
		}
		return reason
	})
	return r, nil
}

// Bounds of what proof read reads: an output has some kilobytes, and a step at most two dozen files.
const (
	maxOutputs     = 10000
	maxOutputBytes = 64 << 20
)

// proofFiles reads the files of a folder, or the files that are named.
func proofFiles(args []string) ([]proof.File, error) {
	names := args
	info, err := os.Stat(args[0])
	switch {
	case err != nil:
		return nil, err
	case info.IsDir() && len(args) > 1:
		return nil, fmt.Errorf("%s is a directory: name one directory, or files", args[0])
	case info.IsDir():
		if names, err = namesIn(args[0]); err != nil {
			return nil, err
		}
	}
	files, size := make([]proof.File, 0, len(names)), 0
	for _, name := range names {
		text, err := readNamed(name)
		file := proof.File{Name: filepath.Base(name), Text: string(text)}
		if err != nil {
			file.Problem = err.Error()
		}
		if size += len(text); size > maxOutputBytes {
			return nil, fmt.Errorf("the files have more than %d MiB: they are no output of perftest", maxOutputBytes>>20)
		}
		files = append(files, file)
	}
	return files, nil
}

// namesIn are the files in a directory but its directories.
func namesIn(dir string) (names []string, err error) {
	in, err := os.Open(dir) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	defer in.Close()
	entries, err := in.ReadDir(maxOutputs + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > maxOutputs {
		return nil, fmt.Errorf("%s has more than %d files: it is not the folder of a script of proof plan", dir, maxOutputs)
	}
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names, nil
}
