package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gdr-features/host"
	"gdr-features/internal/cli"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/internal/rooms/snapshot"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
	"gdr-features/source/container"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

type envOptions struct {
	framework, gpus, level, format, file string
	check                                bool
}

func (a *app) envCommand() *cobra.Command {
	var o envOptions
	c := &cobra.Command{
		Use:   "env [--for FRAMEWORK | --check [FILE]]",
		Short: "Print which NIC each GPU should use, in the variables of a framework",
		Long: `env prints which NICs each GPU should use in the variables of a framework. sglang and
mooncake read a file: -o file prints it, and the variables and comments that go with it
on standard error. Frameworks that take several NICs for a GPU get all usable ones at its
nearest level with the highest rate; vllm and modelexpress get one of them, on the card
that the fewest GPUs share. Without --for or --check it lists the frameworks. A NIC is
usable if it can do GPUDirect RDMA, and if this process can see its RDMA device and a port
is active. Comments say what the machine cannot give. Set the variables of one framework
at a time: those of several interfere. uccl, ucx, nixl and mooncake-store are told for a
whole process: run this for each, with --gpus.

In a container only the GPUs and NICs whose device node is there count. --gpus takes a
list of addresses, UUIDs or numbers, the numbers in the order of PCI addresses. A GPU
has the same NIC in every list, and in every container that has all NICs of the machine.
Frameworks that number NVIDIA GPUs need CUDA_DEVICE_ORDER=PCI_BUS_ID, which is printed too.

--check finds mistakes in such variables: in its own environment, or in FILE ("-":
standard input) in any format that env prints. It prints one line for each variable, and
for each GPU that it is about: OK, PART (NICs near a GPU are left out, and which share of
its bandwidth is lost), or WRONG: what is wrong, and what would be right. -o json has a
row for each of these lines.

Exit status: 0; 2 if a GPU has no usable NIC within --level, or there is no GPU, or none
has a device node here; 3 if that is unknown, as an unknown level is; 1 on an error.
With --check: 0 right; 2 wrong or PART; 3 unknown, or none of the variables is set; 1 on an
error.`,
		Example: `  eval "$(gdr-features env --for vllm)"
  gdr-features env --for nccl --level PXB            # exit status 2 if a GPU has no NIC that near
  gdr-features env --for ucx --gpus 3                # for the process that uses GPU 3
  gdr-features env --for nvshmem -o dotenv > nvshmem.env && docker run --env-file nvshmem.env ...
  gdr-features env --for sglang -o file > map.json   # --disaggregation-ib-device map.json
  gdr-features env --for ucx -f /etc/gdr/env         # in an initContainer; then: . /etc/gdr/env
  gdr-features env -o json | jq .gpus                # for programs: the map, for all frameworks
  gdr-features env                                   # what --for takes
  gdr-features env --check                           # are the variables of this shell right?
  gdr-features env --check map.json`,
		Args: cli.Args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.contradiction(cmd, args); err != nil {
				return err
			}
			if o.framework == "" && o.format == "shell" && !o.check {
				return a.listFrameworks()
			}
			if o.check {
				return a.checkEnv(cmd.Context(), o, args)
			}
			return a.env(cmd.Context(), o)
		},
	}
	c.Flags().StringVar(&o.framework, "for", "", "framework: "+strings.Join(frameworks.Names(), ", "))
	c.Flags().StringVar(&o.gpus, "gpus", "", "only these GPUs: a list of PCI addresses, UUIDs or numbers; all by default")
	levelFlag(c, &o.level, "between a GPU and its NIC")
	cli.Output(c, &o.format, "shell, dotenv (for docker run --env-file), json or file", "shell", "dotenv", "json", "file")
	c.Flags().StringVarP(&o.file, "file", "f", "", "file to write, whole or not at all; standard output by default")
	c.Flags().BoolVar(&o.check, "check", false, "find mistakes in the variables of the environment or of FILE")
	cli.Words(c, "for", frameworks.Names()...)
	return c
}

