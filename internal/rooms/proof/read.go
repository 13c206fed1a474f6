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
	"gdr-features/source/container"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
)

// ReadFacts reads what a plan needs beside the machine, until the context ends.
func ReadFacts(ctx context.Context, fs *host.FS, here assign.Here) Facts {
	f, err := deadline.Async(func() (Facts, error) { return readFacts(fs, here), nil })(ctx)
	if err != nil {
		f.Problems = append(f.Problems, fmt.Errorf("GIDs and MIG instances: %w", err))
	}
	return f
}

func readFacts(fs *host.FS, here assign.Here) (f Facts) {
	var devices []*rdma.Device
	machine := here.Assign()
	for _, nic := range machine.Near() {
		devices = append(devices, machine.Of(nic).RDMA)
	}
	f.GIDs, f.Problems = container.ReadGIDTables(fs, devices)
	f.Divided = map[pci.Address]bool{}
	var unread error
	for i := range here.Node.Matrix.GPUs {
		gpu := here.Node.Matrix.GPUs[i].Address
		if said, there := here.Node.Platform.GPUs.Said[gpu]; there && said.Minor >= 0 {
			var err error
			f.Divided[gpu], err = divided(fs, said.Minor)
			unread = cmp.Or(unread, err)
		}
	}
	if unread != nil {
		f.Problems = append(f.Problems, fmt.Errorf("whether GPUs are divided into MIG instances is unknown: %w", unread))
	}
	return f
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
