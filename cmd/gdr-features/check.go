package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gdr-features/internal/cli"
	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/fleet/image"
	"gdr-features/internal/fleet/mechanism"
	"gdr-features/internal/render"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/internal/rooms/pod"
	"gdr-features/internal/rooms/snapshot"
	"gdr-features/topology"
	"gdr-features/tristate"
)

func (a *app) checkCommand() *cobra.Command {
	var format, level, expected string
	var asked podOptions
	var inPod bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Tell whether GPUDirect RDMA is ready here, and why not",
		Long: `check tests every prerequisite of GPUDirect RDMA and prints a line for each: OK, WARN,
FAIL or UNKNOWN, what was found and how to fix it. Every finding that is not OK has a
code, and "explain CODE" tells more about it; for these -o wide adds the files that they
were read from.
"Ready" means that all prerequisites are in place; only a transfer proves more.

With --pod it looks from inside a container: which device nodes of GPUs and NICs it has
and may use, how much memory it may lock, the GIDs of its RoCE ports, and variables of
NCCL, UCX and NVSHMEM that turn GPUDirect RDMA off or name a wrong NIC. --level is then
about the GPUs and NICs of the container. The GPUs are those that CUDA_VISIBLE_DEVICES,
ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES leave to this process, or those of --gpus. The last lines say what is wrong, as
Kubernetes shows them of a container that failed (docs/pod.md).

It also reads, without running them, the libraries of the container, or of --image: an
unpacked image. It tells whether programs there can open these NICs, and whether the
frameworks that are there, or the one of --for, register GPU memory in a way that the
node has (docs/mechanisms.md). With --root beside --image only the image is judged.

With --expect it compares the machine with what the file expects of machines of its
type (docs/expect.md) and prints a line for each deviation.

Exit status: 0 ready; 2 not ready, or a GPU whose nearest NIC is farther than
--level, or a deviation from --expect, or with --pod a FAIL about the container;
3 unknown; 1 on an error.`,
		Example: `  gdr-features check
  gdr-features check --level PXB && start-training
  gdr-features check --pod --level PXB               # in an initContainer, before the job
  gdr-features check --pod --for mooncake            # in the job's own container
  gdr-features --root node7 check --pod --image job  # job: an unpacked image; node7: a snapshot
  gdr-features check --expect fleet.yaml
  gdr-features check -o json | jq -r '.findings[] | select(.status != "OK") | .fix'`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			limit, err := limitOf(level)
			if err != nil {
				return err
			}
			want, err := machineflags.ExpectOnce(expected)
			if err != nil {
				return err
			}
			if !inPod {
				if err := withoutPod(cmd.Flags()); err != nil {
					return err
				}
				return a.check(cmd.Context(), report.ForCheck.Expecting(want), limit, format)
			}
			return a.checkPod(cmd.Context(), report.ForCheck.Expecting(want), asked, limit, format)
		},
	}
	c.Flags().BoolVar(&inPod, "pod", false, "also judge the container that this process runs in")
	cli.Output(c, &format, "table, wide or json", "table", "wide", "json")
	levelFlag(c, &level, "for a GPU's nearest NIC")
	c.Flags().StringVar(&asked.image, "image", "", "with --pod: judge the libraries in this directory, an unpacked image; by default those of this container")
	c.Flags().StringVar(&asked.framework, "for", "", "with --pod: judge the ways to GPU memory of this framework alone: "+strings.Join(mechanism.Names(), ", "))
	cli.Words(c, "for", mechanism.Names()...)
	c.Flags().StringVar(&asked.gpus, "gpus", "", "with --pod: judge for these GPUs, as env takes them; by default those that CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES leave")
	expectFlag(c, &expected)
	return c
}

// check judges the machine.
func (a *app) check(ctx context.Context, o report.Options, limit topology.Level, format string) error {
	r, err := a.collect(ctx, o)
	if err != nil {
		return err
	}
	if format == "json" {
		err = render.CheckJSON(a.out, r, false)
	} else {
		err = render.Check(a.page, r, format == "wide")
	}
	return cmp.Or(err, cli.StatusOf(tristate.And(readyAsExpected(r), r.Within(limit))))
}

// checkPod judges the machine, and the container that this process runs in or an image.
func (a *app) checkPod(ctx context.Context, o report.Options, asked podOptions, limit topology.Level, format string) error {
	q, err := a.question(asked)
	if err != nil {
		return err
	}
	fs, o, err := a.Machine(snapshot.Open, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	r, here := readHere(ctx, fs, o)
	if asked.gpus != "" {
		if q.GPUs, err = selectGPUs(here, asked.gpus); err != nil {
			return err
		}
	}
	container, problems := pod.Read(ctx, fs, here, q)
	r.Problems = append(r.Problems, problems...)
	r.Findings = pod.Insert(r.Findings, pod.Check(&r.Node, container))
	if format == "json" {
		err = render.CheckJSON(a.out, r, true)
	} else {
		err = render.CheckPod(a.page, r, container, limit, format == "wide")
	}
	return cmp.Or(err, cli.StatusOf(tristate.And(readyAsExpected(r), container.Within(&r.Node, limit), pod.Ready(r.Findings))))
}

// readyAsExpected reports whether the machine is ready, and what is expected of it.
func readyAsExpected(r *report.Report) tristate.State {
	if r.Expected == nil {
		return r.Verdict.Ready
	}
	return tristate.And(r.Verdict.Ready, r.Expected.State)
}

type podOptions struct{ gpus, image, framework string }

func withoutPod(flags *pflag.FlagSet) error {
	for _, flag := range [...]string{"gpus", "image", "for"} {
		if flags.Changed(flag) {
			return fmt.Errorf("--%s goes with --pod", flag)
		}
	}
	return nil
}

// question returns what is to be judged of the container that this process runs in. Without
// --image its own files are the image, unless --root names another machine, of which no
// container is known. The image stays open.
func (a *app) question(o podOptions) (q pod.Question, err error) {
	if o.framework != "" {
		if err := cli.OneOf("for", o.framework, mechanism.Names()...); err != nil {
			return q, err
		}
	}
	names := slices.Concat(frameworks.Read(), image.Variables(), mechanism.Variables())
	q = pod.Question{Variables: environment(names), ReadFile: readNamed, For: o.framework}
	dir := o.image
	if dir == "" && a.Host.Root == "/" {
		dir = "/"
	}
	if dir == "" {
		return q, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return q, fmt.Errorf("--image: %w", err)
	}
	q.Image, q.Elsewhere = root.FS(), o.image != "" && a.Host.Root != "/"
	return q, nil
}
