package frameworks

import (
	"slices"
	"strings"

	"gdr-features/internal/assign"
)

// writeNIXL lists the near NICs for UCX, by which NIXL sends unless it is told otherwise. The
// parameter device_list of its UCX plugin comes before the variable: names without ports, with
// a comma and a blank between them, and port 1 of each (ai-dynamo/nixl 8770b65,
// src/plugins/ucx/ucx_backend.cpp, nixlUcxEngine; src/plugins/ucx/ucx_utils.cpp,
// nixlUcxContext). The LIBFABRIC plugin finds the NICs of each GPU itself
// (src/utils/libfabric/libfabric_topology.cpp).
func writeNIXL(m *assign.Assignment) Settings {
	s := writeUCX(m)
	nics := m.Near()
	if len(nics) > 0 && !slices.ContainsFunc(nics, func(n *assign.NIC) bool { return n.Port != 1 }) {
		s.note("The same as a parameter of NIXL's UCX plugin, which comes first: device_list=%q.", strings.Join(namesOf(nics), ", "))
	}
	return s
}

const modelExpressPin = "MX_RDMA_NIC_PIN"

// writeModelExpress lists one NIC for each GPU, in the order in which CUDA numbers those that
// the process sees. ModelExpress puts the entry of its GPU into UCX_NET_DEVICES as it is. It
// takes a value for a list by its comma, and leaves out empty entries (ai-dynamo/modelexpress
// 3db6bdc, modelexpress_client/python/modelexpress/ucx_utils.py, _resolve_nic_pin).
func writeModelExpress(m *assign.Assignment) Settings {
	var s Settings
	var list []*assign.NIC
	for _, c := range m.Choices {
		if c.NIC == nil {
			s.note("%s has an entry for each GPU, and the GPU %v has no usable NIC.", modelExpressPin, c.GPU.Address)
			return s
		}
		list = append(list, c.NIC)
	}
	value := withPorts(list)
	switch len(list) {
	case 0:
		return s
	case 1:
		value += ","
	}
	s.Variables = append(ordered(m), Variable{modelExpressPin, value})
	return s
}

// judgeModelExpress reads the list. Without a comma a value switches the variable off, or has
// ModelExpress choose.
func judgeModelExpress(j *judge, f *Finding) {
	text := strings.TrimSpace(j.Variables[modelExpressPin])
	if !strings.Contains(text, ",") {
		if j.at(strings.Split(text, ":")[0]) < 0 {
			j.findings = nil // a switch, and the only variable
			return
		}
		f.wrong("%q: without a comma this is no list, and ModelExpress chooses itself; write %s,", text, text)
		return
	}
	given := make([][]*assign.NIC, len(j.Choices))
	for i, entry := range trimmed(text) {
		if i >= len(given) {
			j.missing(f, "%q: there is no GPU %d", entry, i)
		} else if nic := j.ucxNIC(f, entry, false); nic != nil {
			given[i] = []*assign.NIC{nic}
		}
	}
	j.pairs(f, given)
	j.numberedByAddress(f)
}
