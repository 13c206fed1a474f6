package frameworks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/fleet/mechanism"
	"gdr-features/internal/rooms/assign"
	"gdr-features/topology"
)

// Effect says that a variable keeps a framework from using GPUDirect RDMA.
type Effect struct {
	Name, Value string
	// Whole: for all GPUs in question and in both directions; otherwise in part, or only if
	// the framework is used for GPU memory.
	Whole bool
	Why   string // what the framework does because of it
}

// effect is what a value does; "" as why for nothing.
type effect func(j *switches, value string) (why string, whole bool)

// switches looks at variables that turn GPUDirect RDMA off.
type switches struct {
	*assign.Assignment
	mechanism.Ways
	variables map[string]string
}

// table has a row for each such variable, with the code that reads it: NVIDIA/nccl v2.30.7,
// openucx/ucx 9466d104 (1.23), NVIDIA/nvshmem 3.4.5.
var table = [...]struct {
	name   string
	effect effect
}{
	// src/transport/net_ib/init.cc, ncclIbInitDevices. A plugin, as EFA has one, is used all the same.
	{"NCCL_IB_DISABLE", off(nonZero, ownTransport, "NCCL does not use its InfiniBand and RoCE transport")},
	{"NCCL_NET", off(word("socket"), always, "NCCL uses TCP")}, // src/plugin/net.cc, ncclNetInit: names in any case
	{"NCCL_NET", off(word("IB"), onlyPlugin, noPlugin)},
	{"NCCL_NET_PLUGIN", off(word("none"), onlyPlugin, noPlugin)},   // src/plugin/net.cc, initPluginLibsOnceFunc
	{"NCCL_NET_GDR_LEVEL", ncclLevel},                              // src/graph/paths.cc, ncclTopoCheckGdr
	{"NCCL_NET_GDR_C2C", ncclC2C},                                  // the same
	{"NCCL_NET_GDR_READ", ncclRead},                                // the same
	{"NCCL_DMABUF_ENABLE", off(Zero, onlyDMABuf, "NCCL"+noDMABuf)}, // src/init.cc, dmaBufSupported
	{UCXTransports, ucxTransports},                                 // src/ucp/core/ucp_context.c, ucp_is_resource_in_transports_list
	// src/uct/ib/base/ib_md.c; "try" is the default (src/ucs/config/parser.c, ucs_config_sscanf_ternary).
	{"UCX_IB_GPU_DIRECT_RDMA", off(ucxNo, always, "UCX does not register GPU memory with NICs")},
	{"NVSHMEM_REMOTE_TRANSPORT", nvshmemTransport}, // src/host/transport/transport.cpp
	// src/modules/transport/ibrc/ibrc.cpp
	{"NVSHMEM_IB_DISABLE_DMABUF", off(switchedOn, onlyDMABuf, "NVSHMEM"+noDMABuf)},
	// kvcache-ai/Mooncake mooncake-common/src/environ.cpp; mooncake-transfer-engine/src/transfer_engine_impl.cpp
	{"MC_FORCE_TCP", off(anyValue, always, "Mooncake uses TCP")},
}

const (
	noPlugin = "NCCL uses EFA by a plugin alone (aws-ofi-nccl)"
	noDMABuf = " does not use DMA-BUF, which is the only way to GPU memory here"
)

// off is the effect of values that turn GPUDirect RDMA off as a whole, on some machines.
func off(value func(string) bool, here func(*switches) bool, why string) effect {
	return func(j *switches, given string) (string, bool) {
		if value(given) && here(j) {
			return why, true
		}
		return "", false
	}
}

func nonZero(value string) bool {
	n, ok := cNumber(value)
	return ok && n != 0
}

func word(wanted string) func(string) bool {
	return func(value string) bool { return strings.EqualFold(value, wanted) }
}

func ucxNo(value string) bool {
	return strings.EqualFold(value, "n") || strings.EqualFold(value, "no") || value == "off" || value == "0"
}

func anyValue(string) bool { return true }

