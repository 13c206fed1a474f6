package kmod

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"gdr-features/host"
	"gdr-features/source/family"
	"gdr-features/tristate"
)

const paramsFile = "proc/driver/nvidia/params"

// Params are the parameters of the loaded NVIDIA driver by name, without "NVreg_": numbers
// as decimal text, texts without their quotes. nil where they cannot be read. From
// /proc/driver/nvidia/params (NVIDIA/open-gpu-kernel-modules,
// kernel-open/nvidia/nv-procfs.c, nv_procfs_read_params).
type Params map[string]string

// ParseParams reads the text of /proc/driver/nvidia/params, a parameter on each line:
//
//	EnableStreamMemOPs: 1
//	RegistryDwords: "PeerMappingOverride=1;"
//
// Lines of another form are left out.
func ParseParams(text string) Params {
	p := Params{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			continue
		}
		value = strings.TrimSpace(value)
		if inner, ok := strings.CutPrefix(value, `"`); ok {
			value = strings.TrimSuffix(inner, `"`)
		}
		p[name] = value
	}
	return p
}

// TopoOverride is the parameter that makes the driver map GPU memory for a PCI device
// wherever it is ("1"), or nowhere ("2"); "0" judges the places.
const TopoOverride = "GrdmaPciTopoCheckOverride"

// afterNumbers is what every release lists after all numbers.
const afterNumbers = "RegistryDwords"

// params reads the parameters of NVIDIA's driver where it is loaded.
func (s *scanner) params() {
	if !slices.ContainsFunc(s.here.GPUs, func(g *family.GPU) bool {
		return g.OpenFrom != 0 && s.st.Drivers[g.Name].Loaded == tristate.True
	}) {
		return
	}
	text, err := s.about(FactParams).fs.Bytes(paramsFile, maxParams)
	if err != nil {
		s.problem(err)
		s.st.ParamsUnread = host.Unread(err)
		return
	}
	params := ParseParams(string(text))
	_, whole := params[afterNumbers]
	if _, listed := params[TopoOverride]; !listed && !whole { // cut off, or not the driver's
		s.unread(host.PathError("read", paramsFile, errors.New("neither "+TopoOverride+" nor "+afterNumbers+" in it")))
		s.st.ParamsUnread = true
		return
	}
	s.st.Params = params
}

// maxParams is several times the size of that file with RegistryDwords of the greatest
// length.
const maxParams = 64 << 10

// registry returns a number of RegistryDwords as the driver reads it: pairs of name and
// number between semicolons, whose blanks do not count, and the last of several
// (src/nvidia/arch/nvalloc/unix/src/osapi.c, rm_parse_option_string). ok is false if the
// name is not there, or what follows it is not a number.
func (p Params) registry(name string) (n uint64, ok bool) {
	for pair := range strings.SplitSeq(strings.Join(strings.Fields(p[afterNumbers]), ""), ";") {
		if key, value, _ := strings.Cut(pair, "="); key == name && value != "" && !strings.Contains(value, "=") {
			var err error
			n, err = strconv.ParseUint(value, 0, 32)
			ok = err == nil
		}
	}
	return n, ok
}

// PeerMapping reports whether a process without CAP_SYS_ADMIN may map the doorbells of a
// NIC for a GPU: whether PeerMappingOverride is set (src/nvidia/arch/nvalloc/unix/src/
// osmemdesc.c, osCreateOsDescriptorFromIoMemory; src/nvidia/src/kernel/gpu/bif/
// kernel_bif.c). Unknown if the parameters cannot be read, or set it for single GPUs.
func (p Params) PeerMapping() tristate.State {
	const name = "PeerMappingOverride"
	n, ok := p.registry(name)
	if p == nil || !ok && strings.Contains(p["RegistryDwords"]+p["RegistryDwordsPerDevice"], name) {
		return tristate.Unknown
	}
	return tristate.Of(n != 0)
}
