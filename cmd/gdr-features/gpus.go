package main

import (
	"fmt"
	"strconv"
	"strings"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/source/pci"
	"gdr-features/topology"
)

// gpu is a GPU that this process can use.
type gpu struct {
	index   int // in the matrix
	address pci.Address
	uuid    string // "GPU-...", "" where it is not known
}

// gpusHere lists the GPUs by address: those with a device node where any has one, as in a
// container, and all of them otherwise, as on a machine that is read from a copy. all is
// true in the second case.
func gpusHere(fs *host.FS, m *topology.Matrix) (gpus []gpu, all bool) {
	var here []gpu
	for i := range m.GPUs {
		g, minor := readGPU(fs, i, m.GPUs[i].Address)
		gpus = append(gpus, g)
		if hasNode(fs, g.address, minor) {
			here = append(here, g)
		}
	}
	if len(here) == 0 {
		return gpus, true
	}
	return here, false
}

// readGPU reads what the driver says about a GPU, in
// /proc/driver/nvidia/gpus/<address>/information (open-gpu-kernel-modules
// kernel-open/nvidia/nv-procfs.c). minor is -1 where it is not known.
func readGPU(fs *host.FS, index int, address pci.Address) (g gpu, minor int) {
	g, minor = gpu{index: index, address: address}, -1
	const most = 4096
	text, err := fs.Bytes("proc/driver/nvidia/gpus/"+address.String()+"/information", most)
	if err != nil {
		return g, minor
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "GPU UUID":
			g.uuid = value
		case "Device Minor":
			if n, err := strconv.Atoi(value); err == nil {
				minor = n
			}
		}
	}
	return g, minor
}

// hasNode reports whether a process can open a GPU: /dev/nvidia<minor>, or else the render
// node that sysfs names below the GPU's drm directory.
func hasNode(fs *host.FS, address pci.Address, minor int) bool {
	if minor >= 0 {
		there, err := fs.Exists("dev/nvidia" + strconv.Itoa(minor))
		return err == nil && there
	}
	names, err := fs.Names(address.File("drm")[1:])
	if err != nil {
		return false
	}
	for _, name := range names {
		if strings.HasPrefix(name, "renderD") {
			there, err := fs.Exists("dev/dri/" + name)
			return err == nil && there
		}
	}
	return false
}

// selectGPUs returns the GPUs of a list of addresses, UUIDs or numbers in the order of
// addresses; all of them for an empty list. The result is in the order of the list, in
// which a process counts them when CUDA_VISIBLE_DEVICES has the same list.
func selectGPUs(r *report.Report, gpus []gpu, list string) ([]int, error) {
	var chosen []int
	if list == "" {
		for _, g := range gpus {
			chosen = append(chosen, g.index)
		}
		return chosen, nil
	}
	seen := map[int]bool{}
	for name := range strings.SplitSeq(list, ",") {
		g, err := findGPU(r, gpus, strings.TrimSpace(name))
		if err != nil {
			return nil, fmt.Errorf("--gpus: %w", err)
		}
		if seen[g.index] {
			return nil, fmt.Errorf("--gpus: %s is the same GPU as another in the list", name)
		}
		seen[g.index] = true
		chosen = append(chosen, g.index)
	}
	return chosen, nil
}

// findGPU returns the GPU of a name: its number, its UUID, or its address with or without
// domain, as sysfs or nvidia-smi (00000000:3B:00.0) spells it.
func findGPU(r *report.Report, gpus []gpu, name string) (*gpu, error) {
	address, err := pci.ParseAddress(name)
	if err != nil {
		address, err = pci.ParseAddress("0000:" + name)
	}
	var known []string
	for i := range gpus {
		g := &gpus[i]
		if name == strconv.Itoa(i) || err == nil && address == g.address || name != "" && strings.EqualFold(name, g.uuid) {
			return g, nil
		}
		known = append(known, fmt.Sprintf("%d (%s)", i, g.address))
	}
	switch {
	case !r.PCIRead:
		return nil, fmt.Errorf("no GPU %q: the PCI bus cannot be read", name)
	case len(known) == 0:
		return nil, fmt.Errorf("no GPU %q: this machine has none", name)
	}
	return nil, fmt.Errorf("no GPU %q; there are %s", sanitize.Terminal(name), strings.Join(known, ", "))
}
