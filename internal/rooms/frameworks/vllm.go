package frameworks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/rooms/assign"
	"gdr-features/source/pci"
	"gdr-features/topology"
)

const (
	vllmMapping   = "VLLM_GPU_NIC_PCIE_MAPPING"
	vllmVariables = "VLLM_NIC_SELECTION_VARS"
)

// writeVLLM pairs addresses. vLLM looks for the RDMA device whose PCI function has the
// NIC's address, and puts its name and what follows the first colon into the variables
// named; both variables must be set (vllm/v1/executor/vllm_net_devices.py). NCCL needs none:
// it finds the nearest NIC of each GPU itself.
func writeVLLM(m *assign.Assignment) Settings {
	var s Settings
	var pairs []string
	for _, c := range m.Choices {
		switch {
		case c.NIC == nil:
			s.note("vLLM will not start on the GPU %v, because it has no entry.", c.GPU.Address)
		case vllmFinds(m.Machine, c.NIC.Address) != c.NIC:
			s.note("vLLM knows NICs by the address of their function and cannot be told to use %s at %v.", c.NIC.RDMA, c.NIC.Address)
			return s
		default:
			pairs = append(pairs, fmt.Sprintf("%v=%v", c.GPU.Address, c.NIC.Address))
		}
	}
	if len(pairs) == 0 {
		return s
	}
	port := commonPort(m.Used())
	if port == 0 {
		s.note(vllmVariables + " takes one port number for all NICs, and none is active on all of them.")
		return s
	}
	s.set(vllmMapping, strings.Join(pairs, ","))
	s.set(vllmVariables, fmt.Sprintf("%s:%d,%s:%d", ucxDevices, port, nvshmemList, port))
	return s
}

// vllmFinds is the usable NIC that vLLM takes for an address: the first by name among those
// that are PCI devices themselves. Devices that cannot be used are not looked at.
func vllmFinds(m *assign.Machine, address pci.Address) *assign.NIC {
	at := func(n *assign.NIC) bool { return n.Address == address && !n.Auxiliary }
	if i := slices.IndexFunc(m.NICs, at); i >= 0 {
		return m.NICs[i]
	}
	return nil
}

func judgeVLLM(j *judge, f *Finding) {
	j.pairs(f, j.vllmGiven(f))
	if j.Variables[vllmVariables] == "" {
		f.wrong("vLLM stops: %s must be set too", vllmVariables)
	}
}

// judgeSelection looks at the variables that vLLM sets.
func judgeSelection(j *judge, f *Finding) {
	if j.Variables[vllmMapping] == "" {
		f.wrong("vLLM stops: %s must be set too", vllmMapping)
		return
	}
	given := slices.Concat(j.vllmGiven(&Finding{})...)
	for _, entry := range trimmed(j.Variables[vllmVariables]) {
		name, port := splitPort(entry)
		switch {
		case name == ucxDevices && port == 0:
			f.unknown("%q: UCX before 1.22 reads no name without a port; write %s:1", entry, name)
		case port < 0:
			f.wrong("%q: no port has this number", entry)
		}
		for _, nic := range given {
			if port > 0 && !slices.Contains(nic.Active, port) {
				f.wrong("%q: port %d of %s is not active", entry, port, nic.RDMA)
			}
		}
		if name != "" && j.Variables[name] != "" {
			f.wrong("%q: %s is set already (%q), and vLLM appends that to its own value", entry, name, j.Variables[name])
		}
	}
}

func setByVLLM(variables, name string) bool {
	return slices.ContainsFunc(trimmed(variables), func(entry string) bool {
		set, _ := splitPort(entry)
		return set == name
	})
}

func (j *judge) vllmGiven(f *Finding) [][]*assign.NIC {
	given := make([][]*assign.NIC, len(j.Choices))
	for _, entry := range trimmed(j.Variables[vllmMapping]) {
		left, right, ok := strings.Cut(entry, "=")
		gpu, gpuOK := vllmAddress(left)
		nic, nicOK := vllmAddress(right)
		if !ok || !gpuOK || !nicOK {
			f.wrong("%q: not of the form GPU=NIC with two PCI addresses", entry)
			continue
		}
		at := slices.IndexFunc(j.Choices, func(c assign.Choice) bool { return c.GPU.Address == gpu })
		if at < 0 {
			if !slices.ContainsFunc(j.GPUs, func(g topology.GPU) bool { return g.Address == gpu }) {
				j.missing(f, "%q: there is no GPU at %v", entry, gpu)
			}
			continue
		}
		if len(given[at]) > 0 {
			f.wrong("%q: the GPU has two entries, and vLLM uses only the last", entry)
		}
		given[at] = with(nil, j.vllmNIC(f, entry, nic))
	}
	return given
}

func (j *judge) vllmNIC(f *Finding, entry string, address pci.Address) *assign.NIC {
	if nic := vllmFinds(j.Machine, address); nic != nil {
		return nic
	}
	for _, n := range j.Matrix.NICs {
		if n.RDMA != nil && n.Address() == address.String() {
			j.unusable(f, entry, n.Name())
			return nil
		}
	}
	j.missing(f, "%q: there is no RDMA device at %v", entry, address)
	return nil
}

// vllmAddress reads a PCI address as vLLM does: domain:bus:device.function or
// bus:device.function, in hexadecimal digits of any number, after "0x" or not.
func vllmAddress(s string) (pci.Address, bool) {
	s = strings.TrimPrefix(strings.ReplaceAll(strings.ToLower(strings.TrimSpace(s)), " ", ""), "0x")
	body, function, ok := strings.Cut(s, ".")
	parts := append(strings.Split(body, ":"), function)
	if len(parts) == 3 {
		parts = append([]string{"0"}, parts...)
	}
	if !ok || len(parts) != 4 {
		return pci.Address{}, false
	}
	var numbers [4]uint64
	for i, bits := range [...]int{32, 8, 5, 8} {
		n, err := strconv.ParseUint(parts[i], 16, bits)
		if err != nil {
			return pci.Address{}, false
		}
		numbers[i] = n
	}
	//nolint:gosec // of so many bits
	return pci.Address{Domain: uint32(numbers[0]), Bus: uint8(numbers[1]), Device: uint8(numbers[2]), Function: uint8(numbers[3])}, true
}
