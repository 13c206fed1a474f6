package proof

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/internal/rooms/assign"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
)

// ReadFacts reads what a plan needs beside the machine, until the context ends. The problems are what
// could not be read.
func ReadFacts(ctx context.Context, fs *host.FS, here assign.Here) (Facts, []error) {
	type answer struct {
		facts    Facts
		problems []error
	}
	a, err := deadline.Async(func() (answer, error) {
		facts, problems := readFacts(fs, here)
		return answer{facts, problems}, nil
	})(ctx)
	if err != nil {
		a.problems = append(a.problems, fmt.Errorf("GIDs and MIG instances: %w", err))
	}
	return a.facts, a.problems
}

func readFacts(fs *host.FS, here assign.Here) (f Facts, problems []error) {
	var devices []*rdma.Device
	machine := here.Assign()
	for _, nic := range machine.Near() {
		devices = append(devices, machine.Of(nic).RDMA)
	}
	f.GIDs, problems = rdma.ReadGIDTables(fs, devices)
	f.Divided = map[pci.Address]bool{}
	var unread error
	for i := range here.Node.Matrix.GPUs {
		gpu := here.Node.Matrix.GPUs[i].Address
		said, there := here.Node.Platform.GPUs.Said[gpu]
		if !there || said.Minor < 0 {
			continue
		}
		var err error
		f.Divided[gpu], err = divided(fs, said.Minor)
		unread = cmp.Or(unread, err)
	}
	if unread != nil {
		problems = append(problems, fmt.Errorf("whether GPUs are divided into MIG instances is unknown: %w", unread))
	}
	return f, problems
}

// divided reports whether NVIDIA's driver lists MIG instances of the GPU with a device node
// (NVIDIA/open-gpu-kernel-modules kernel-open/nvidia/nv-caps.c). It has no list for a GPU that cannot
// be divided. Where a container hides the list, perftest says what is wrong.
func divided(fs *host.FS, minor int) (bool, error) {
	names, err := fs.Names("proc/driver/nvidia/capabilities/gpu" + strconv.Itoa(minor) + "/mig")
	if host.Absent(err) {
		return false, nil
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "gi") }), err
}
