package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/source/pci"
)

// selectGPUs returns those of the GPUs here that a list of addresses, UUIDs or numbers in the
// order of addresses names; all of them for an empty list. The result is in the order of the
// list, in which a process counts them when CUDA_VISIBLE_DEVICES has the same list.
func selectGPUs(r *report.Report, list string) ([]int, error) {
	here := r.GPUsHere()
	if list == "" {
		return here, nil
	}
	var chosen []int
	for name := range strings.SplitSeq(list, ",") {
		gpu, err := findGPU(r, here, strings.TrimSpace(name))
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
func findGPU(r *report.Report, gpus []int, name string) (int, error) {
	asked, err := pci.ParseAddress(name)
	if err != nil {
		asked, err = pci.ParseAddress("0000:" + name)
	}
	byUUID := len(name) > 4 && strings.EqualFold(name[:4], "GPU-")
	var known []string
	for i, gpu := range gpus {
		address := r.Matrix.GPUs[gpu].Address
		uuid := r.Visible.GPUs[address].UUID
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
	case !r.PCIRead:
		return 0, fmt.Errorf("no GPU %q: the PCI bus cannot be read", name)
	case len(known) == 0 && len(r.Matrix.GPUs) > 0:
		return 0, fmt.Errorf("no GPU %q: none of the machine's GPUs has a device node here", name)
	case len(known) == 0:
		return 0, fmt.Errorf("no GPU %q: this machine has none", name)
	}
	return 0, fmt.Errorf("no GPU %q; there are %s", sanitize.Terminal(name), strings.Join(known, ", "))
}
