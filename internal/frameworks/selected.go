package frameworks

import (
	"slices"
	"strconv"
	"strings"
)

// Variables with which a process leaves out GPUs that it has the nodes of.
const (
	cudaDevices = "CUDA_VISIBLE_DEVICES"
	cudaOrder   = "CUDA_DEVICE_ORDER"
	rocrDevices = "ROCR_VISIBLE_DEVICES"
	hipDevices  = "HIP_VISIBLE_DEVICES"
)

// Selectors are the names of the variables that Select reads.
var Selectors = [...]string{cudaDevices, cudaOrder, rocrDevices, hipDevices}

// Candidate is a GPU that a process has the node of.
type Candidate struct {
	CUDA bool   // NVIDIA's; the others are AMD's
	UUID string // "" where it is not known
}

// Selection is which of some GPUs a process sees.
type Selection struct {
	// GPUs are the indexes of those, in the order in which the process counts them. All where
	// it is not known which.
	GPUs []int
	// Unknown says why it is not known, "" where it is.
	Unknown string
	// By are the variables that select, "CUDA_VISIBLE_DEVICES=3"; none where all GPUs are seen
	// because none is set.
	By []string
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
	byUUID := strings.HasPrefix(value, "GPU-")
	if strings.HasPrefix(value, "MIG-") {
		s.Unknown = "of which GPUs the MIG instances in " + cudaDevices + " are"
		return nil
	}
	var chosen []int
	for entry := range strings.SplitSeq(value, ",") {
		at := number(entry)
		if byUUID {
			at = s.withUUID(gpus, strings.TrimSpace(entry))
		}
		if at < 0 || at >= len(gpus) {
			break
		}
		if slices.Contains(chosen, gpus[at]) {
			return nil
		}
		chosen = append(chosen, gpus[at])
	}
	order := s.variables[cudaOrder] == "PCI_BUS_ID"
	if order && !byUUID {
		s.By = append(s.By, cudaOrder+"=PCI_BUS_ID")
	}
	if !byUUID && !order && len(chosen) > 0 && len(chosen) < len(gpus) {
		s.Unknown = "CUDA numbers GPUs by speed, and " + cudaOrder + "=PCI_BUS_ID is not set"
	}
	return chosen
}

// number is what an entry begins with, -1 where that is no number.
func number(entry string) int {
	entry = strings.TrimSpace(entry)
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
		gpus = s.rocmList(gpus, value, func(entry string) (int64, error) { return strconv.ParseInt(entry, 0, 32) })
	}
	name := hipDevices
	if s.variables[name] == "" {
		name = cudaDevices
	}
	if s.variables[name] == "" {
		return gpus
	}
	value, _ := s.set(name)
	return s.rocmList(gpus, value, func(entry string) (int64, error) { return strconv.ParseInt(entry, 10, 32) })
}

// rocmList chooses by a list that the first invalid entry ends.
func (s *selector) rocmList(gpus []int, list string, parse func(string) (int64, error)) []int {
	var chosen []int
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.ToUpper(strings.TrimSpace(entry))
		if strings.HasPrefix(entry, "G") {
			s.Unknown = "UUIDs of AMD GPUs are not read"
			return nil
		}
		n, err := parse(entry)
		if err != nil || n < 0 || n >= int64(len(gpus)) || slices.Contains(chosen, gpus[n]) {
			break
		}
		chosen = append(chosen, gpus[n])
	}
	return chosen
}