func always(*switches) bool { return true }

func onlyDMABuf(j *switches) bool { return j.OnlyDMABuf() }

// ownTransport reports whether NCCL's own transport may have some of the usable NICs.
func ownTransport(j *switches) bool { return !onlyPlugin(j) }

func onlyPlugin(j *switches) bool { return len(j.NICs) > 0 && !slices.ContainsFunc(j.NICs, byVerbs) }

// Switches returns which variables keep frameworks from using GPUDirect RDMA for the GPUs in
// question. Empty values count as none.
func Switches(m *assign.Assignment, ways mechanism.Ways, variables map[string]string) []Effect {
	j := &switches{m, ways, variables}
	var all []Effect
	for _, row := range table {
		value := variables[row.name]
		if value == "" {
			continue
		}
		if why, whole := row.effect(j, value); why != "" {
			all = append(all, Effect{row.name, value, whole, why})
		}
	}
	return all
}

// cNumber reads the number that a text begins with as C's strtoll(text, NULL, 0) does: 0 for
// a text that begins with none. ok is false where it is too large.
func cNumber(text string) (n int64, ok bool) {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	end := 0
	for i := range len(text) + 1 {
		if v, err := strconv.ParseInt(strings.TrimPrefix(text[:i], "+"), 0, 64); err == nil && !strings.ContainsAny(text[:i], "_oO") {
			n, end = v, i
		}
	}
	return n, end == len(text) || text[end] < '0' || text[end] > '9'
}

// ncclLevels are the names that NCCL knows, from near to far, with this package's level for
// each: LOC to C2C are nearer than any NIC (src/graph/topo.cc, topoPathTypeStr). A digit is
// the older form (src/graph/paths.cc, levelsOldToNew).
var ncclLevels = map[string]topology.Level{
	"LOC": topology.Unknown, "NVL": topology.Unknown, "NVB": topology.Unknown, "C2C": topology.Unknown,
	"PIX": topology.PIX, "PXB": topology.PXB, "P2C": topology.P2C, "PXN": topology.P2C, "PHB": topology.PHB, "SYS": topology.SYS,
	"0": topology.Unknown, "1": topology.PIX, "2": topology.PXB, "3": topology.PHB, "4": topology.SYS, "5": topology.SYS,
}

// ncclDefault is the farthest level at which NCCL uses GPUDirect RDMA by default.
const ncclDefault = topology.P2C

// ncclLimit reads a level as NCCL does. known is false for what it ignores.
func ncclLimit(value string) (limit topology.Level, known bool) {
	limit, known = ncclLevels[value]
	if !known && value != "" && value[0] >= '0' && value[0] <= '9' {
		n, _ := cNumber(value) // a number too large is the largest
		limit, known = ncclLevels[strconv.FormatInt(min(n, 5), 10)]
	}
	return limit, known
}

func ncclLevel(j *switches, value string) (string, bool) {
	limit, known := ncclLimit(value)
	if !known {
		return "NCCL ignores it: its levels are LOC, PIX, PXB, PHB and SYS", false
	}
	return j.beyond(limit)
}

// ncclC2C: 0 makes PXB the farthest level, unless a level is given.
func ncclC2C(j *switches, value string) (string, bool) {
	if _, given := ncclLimit(j.variables["NCCL_NET_GDR_LEVEL"]); !Zero(value) || given {
		return "", false
	}
	return j.beyond(topology.PXB)
}

// beyond says for which GPUs a farthest level turns GPUDirect RDMA off.
func (j *switches) beyond(limit topology.Level) (string, bool) {
	var off []string
	near := 0
	for _, c := range j.Choices {
		level := j.ncclRating(c)
		if level == topology.Unknown || level > ncclDefault {
			continue // not known, or not because of this variable
		}
		near++
		if level > limit {
			off = append(off, fmt.Sprintf("%v (%v)", c.GPU.Address, level))
		}
	}
	if len(off) == 0 {
		return "", false
	}
	return "NCCL does not use GPUDirect RDMA for GPUs whose NIC is farther than that: " + strings.Join(off, ", "), len(off) == near
}