func (o envOptions) contradiction(cmd *cobra.Command, args []string) error {
	switch {
	case o.check && (o.framework != "" || o.level != "" || o.file != "" || cmd.Flags().Changed("output") && o.format != "json"):
		return errors.New("--check does not go with --for, --level, -f or another -o than json; it takes a file without a flag")
	case o.check:
		return nil
	case len(args) > 0:
		return fmt.Errorf("%q: a file can be given only with --check", args[0])
	case o.framework != "":
		if err := cli.OneOf("for", o.framework, frameworks.Names()...); err != nil {
			return err
		}
	case o.format != "json" && (o.format != "shell" || o.gpus+o.level+o.file != ""):
		return errors.New("--for is missing; only -o json works without it")
	}
	if o.format == "file" && !frameworks.Named(o.framework).HasFile {
		return fmt.Errorf("-o file: %s reads variables, not a file", o.framework)
	}
	return nil
}

func (a *app) listFrameworks() error {
	for _, f := range frameworks.All {
		if _, err := fmt.Fprintf(a.page, "# --for %-15s%s\n", f.Name, f.About); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) env(ctx context.Context, o envOptions) error {
	limit, err := limitOf(o.level)
	if err != nil {
		return err
	}
	here, err := a.assign(ctx, o.gpus)
	if err != nil {
		return err
	}
	some := frameworks.All[:]
	if o.framework != "" {
		some = []frameworks.Framework{*frameworks.Named(o.framework)}
	}
	var text bytes.Buffer
	if err := a.writeMap(&text, o.format, here, some); err != nil {
		return err
	}
	if err := a.write(o.file, text.Bytes()); err != nil {
		return err
	}
	state := here.within(limit)
	if state != tristate.True && o.file != "" && o.format != "file" { // the reason must be in the log of a container that fails
		if _, err := a.err.Write(frameworks.Shell(frameworks.Settings{Notes: here.allNotes()})); err != nil {
			return err
		}
	}
	return cli.StatusOf(state)
}

// writeMap writes a map in a format of --output. What a file cannot hold goes to standard error.
func (a *app) writeMap(to io.Writer, format string, here *assigned, some []frameworks.Framework) error {
	if format == "json" {
		d := frameworks.NewDocument(here.Assignment, some)
		d.Notes = slices.Concat(here.notes, d.Notes)
		return show.JSON(to, d)
	}
	s := some[0].Write(here.Assignment)
	s.Notes = append(here.allNotes(), s.Notes...)
	if some[0].Name == "nccl" {
		s.Notes = append(s.Notes, frameworks.NCCLNotes(here.Assignment, environment(frameworks.Read()))...)
	}
	var err error
	switch format {
	case "file":
		if _, err = a.err.Write(frameworks.Shell(s)); err == nil {
			err = show.JSON(to, s.File)
		}
	case "dotenv":
		_, err = to.Write(frameworks.DotEnv(s))
	default:
		_, err = to.Write(frameworks.Shell(s))
	}
	return err
}

// assigned is a machine on which each GPU in question has its NIC.
type assigned struct {
	*assign.Assignment
	seen  assign.Here
	notes []string // which GPUs count, and whether all was read
}

// here reads what env needs of the machine as this process sees it.
func (a *app) here(ctx context.Context) (*report.Report, assign.Here, error) {
	fs, o, err := a.Machine(snapshot.Open, report.ForEnv)
	if err != nil {
		return nil, assign.Here{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	r, here := readHere(ctx, fs, o)
	return r, here, nil
}

// readHere reads a machine, and which of its devices this process can use.
func readHere(ctx context.Context, fs *host.FS, o report.Options) (*report.Report, assign.Here) {
	r := report.Collect(ctx, fs, o)
	if ctx.Err() != nil { // something hangs, and has used up the time of the device nodes
		const moment = 500 * time.Millisecond
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), moment)
		defer cancel()
	}
	visible := container.ReadDevices(ctx, fs, &r.PCI, &r.RDMA)
	r.Problems = append(r.Problems, visible.Problems...)
	return &r, assign.Here{Node: &r.Node, Visible: &visible}
}

// incomplete is the note about a machine of which something could not be read.
const incomplete = "Not everything could be read: there may be a GPU or a nearer NIC that is not listed here."

// assign reads the machine and gives each of the GPUs in a list its NIC: the one that it has
// when all GPUs of the machine have theirs.
func (a *app) assign(ctx context.Context, list string) (*assigned, error) {
	r, here, err := a.here(ctx)
	if err != nil {
		return nil, err
	}
	chosen, err := selectGPUs(here, list)
	if err != nil {
		return nil, err
	}
	result := &assigned{Assignment: here.Assign().Only(chosen), seen: here}
	switch {
	case r.PCIRead && len(r.Matrix.GPUs) == 0:
		result.notes = append(result.notes, "There is no GPU here.")
	case len(r.Matrix.GPUs) > 0 && len(here.GPUs()) == 0:
		result.notes = append(result.notes, fmt.Sprintf("None of the %d GPUs of this machine has a device node in /dev here.", len(r.Matrix.GPUs)))
	}
	a.warn(r)
	if result.Incomplete {
		result.notes = append(result.notes, incomplete)
	}
	return result, nil
}

// allNotes are the notes that are for every framework.
func (a *assigned) allNotes() []string { return slices.Concat(a.notes, a.Notes()) }

// within reports whether there are GPUs here, each with a usable NIC within a level.
func (a *assigned) within(limit topology.Level) tristate.State {
	switch {
	case len(a.Choices) > 0:
		return a.Within(limit)
	case a.seen.Node.PCIRead:
		return tristate.False
	}
	return tristate.Unknown
}

func environment(names []string) map[string]string {
	values := map[string]string{}
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			values[name] = value
		}
	}
	return values
}

