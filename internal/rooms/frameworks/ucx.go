package frameworks

import (
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/rooms/assign"
)

const ucxDevices = "UCX_NET_DEVICES"

// writeUCX lists the near NICs. UCX takes names with ports, exactly (ucx
// src/uct/ib/base/ib_device.c, uct_ib_device_query_ports; src/ucp/core/ucp_context.c,
// ucp_is_resource_in_device_list). It has no map: a process takes what its list holds.
func writeUCX(m *assign.Assignment) Settings {
	var s Settings
	s.set(ucxDevices, withPorts(m.Near()))
	s.perProcess(m, ucxDevices)
	return s
}

// judgeUCX: names need ports before UCX 1.22, which reads ranges too. UCX uses network
// devices as well, for TCP. "all" stands alone, and after "^" means the same (ucx
// src/ucp/core/ucp_context.c, ucp_is_resource_in_device_list; src/ucs/config/parser.c,
// ucs_config_array_expand_range, ucs_config_sscanf_allow_list_impl).
func judgeUCX(j *judge, f *Finding) {
	if mpiBesideNCCL(j.Variables) {
		f.Problems, f.Aside = []string{UCXTransports + "=" + j.Variables[UCXTransports] + " is an MPI beside NCCL, and not judged"}, true
		return
	}
	list, exclude := strings.CutPrefix(j.Variables[ucxDevices], "^")
	if list == "all" {
		j.list(f, func(*assign.NIC) bool { return true })
		return
	}
	if !exclude && j.onlyNetworks(list) {
		f.wrong("these are network devices, so that UCX uses TCP; %s", ucxAside)
		f.MayBeMeant = true
		return
	}
	var listed []*assign.NIC
	for _, entry := range entries(list) {
		names, ranged := expanded(entry)
		if ranged {
			f.unknown("%q: UCX before 1.22 reads no ranges", entry)
		}
		for _, name := range names {
			listed = with(listed, j.ucxNIC(f, name, exclude))
		}
	}
	if exclude {
		j.list(f, func(nic *assign.NIC) bool { return !slices.Contains(listed, nic) })
	} else {
		j.listOfProcess(f, listed)
	}
}

// onlyNetworks reports whether all entries of a list are names of network devices.
func (j *judge) onlyNetworks(list string) bool {
	names := entries(list)
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(j.Networks, name) })
}

// ucxNIC returns the NIC that an entry without ranges names; nil for none.
func (j *judge) ucxNIC(f *Finding, entry string, exclude bool) *assign.NIC {
	name, text, hasPort := strings.Cut(entry, ":")
	port, err := strconv.Atoi(text)
	nic := j.Find(name)
	switch {
	case !hasPort && nic != nil:
		f.unknown("%q: UCX before 1.22 reads no name without a port; write %s:%d", entry, name, nic.Port)
		return nic
	case exclude && nic != nil && nic.Port == port:
		return nic
	case exclude, slices.Contains(j.Networks, entry):
	case entry == "all":
		f.wrong("%q: it must stand alone", entry)
	case hasPort && (err != nil || port < 1):
		f.wrong("%q: not of the form NAME:PORT", entry)
	case !hasPort && j.Networks == nil && j.at(name) < 0:
		f.unknown("%q: there is no RDMA device of this name, and which network devices there are is not known", entry)
	default:
		return j.device(f, entry, name, port)
	}
	return nil
}

// expanded are the names that an entry stands for: those of a range, "mlx5_[3-6]", or itself.
func expanded(entry string) (names []string, ranged bool) {
	before, rest, _ := strings.Cut(entry, "[")
	numbers, after, closed := strings.Cut(rest, "]")
	left, right, _ := strings.Cut(numbers, "-")
	first, err := strconv.ParseUint(left, 10, 16)
	last, err2 := strconv.ParseUint(right, 10, 16)
	const most = 64 // that UCX reads
	if !closed || err != nil || err2 != nil || last < first || last-first >= most || strings.ContainsAny(before+after, "[]") {
		return []string{entry}, false
	}
	for n := first; n <= last; n++ {
		names = append(names, before+strconv.FormatUint(n, 10)+after)
	}
	return names, true
}

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
		} else {
			given[i] = with(nil, j.ucxNIC(f, entry, false))
		}
	}
	j.pairs(f, given)
	j.numberedByAddress(f)
}
