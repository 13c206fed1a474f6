package frameworks

import (
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/rooms/assign"
)

// Variables with which a process leaves out GPUs that it has the nodes of.
const (
	cudaDevices = "CUDA_VISIBLE_DEVICES"
	rocrDevices = "ROCR_VISIBLE_DEVICES"
	hipDevices  = "HIP_VISIBLE_DEVICES"
)

// Candidate is a GPU that a process has the node of.
type Candidate struct {
	CUDA bool   // NVIDIA's; the others are AMD's
	UUID string // "" where it is not known
}

// Selection is which of some GPUs a process sees.
type Selection struct {
	// GPUs are the indexes of those, in the order in which the process counts them: all where
	// it is not known which. Unknown then says why.
	GPUs    []int
	Unknown string
	// By are the variables that select, "CUDA_VISIBLE_DEVICES=3".
	By []string
}

// SelectHere are the GPUs that this process can use and that variables leave to it.
func SelectHere(h assign.Here, variables map[string]string) Selection {
	here := h.GPUs()
	candidates := make([]Candidate, len(here))
	for i, gpu := range here {
		g := &h.Node.Matrix.GPUs[gpu]
		candidates[i] = Candidate{CUDA: g.GPU.CUDA, UUID: h.Visible.GPUs[g.Address].UUID}
	}
	s := Select(candidates, variables)
	for i := range s.GPUs {
		s.GPUs[i] = here[s.GPUs[i]]
	}
	return s
}

// Select reads the variables of CUDA and ROCm. all are the GPUs in the order of addresses; a
// variable that is set to "" is not the same as one that is not in variables.
func Select(all []Candidate, variables map[string]string) Selection {
	s := selector{all: all, variables: variables}
	var cuda, amd []int
	for i, c := range all {
		if c.CUDA {
			cuda = append(cuda, i)
		} else {
			amd = append(amd, i)
		}
	}
	s.GPUs = append(s.ofCUDA(cuda), s.ofROCm(amd)...)
	if s.Unknown != "" {
		s.GPUs = slices.Concat(cuda, amd)
		slices.Sort(s.GPUs)
	}
	return s.Selection
}

type selector struct {
	Selection
	all       []Candidate
	variables map[string]string
}

// set is a variable's value, and notes that it selects.
func (s *selector) set(name string) (value string, ok bool) {
	if value, ok = s.variables[name]; ok {
		s.By = append(s.By, name+"="+value)
	}
	return value, ok
}

// ofCUDA: a list of numbers, or of UUIDs or their beginnings. The first that is of the other
// form or names no GPU ends it, and one that is named twice makes it empty (CUDA C++
// Programming Guide, CUDA environment variables; pytorch torch/cuda/__init__.py,
// _parse_visible_devices). CUDA numbers GPUs by speed unless CUDA_DEVICE_ORDER is PCI_BUS_ID.
func (s *selector) ofCUDA(gpus []int) []int {
	if len(gpus) == 0 {
		return nil
	}
	value, ok := s.set(cudaDevices)
	if !ok {
		return gpus
	}
	if strings.HasPrefix(value, "MIG-") {
		s.Unknown = "of which GPUs the MIG instances in " + cudaDevices + " are"
		return nil
	}
	byUUID, at := strings.HasPrefix(value, "GPU-"), number
	if byUUID {
		at = func(entry string) int { return s.withUUID(gpus, entry) }
	}
	chosen, twice := listed(gpus, value, at)
	switch {
	case twice:
		return nil
	case byUUID:
	case s.variables[deviceOrder] == byAddress:
		s.By = append(s.By, deviceOrder+"="+byAddress)
	case len(chosen) > 0 && len(chosen) < len(gpus):
		s.Unknown = "CUDA numbers GPUs by speed, and " + deviceOrder + "=" + byAddress + " is not set"
	}
	return chosen
}

// listed are the GPUs whose places a list has, up to the first entry that is of none, or of one
// that was there before: twice.
func listed(gpus []int, list string, at func(entry string) int) (chosen []int, twice bool) {
	for entry := range strings.SplitSeq(list, ",") {
		i := at(strings.TrimSpace(entry))
		switch {
		case i < 0 || i >= len(gpus):
			return chosen, false
		case slices.Contains(chosen, gpus[i]):
			return chosen, true
		}
		chosen = append(chosen, gpus[i])
	}
	return chosen, false
}

// number is what an entry begins with, -1 where that is no number.
func number(entry string) int {
	digits := len(entry) - len(strings.TrimLeft(entry, "0123456789"))
	n, err := strconv.ParseUint(entry[:digits], 10, 31)
	if err != nil {
		return -1
	}
	return int(n)
}

// withUUID is the place of the only GPU whose UUID begins with a text, -1 for none.
func (s *selector) withUUID(gpus []int, text string) int {
	at := -1
	for i, gpu := range gpus {
		switch uuid := s.all[gpu].UUID; {
		case uuid == "":
			s.Unknown = "the UUID of a GPU could not be read"
		case !strings.HasPrefix(text, "GPU-") || !strings.HasPrefix(uuid, text):
		case at >= 0:
			return -1
		default:
			at = i
		}
	}
	return at
}

// ofROCm: ROCr's list comes first, and HIP's counts among those that it leaves. Numbers are
// taken in the order of addresses; ROCr's is that of the kernel's topology, in which amdgpu
// lists GPUs as it finds them (ROCR-Runtime
// runtime/hsa-runtime/core/runtime/amd_filter_device.cpp, BuildUsrDeviceList; clr
// rocclr/device/rocm/rocdevice.cpp, Device::init, which takes CUDA_VISIBLE_DEVICES where
// HIP_VISIBLE_DEVICES is empty).
func (s *selector) ofROCm(gpus []int) []int {
	if len(gpus) == 0 {
		return nil
	}
	if value, ok := s.set(rocrDevices); ok {
		gpus = s.rocmList(gpus, value, 0)
	}
	name := hipDevices
	if s.variables[name] == "" {
		name = cudaDevices
	}
	if s.variables[name] == "" {
		return gpus
	}
	value, _ := s.set(name)
	return s.rocmList(gpus, value, 10)
}

// rocmList chooses by numbers of a base, 0 for C's forms.
func (s *selector) rocmList(gpus []int, list string, base int) []int {
	chosen, _ := listed(gpus, list, func(entry string) int {
		if strings.HasPrefix(strings.ToUpper(entry), "G") {
			s.Unknown = "UUIDs of AMD GPUs are not read"
		}
		n, err := strconv.ParseInt(entry, base, 32)
		if err != nil {
			return -1
		}
		return int(n)
	})
	return chosen
}