// selectGPUs returns those of the GPUs here that a list of addresses, UUIDs or numbers in the
// order of addresses names; all of them for an empty list. The result is in the order of the
// list, in which a process counts them when CUDA_VISIBLE_DEVICES has the same list.
func selectGPUs(here assign.Here, list string) ([]int, error) {
	gpus := here.GPUs()
	if list == "" {
		return gpus, nil
	}
	var chosen []int
	for name := range strings.SplitSeq(list, ",") {
		gpu, err := findGPU(here, gpus, strings.TrimSpace(name))
		if err != nil {
			return nil, fmt.Errorf("--gpus: %w", err)
		}
		if slices.Contains(chosen, gpu) {
			return nil, fmt.Errorf("--gpus: %s is the same GPU as another in the list", name)
		}
		chosen = append(chosen, gpu)
	}
	return chosen, nil
}

// findGPU returns the GPU of a name: its number, its UUID, or its address with or without
// domain, as sysfs or nvidia-smi (00000000:3B:00.0) spells it.
func findGPU(here assign.Here, gpus []int, name string) (int, error) {
	asked, err := pci.ParseAddress(name)
	if err != nil {
		asked, err = pci.ParseAddress("0000:" + name)
	}
	byUUID := len(name) > 4 && strings.EqualFold(name[:4], "GPU-")
	var known []string
	for i, gpu := range gpus {
		address := here.Node.Matrix.GPUs[gpu].Address
		uuid := here.Visible.GPUs[address].UUID
		if name == strconv.Itoa(i) || err == nil && asked == address || name != "" && strings.EqualFold(name, uuid) {
			return gpu, nil
		}
		other := address.String()
		if byUUID && uuid != "" {
			other = sanitize.Terminal(uuid)
		}
		known = append(known, fmt.Sprintf("%d (%s)", i, other))
	}
	switch {
	case !here.Node.PCIRead:
		return 0, fmt.Errorf("no GPU %q: the PCI bus cannot be read", name)
	case len(known) == 0 && len(here.Node.Matrix.GPUs) > 0:
		return 0, fmt.Errorf("no GPU %q: none of the machine's GPUs has a device node here", name)
	case len(known) == 0:
		return 0, fmt.Errorf("no GPU %q: this machine has none", name)
	}
	return 0, fmt.Errorf("no GPU %q; there are %s", sanitize.Terminal(name), strings.Join(known, ", "))
}
