package joblog

import "bytes"

// Lines of libraries that print without NCCL: UCX and NIXL.

// foreign takes in a line that has no message of NCCL's.
func (l *Log) foreign(line []byte) {
	if at := bytes.Index(line, []byte(" UCX  ERROR ")); at >= 0 {
		if r := rowIn(ucxRows, nil, line[at:]); r != nil {
			l.fail(process{}, r, line[at+1:])
		}
		return
	}
	if r, text := nixlRow(line); r != nil {
		l.fail(process{}, r, text)
	}
}

// ucxRows are errors of UCX ("[...] ib_md.c:309  UCX  ERROR ibv_reg_mr(...) failed").
var ucxRows = []row{
	{"", "", "ibv_reg_mr", failed, noRegistration, "NoPeerMemoryPath"},
	{"", "", "ibv_reg_dmabuf_mr", failed, noRegistration, "DMABufRefused"},
	{"", "", "mlx5dv_devx_umem_reg", failed, noRegistration, "NoPeerMemoryPath"},
}

// nixlRow returns the row of a line of NIXL's, nil for none, and its text. NIXL prints by Abseil:
// "E1124 11:01:23.123456    1234 ucx_utils.cpp:645] text", where E is an error and W a warning.
func nixlRow(line []byte) (r *row, text []byte) {
	at := bytes.Index(line, []byte(".cpp:"))
	if at < 0 {
		at = bytes.Index(line, []byte(".h:"))
	}
	length := bytes.Index(line[max(at, 0):], []byte("] "))
	if at < 0 || length < 0 {
		return nil, nil
	}
	const longest = 120 // of what stands in front of a text
	before, text := line[max(0, at-longest):at+length], line[at+length+len("] "):]
	file := before[bytes.LastIndexByte(before, ' ')+1:]
	if r = rowIn(nixlRows, file, text); r != nil && r.effect == doubtful && !isError(before) {
		return nil, nil
	}
	return r, text
}

// isError says whether what stands in front of a line of Abseil's names it an error or its last one.
func isError(before []byte) bool {
	fields := bytes.Fields(before)
	if len(fields) < 4 {
		return false
	}
	level := fields[len(fields)-4]
	return len(level) == len("E1124") && (level[0] == 'E' || level[0] == 'F')
}

const (
	nixlFailed   = "the network of NIXL reported an error"
	nixlLibf     = "NIXL could not register memory with libfabric"
	nixlAllNICs  = "NIXL did not find out which NICs are near a GPU, and uses all of them"
	nixlWithUCX  = "NIXL could not register memory with UCX"
	nixlNoCUDA   = "UCX was built without CUDA or ROCm, so that NIXL cannot register GPU memory"
	nixlOldUCX   = "UCX is older than 1.19, and its support of CUDA is limited"
	nixlNoIB     = "UCX was built without its faster ways over InfiniBand and RoCE"
	nixlNoHMem   = "NIXL found no provider of libfabric that takes GPU memory, and copies through host memory"
	nixlWithUCCL = "NIXL could not register memory with UCCL"
)

// nixlRows are errors and warnings of ai-dynamo/nixl at 8770b655: src/plugins/ucx, libfabric, uccl and
// gpunetio, and src/utils/libfabric. testdata/strings.txt has each with its file. Warnings that have
// no row of their own are harmless.
var nixlRows = []row{
	{"ucx_utils", "", "failed to ucp_mem_map", failed, nixlWithUCX, "NoPeerMemoryPath"},
	{"ucx_utils", "", "VRAM memory is detected as host by UCX", failed, nixlNoCUDA, ""},
	{"ucx_utils", "", "but UCX CUDA support was not found", wentOn, nixlNoCUDA, ""},
	{"ucx_utils", "", "but accelerated IB support was not found", wentOn, nixlNoIB, ""},
	{"ucx_utils", "UCX version is ", "less than 1.19", wentOn, nixlOldUCX, ""},
	{"ucx_utils", "Failed to disconnect ep", "", harmless, "", ""},
	{"ucx_", "", "", doubtful, nixlFailed, ""},

	{"libfabric_rail.cpp", "fi_mr_reg failed on rail", "", failed, nixlLibf, "EFAPeermemUnproven"},
	{"libfabric_rail.cpp", "fi_mr_bind failed", "", failed, nixlLibf, "EFAPeermemUnproven"},
	{"libfabric_rail.cpp", "fi_mr_enable failed", "", failed, nixlLibf, "EFAPeermemUnproven"},
	{"libfabric_", "Failed to register memory on rail", "", failed, nixlLibf, "EFAPeermemUnproven"},
	{"libfabric_", "Rail Manager registerMemory failed", "", failed, nixlLibf, "EFAPeermemUnproven"},
	{"libfabric_rail.cpp", "", "provider does not support FI_HMEM", wentOn, nixlNoHMem, "NoNCCLPlugin"},
	{"libfabric_topology", "", "returning all devices", wentOn, nixlAllNICs, ""},
	{"libfabric_topology", "", "fallback", wentOn, nixlAllNICs, ""},
	{"libfabric_", "fi_close", "", harmless, "", ""},
	{"libfabric_", "", "eregister", harmless, "", ""},
	{"libfabric_", "", "", doubtful, nixlFailed, ""},

	{"uccl_", "Failed to register memory", "", failed, nixlWithUCCL, "NoPeerMemoryPath"},
	{"uccl_", "", "", doubtful, nixlFailed, ""},

	{"gpunetio_", "Failed to close", "", harmless, "", ""},
	{"gpunetio_", "", "", doubtful, nixlFailed, ""},
	{"verbs.cpp", "Failed to destroy", "", harmless, "", ""},
	{"verbs.cpp", "ibv_dereg_mr", "", harmless, "", ""},
}