// ncclRating is NCCL's rating of a GPU's nearest usable NIC; topology.Unknown for none, too.
func (j *switches) ncclRating(c assign.Choice) topology.Level {
	nearest := topology.Unknown
	for _, nic := range j.NICs {
		pair := j.Pair(c, nic)
		level := pair.NCCL
		if Zero(j.variables[MergeVFs]) && j.VFAside(pair) {
			level = pair.Level // that of the topology file
		}
		switch {
		case level == topology.Unknown:
			return topology.Unknown
		case nearest == topology.Unknown || level < nearest:
			nearest = level
		}
	}
	return nearest
}

func ncclRead(_ *switches, value string) (string, bool) {
	if !Zero(value) {
		return "", false
	}
	return "NCCL uses GPUDirect RDMA only to receive, and sends from host memory", false
}

// ucxAliases are the names that stand for transports of InfiniBand and RoCE, EFA's SRD
// included (ucp_tl_aliases).
var ucxAliases = map[string][]string{
	"ib":   {"rc_verbs", "ud_verbs", "rc_mlx5", "ud_mlx5", "dc_mlx5", "gga_mlx5", "srd", "rc_gda"},
	"ud_v": {"ud_verbs"}, "ud_x": {"ud_mlx5"}, "ud": {"ud_mlx5", "ud_verbs"},
	"rc_v": {"rc_verbs"}, "rc_x": {"rc_mlx5"}, "rc": {"rc_mlx5", "rc_verbs"},
	"dc": {"dc_mlx5"}, "dc_x": {"dc_mlx5"}, "gga": {"gga_mlx5"},
	"cuda": {"cuda_copy"}, "rocm": {"rocm_copy"},
}

// ucxTransports reads a list of transports. UCX knows GPU memory only with cuda_copy or
// rocm_copy: it closes memory domains without a selected transport, and no other one detects
// it (ucp_add_component_resources; src/uct/cuda/cuda_copy/cuda_copy_md.c).
func ucxTransports(j *switches, value string) (string, bool) {
	if mpiBesideNCCL(j.variables) {
		return "", false
	}
	selected := func(transport string) bool { return ucxSelects(value, transport) }
	exclude := strings.HasPrefix(value, "^")
	for _, c := range j.Choices {
		if memory := ucxMemory(c); !selected(memory + "_copy") {
			return fmt.Sprintf("UCX does not know GPU memory without %s; %s", memory, ucxAside), false
		}
	}
	switch mnnvl := j.variables[ucxMNNVL]; {
	case slices.ContainsFunc(ucxAliases["ib"], selected):
	case exclude || !selected("cuda_ipc"):
		return "UCX uses no transport of InfiniBand or RoCE (rc, dc)", true
	case switchedOn(mnnvl): // NVLink reaches the other nodes (ai-dynamo/nixl#1614)
	default:
		return "UCX uses no transport of InfiniBand or RoCE (rc, dc); right only inside one NVLink domain (" + ucxMNNVL + "=y says that it is meant)", false
	}
	return "", false
}

// UCXTransports is the variable with the transports that UCX uses: all without it.
const UCXTransports = "UCX_TLS"

// UCXSelects reports whether UCX uses a transport, if it has it, with these variables.
func UCXSelects(variables map[string]string, transport string) bool {
	value, set := variables[UCXTransports]
	return !set || ucxSelects(value, transport)
}

