package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// program is one program on one tree, and what its runs took.
type program struct {
	name string
	argv []string
	env  []string // all of its environment
	want string   // part of the output, which proves that it read the tree
	cpu  []float64
}

// programs are those on one tree.
type programs struct{ labels, check, bare, bareCheck, lstopo *program }

func (p programs) all() []*program {
	return []*program{p.labels, p.bare, p.lstopo, p.check, p.bareCheck}
}

// ofNICs are those that run on the trees with more NICs.
func (p programs) ofNICs() []*program { return []*program{p.labels, p.lstopo} }

func onTree(dir, product, bare, lstopo string) programs {
	const counted = "gpus=8"
	return programs{
		labels:    &program{name: "labels", argv: []string{product, "--root", dir, "labels"}, want: "gdr.gpus=8\n"},
		check:     &program{name: "check", argv: []string{product, "--root", dir, "check"}, want: "PCIe links"},
		bare:      &program{name: "bare", argv: []string{bare, dir}, want: counted},
		bareCheck: &program{name: "bare check", argv: []string{bare, dir, "check"}, want: counted},
		lstopo:    &program{name: "lstopo", argv: []string{lstopo, "--of", "console"}, env: []string{"HWLOC_FSROOT=" + dir}, want: "OpenFabrics"},
	}
}

// once runs the program and notes the CPU time it took, in ms.
func (p *program) once(ctx context.Context) error {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	cmd.Env = append([]string{}, p.env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%q: %w: %s", p.argv, err, &stderr)
	}
	if !strings.Contains(stdout.String(), p.want) {
		return fmt.Errorf("%q does not say %q: %.300q", p.argv, p.want, &stdout)
	}
	p.cpu = append(p.cpu, float64((cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()).Microseconds())/1e3)
	return nil
}

// least is the CPU time of the cheapest run.
func (p *program) least() float64 { return slices.Min(p.cpu) }

// scatter is the median of the runs, times the cheapest.
func (p *program) scatter() float64 {
	return slices.Sorted(slices.Values(p.cpu))[len(p.cpu)/2] / p.least()
}

// peakOf is the peak of the resident memory of a program, in MB. The program is started by
// another process of this one's: Linux counts the memory of the process that starts a
// program as the program's own (fs/exec.c, exec_mmap), and this one has grown by now.
func peakOf(ctx context.Context, argv []string) (mb float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	text, err := exec.CommandContext(ctx, self, append([]string{"peak"}, argv...)...).Output()
	if err == nil {
		_, err = fmt.Sscan(string(text), &mb)
	}
	return mb, err
}

func peak(ctx context.Context, out io.Writer, argv []string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{}
	if err := cmd.Run(); err != nil {
		return err
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	_, err := fmt.Fprintln(out, float64(usage.Maxrss)*1024/1e6)
	return err
}
