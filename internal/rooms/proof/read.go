package proof

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/internal/rooms/assign"
	"gdr-features/source/container"
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
	for _, nic := range here.Assign().Near() {
		for i := range here.Node.Matrix.NICs {
			if d := here.Node.Matrix.NICs[i].RDMA; d != nil && d.Name == nic.RDMA {
				devices = append(devices, d)
			}
		}
	}
	f.GIDs, problems = container.ReadGIDTables(fs, devices)
	f.Divided = map[pci.Address]bool{}
	for address, said := range here.Node.Platform.GPUs.Said {
		if said.Minor >= 0 && divided(fs, said.Minor) {
			f.Divided[address] = true
		}
	}
	return f, problems
}

// divided reports whether NVIDIA's driver lists MIG instances of the GPU with a device node. What
// cannot be read lists none: perftest then says what is wrong.
func divided(fs *host.FS, minor int) bool {
	names, err := fs.Names("proc/driver/nvidia/capabilities/gpu" + strconv.Itoa(minor) + "/mig")
	if err != nil {
		return false
	}
	for _, name := range names {
		if strings.HasPrefix(name, "gi") {
			return true
		}
	}
	return false
}