func ucxSelects(list, transport string) bool {
	list, exclude := strings.CutPrefix(list, "^")
	names := strings.Split(list, ",")
	if names[0] == "all" {
		return true
	}
	return exclude != slices.ContainsFunc(names, func(name string) bool {
		return strings.TrimPrefix(name, `\`) == transport || slices.Contains(ucxAliases[name], transport)
	})
}

// mpiBesideNCCL reports whether UCX is kept from RDMA beside variables of NCCL: it then serves the
// MPI that starts NCCL's job, and GPU memory is NCCL's. CoreWeave, OCI and Google (A4X Max) publish
// such settings for their machines: NCCL_IB_HCA=... UCX_TLS=tcp UCX_NET_DEVICES=eth0.
func mpiBesideNCCL(variables map[string]string) bool {
	list := variables[UCXTransports]
	if list == "" || slices.ContainsFunc(ucxAliases["ib"], func(t string) bool { return ucxSelects(list, t) }) {
		return false
	}
	for name, value := range variables {
		if strings.HasPrefix(name, "NCCL_") && value != "" {
			return true
		}
	}
	return false
}

// ucxMNNVL lets UCX's cuda_ipc reach GPUs of other nodes over NVLink, as in an NVL72; "try" is
// the default (src/uct/cuda/cuda_ipc/cuda_ipc_md.c).
const ucxMNNVL = "UCX_CUDA_IPC_ENABLE_MNNVL"

// ucxAside is said since NCCL's jobs are often started by an MPI that is told to use TCP.
const ucxAside = "right only where UCX carries no GPU memory, as in an MPI beside NCCL"

func ucxMemory(c assign.Choice) string {
	if c.GPU.GPU.CUDA {
		return "cuda"
	}
	return "rocm"
}

// Variables of NVSHMEM's IBGDA (src/modules/transport/common/env_defs.h): whether it is asked
// for, the processor that rings the doorbells, and what the name of a NIC must contain.
const (
	EnableIBGDA  = "NVSHMEM_IB_ENABLE_IBGDA"
	IBGDAHandler = "NVSHMEM_IBGDA_NIC_HANDLER"
	HCAPrefix    = "NVSHMEM_HCA_PREFIX"
)

// nvshmemTransport compares at most eight letters, in any case. IBGDA is beside the one that
// is named here.
func nvshmemTransport(j *switches, value string) (string, bool) {
	compared := value[:min(len(value), len("libfabri"))]
	if slices.ContainsFunc([]string{"ibrc", "ucx", "ibdevx", "libfabri"}, word(compared)) || AsksIBGDA(j.variables) {
		return "", false
	}
	return "NVSHMEM has no transport of this name to other nodes (ibrc, ibdevx, ucx, libfabric; " + EnableIBGDA + "=1 for IBGDA)", true
}

// AsksIBGDA reports whether variables ask for NVSHMEM's IBGDA: GPUs start transfers themselves.
func AsksIBGDA(variables map[string]string) bool { return switchedOn(variables[EnableIBGDA]) }

// Variables about NCCL's GIN, with which GPUs start transfers themselves
// (src/gin/gin_host.cc, src/transport/net_ib/gin.cc).
const (
	GINType   = "NCCL_GIN_TYPE"
	GINEnable = "NCCL_GIN_ENABLE"
	CuMem     = "NCCL_CUMEM_ENABLE"
	CrossNIC  = "NCCL_CROSS_NIC"
	MergeNICs = "NCCL_IB_MERGE_NICS"
	MergeVFs  = "NCCL_IB_MERGE_VFS"
)

// Allocators are the variables of PyTorch's allocator of GPU memory
// (pytorch/pytorch c10/core/AllocatorConfig.cpp, c10/cuda/CUDAAllocatorConfig.cpp).
var Allocators = [...]string{"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"}

// Read are the names of all variables that this package looks at.
func Read() []string {
	names := []string{
		MergeNICs, CrossNIC, ucxMNNVL, GINType, GINEnable, CuMem, EnableIBGDA, IBGDAHandler, HCAPrefix,
		cudaDevices, deviceOrder, rocrDevices, hipDevices,
	}
	for _, row := range judges {
		names = append(names, row.variable)
	}
	for _, row := range table {
		names = append(names, row.name)
	}
	for _, chooser := range GIDChoosers {
		names = append(names, chooser+addrFamily, chooser+addrRange, chooser+roceVersion)
	}
	return slices.Concat(names, gidIndexes[:], Allocators[:])
}
