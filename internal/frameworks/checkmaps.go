package frameworks

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/assign"
	"gdr-features/source/pci"
	"gdr-features/topology"
)

// judgeVLLM looks at the pairs of addresses.
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

// setByVLLM reports whether vLLM sets a variable.
func setByVLLM(variables, name string) bool {
	return slices.ContainsFunc(trimmed(variables), func(entry string) bool {
		set, _ := splitPort(entry)
		return set == name
	})
}

// vllmGiven reads pairs of addresses.
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
		given[at] = nil
		if n := j.vllmNIC(f, entry, nic); n != nil {
			given[at] = []*assign.NIC{n}
		}
	}
	return given
}

// vllmNIC is the NIC that vLLM takes for an address.
func (j *judge) vllmNIC(f *Finding, entry string, address pci.Address) *assign.NIC {
	if nic := vllmFinds(j.Machine, address); nic != nil {
		return nic
	}
	for i := range j.Matrix.NICs {
		if n := &j.Matrix.NICs[i]; n.RDMA != nil && n.Address() == address.String() {
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

// judgeSGLang reads numbers of GPUs with names of NICs. SGLang stops at any other key, at an
// empty map, and on a GPU that has no key.
func judgeSGLang(j *judge, f *Finding, data []byte) error {
	var file sglangFile
	if err := json.Unmarshal(data, &file); err != nil {
		return err
	}
	if len(file) == 0 {
		f.wrong("SGLang stops at an empty map")
		return nil
	}
	given := j.byNumber(f, file)
	for i, c := range j.Choices {
		if given[i] == nil && c.NIC == nil {
			f.wrong("the GPU %v has no entry, and SGLang stops on it", c.GPU.Address)
		}
	}
	j.sets(f, given)
	return nil
}

// byNumber returns the NICs of each GPU by its number; nil for a GPU without an entry.
func (j *judge) byNumber(f *Finding, file sglangFile) [][]*assign.NIC {
	given := make([][]*assign.NIC, len(j.Choices))
	for _, key := range slices.Sorted(maps.Keys(file)) {
		i, err := strconv.Atoi(key)
		switch {
		case err != nil || strings.Trim(key, "0123456789") != "":
			f.wrong("%q: not the number of a GPU, at which SGLang stops", key)
		case i >= len(given):
			j.missing(f, "%q: there is no GPU %d", key, i)
		case given[i] != nil:
			f.wrong("%q: another entry for the GPU %d", key, i)
		default:
			given[i] = append([]*assign.NIC{}, j.names(f, key, strings.Split(file[key], ","))...)
		}
	}
	return given
}

// judgePort looks at the port that Mooncake's engine uses of every NIC.
func judgePort(j *judge, f *Finding) {
	if right := commonPort(j.Near()); right > 0 {
		f.Want = strconv.Itoa(right)
	}
	port := readPort(j.Variables[mooncakePort])
	if port == 0 {
		f.wrong("not a number from 1 to 255; Mooncake ignores it and uses port 1")
		return
	}
	for _, nic := range j.Near() {
		if !slices.Contains(nic.Active, port) {
			f.wrong("port %d of %s is not active", port, nic.RDMA)
		}
	}
}

// readPort reads a port's number as Mooncake does (mooncake-transfer-engine/src/config.cpp,
// loadGlobalConfig); 0 for what it ignores.
func readPort(text string) int {
	if port, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && port > 0 && port < 256 {
		return port
	}
	return 0
}

// enginePort is the port that Mooncake's engine uses of every NIC; 0 where the variables are
// not known, or no port would do for all.
func (j *judge) enginePort() int {
	if j.Variables == nil || commonPort(j.Near()) == 0 {
		return 0
	}
	return max(readPort(j.Variables[mooncakePort]), 1)
}

// judgeFileName looks at the variable that names the file.
func judgeFileName(j *judge, f *Finding) {
	switch {
	case j.unread != nil && j.Foreign:
		f.unknown("the file could not be read here: %v", j.unread)
	case j.unread != nil:
		f.wrong("Mooncake cannot read the file: %v", j.unread)
	}
	j.numberedByAddress(f)
}

// judgeMooncake looks at the names of GPUs with lists of NICs.
func judgeMooncake(j *judge, f *Finding, data []byte) error {
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		return err
	}
	given, names := make([][]*assign.NIC, len(j.Choices)), mooncakeNames(j.Assignment)
	for key, raw := range file {
		var lists [][]string
		if err := json.Unmarshal(raw, &lists); err != nil || len(lists) != 2 {
			f.wrong("%q: not two lists of names; Mooncake ignores the whole file", key)
			continue
		}
		preferred := j.names(f, key, lists[0])
		j.names(f, key, lists[1])
		if i := slices.Index(names, key); i >= 0 {
			given[i] = preferred
		} else if !strings.HasPrefix(key, "cpu:") {
			j.missing(f, "%q: there is no such GPU", key)
		}
	}
	j.sets(f, given)
	return nil
}

// names returns the NICs with some names.
func (j *judge) names(f *Finding, key string, names []string) []*assign.NIC {
	var nics []*assign.NIC
	for _, name := range names {
		if name = strings.TrimSpace(name); name != "" {
			nics = with(nics, j.device(f, key+": "+name, name, j.enginePort()))
		}
	}
	return nics
}
