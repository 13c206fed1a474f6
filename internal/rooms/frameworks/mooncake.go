package frameworks

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/fleet/mechanism"
	"gdr-features/internal/rooms/assign"
)

const mooncakePort = "MC_IB_PORT"

// useEngine tells Mooncake's engine, which SGLang uses too, which port of its NICs to use: one
// for all, 1 by default (Mooncake mooncake-transfer-engine/src/config.cpp, loadGlobalConfig). It
// tells it to register GPU memory by DMA-BUF where that is the only way: it uses peermem unless
// it is told otherwise (internal/fleet/mechanism has the sources).
func (s *Settings) useEngine(m *assign.Assignment) {
	nics := m.Near()
	switch port := commonPort(nics); {
	case len(nics) == 0, port == 1:
	case port == 0:
		s.note(mooncakePort + " has one port for all NICs, and here no port is active on all of them.")
	default:
		s.set(mooncakePort, strconv.Itoa(port))
	}
	if v := &m.Node.Verdict; (mechanism.Ways{Peermem: v.Peermem, DMABuf: v.DMABuf}).OnlyDMABuf() {
		s.set("WITH_NVIDIA_PEERMEM", "0")
		s.note("DMA-BUF is the only way to GPU memory here, which Mooncake 0.3.11 and newer uses with WITH_NVIDIA_PEERMEM=0.")
	}
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

// enginePort is the port that Mooncake's engine uses of every NIC; 0 where that is not known, or no
// port would do for all.
func (j *judge) enginePort() int {
	if j.Variables == nil || commonPort(j.Near()) == 0 {
		return 0
	}
	return max(readPort(j.Variables[mooncakePort]), 1)
}

// sglangFile is {"0": "mlx5_0", "1": "mlx5_1,mlx5_2"}: by the number of the GPU.
type sglangFile map[string]string

// writeSGLang makes the file for --disaggregation-ib-device, which must end in .json (sglang
// python/sglang/srt/distributed/device_communicators/mooncake_transfer_engine.py,
// get_ib_devices_for_gpu). Versions between the pull requests 17598 and 26114 take the path
// for the name of a device.
func writeSGLang(m *assign.Assignment) Settings {
	file := sglangFile{}
	s := Settings{Variables: ordered(m), File: file, Notes: []string{
		"SGLang reads the map from a file (-o file) whose name ends in .json: --disaggregation-ib-device FILE.json.",
		"SGLang of January to May 2026 (from pull request 17598 until 26114) refuses such a file.",
	}}
	for i, c := range m.Choices {
		if c.NIC != nil {
			file[strconv.Itoa(i)] = strings.Join(namesOf(c.Near), ",")
		} else {
			s.note("SGLang stops on the GPU %v: a GPU without an entry is an error to it.", c.GPU.Address)
		}
	}
	s.useEngine(m)
	return s
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

// byNumber are the NICs of each GPU by its number; nil for a GPU without an entry.
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

func (j *judge) names(f *Finding, key string, names []string) []*assign.NIC {
	var nics []*assign.NIC
	for _, name := range names {
		if name = strings.TrimSpace(name); name != "" {
			nics = with(nics, j.device(f, key+": "+name, name, j.enginePort()))
		}
	}
	return nics
}

const mooncakeVariable = "MC_CUSTOM_TOPO_JSON"

// mooncakeFile has the preferred NICs of each GPU and of each NUMA node, and after them the
// others: {"cuda:0": [["mlx5_0"], ["mlx5_1"]], "cpu:0": [["mlx5_0"], ["mlx5_1"]]}. AMD's GPUs
// are "hip:0" and so on.
type mooncakeFile map[string][][]string

// writeMooncake makes the file that MC_CUSTOM_TOPO_JSON names. Each value must be an array
// of two arrays; Mooncake takes the NICs of the second when those of the first fail (Mooncake
// mooncake-transfer-engine/src/topology.cpp, Topology::parse and selectDevice).
func writeMooncake(m *assign.Assignment) Settings {
	file := mooncakeFile{}
	names := mooncakeNames(m)
	for i, c := range m.Choices {
		if c.NIC != nil && names[i] != "" {
			file[names[i]] = split(m.NICs, func(n *assign.NIC) bool { return slices.Contains(c.Near, n) })
		}
	}
	if len(m.NICs) > 0 {
		nodes := max(m.Node.PCI.NUMANodes, 1)
		for node := range nodes {
			file["cpu:"+strconv.Itoa(node)] = split(m.NICs, func(n *assign.NIC) bool { return n.NUMA == node || nodes == 1 })
		}
	}
	s := Settings{
		Variables: ordered(m), File: file,
		Notes: []string{"Mooncake reads the map from a file (-o file): " + mooncakeVariable + "=FILE."},
	}
	s.useEngine(m)
	return s
}

// mooncakeNames are the names of the GPUs, "cuda:0", numbered for each family from 0 (GPU_PREFIX of
// mooncake-transfer-engine/include/gpu_vendor); "" for those that Mooncake has none for.
func mooncakeNames(m *assign.Assignment) []string {
	names := make([]string, len(m.Choices))
	count := map[string]int{}
	for i, c := range m.Choices {
		prefix := "cuda:"
		switch gpu := c.GPU.GPU; {
		case gpu.RCCL:
			prefix = "hip:"
		case !gpu.CUDA:
			continue
		}
		names[i] = prefix + strconv.Itoa(count[prefix])
		count[prefix]++
	}
	return names
}

// split lists the names of preferred NICs and of the others.
func split(nics []*assign.NIC, preferred func(*assign.NIC) bool) [][]string {
	lists := [][]string{{}, {}}
	for _, n := range nics {
		at := 1
		if preferred(n) {
			at = 0
		}
		lists[at] = append(lists[at], n.RDMA)
	}
	return lists
}

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

const (
	storeDevice = "MOONCAKE_DEVICE"
	storeSwitch = "MC_MS_AUTO_DISC"
	storeAuto   = "auto-discovery"
)

// writeStore lists the near NICs for Mooncake's store, names without ports
// (kvcache-ai/Mooncake 3b5a594, mooncake-wheel/mooncake/mooncake_config.py, load_from_env;
// mooncake-store/src/client_service.cpp, ParseDeviceNames and InitTransferEngine). It does not
// read the file of MC_CUSTOM_TOPO_JSON then, which is for its own choice
// (mooncake-transfer-engine/src/transfer_engine_impl.cpp). In SGLang the value may be the JSON
// of SGLang's file instead, with an entry for each rank (sgl-project/sglang 00fe477,
// python/sglang/srt/mem_cache/storage/mooncake_store/mooncake_store.py, MooncakeStore).
func writeStore(m *assign.Assignment) Settings {
	nics := m.Near()
	if len(nics) == 0 {
		return Settings{}
	}
	var s Settings
	s.set(storeDevice, strings.Join(namesOf(nics), ","))
	s.useEngine(m)
	s.note(storeSwitch + "=1 must not be set: Mooncake's store would choose itself.")
	s.perProcess(m, storeDevice)
	return s
}

// judgeStore reads the list, or what SGLang takes in its place.
func judgeStore(j *judge, f *Finding) {
	text := strings.TrimSpace(j.Variables[storeDevice])
	switch {
	case text == storeAuto:
		return
	case j.Variables[storeSwitch] == "1":
		f.wrong("Mooncake's store ignores it, because %s=1 is set", storeSwitch)
	}
	if strings.HasPrefix(text, "{") {
		var ranks sglangFile
		if err := json.Unmarshal([]byte(text), &ranks); err != nil {
			f.wrong("SGLang cannot read this JSON: %v", err)
			return
		}
		j.sets(f, j.byNumber(f, ranks))
		slices.Sort(f.Problems)
		return
	}
	j.listOfProcess(f, j.names(f, storeDevice, entries(text)))
}
