package joblog

import "bytes"

// Lines of libraries that print without NCCL: UCX and NIXL.

// foreign takes in a line that has no message of NCCL's.
func (l *reading) foreign(line []byte) {
	if at := bytes.Index(line, []byte(" UCX  ERROR ")); at >= 0 {
		if r := rowIn(ucxRows, nil, line[at:]); r != nil {
			l.fail(process{}, r, line[at+1:])
			return
		}
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
// "E1124 11:01:23.123456    1234 ucx_utils.cpp:645] text", where E is an error and W a warning. A
// line may hold several messages: the worst of the first eight counts.
func nixlRow(line []byte) (worst *row, text []byte) {
	for range 8 {
		end, rest := sourceEnd(line)
		if end < 0 {
			break
		}
		r := nixlMessage(line[:end], rest)
		if r != nil && (worst == nil || r.effect > worst.effect) {
			worst, text = r, rest
		}
		line = rest
	}
	return worst, text
}

// sourceEnd finds the first name of a source file with a line, "ucx_utils.cpp:645] ": where the line's
// number begins, and what follows; -1 for none.
func sourceEnd(line []byte) (end int, rest []byte) {
	for from := 0; ; {
		at := bytes.Index(line[from:], []byte("] "))
		if at < 0 {
			return -1, nil
		}
		at += from
		digits := at
		for digits > 0 && digits > at-6 && line[digits-1] >= '0' && line[digits-1] <= '9' {
			digits--
		}
		if digits < at && (bytes.HasSuffix(line[:digits], []byte(".cpp:")) || bytes.HasSuffix(line[:digits], []byte(".h:"))) {
			return digits, line[at+len("] "):]
		}
		from = at + len("] ")
	}
}

// nixlMessage returns the row of one message, by its text and what stands in front of the number of
// its source line. A row that is doubtful is for errors alone.
func nixlMessage(before, text []byte) *row {
	const longest = 120 // of what Abseil prints in front of a text
	before = before[max(0, len(before)-longest):]
	r := rowIn(nixlRows, before[max(0, bytes.LastIndexByte(before, ' ')):], text)
	if r != nil && r.effect == doubtful && !isError(before) {
		return nil
	}
	return r
}

// isError says whether Abseil's level is error or fatal. A rank or a tag may stand in front of it
// without a space: "[default0]:E1124".
func isError(before []byte) bool {
	fields := bytes.Fields(before)
	if len(fields) < 4 {
		return false
	}
	level := fields[len(fields)-4]
	level = level[max(0, len(level)-len("E1124")):]
	return len(level) == len("E1124") && (level[0] == 'E' || level[0] == 'F') &&
		!bytes.ContainsFunc(level[1:], func(r rune) bool { return r < '0' || r > '9' })
}

const (
	nixlFailed        = "the network of NIXL reported an error"
	nixlWithLibfabric = "NIXL could not register memory with libfabric"
	nixlAllNICs       = "NIXL did not find out which NICs are near a GPU, and uses all of them"
	nixlWithUCX       = "NIXL could not register memory with UCX"
	nixlNoCUDA        = "UCX was built without CUDA or ROCm, so that NIXL cannot register GPU memory"
	nixlOldUCX        = "UCX is older than 1.19, and its support of CUDA is limited"
	nixlNoIB          = "UCX was built without its faster ways over InfiniBand and RoCE"
	nixlNoHMem        = "NIXL found no provider of libfabric that takes GPU memory, and copies through host memory"
	nixlWithUCCL      = "NIXL could not register memory with UCCL"
)

// nixlRows are errors and warnings of ai-dynamo/nixl at 8770b655: src/plugins/ucx, libfabric, uccl and
// gpunetio, and src/utils/libfabric. testdata/strings.txt has each with its file, whose name begins
// behind a space. Warnings that have no row of their own are harmless.
var nixlRows = []row{
	{" ucx_utils", "", "failed to ucp_mem_map", failed, nixlWithUCX, "NoPeerMemoryPath"},
	{" ucx_utils", "", "VRAM memory is detected as host by UCX", failed, nixlNoCUDA, ""},
	{" ucx_utils", "", "but UCX CUDA support was not found", wentOn, nixlNoCUDA, ""},
	{" ucx_utils", "", "but accelerated IB support was not found", wentOn, nixlNoIB, ""},
	{" ucx_utils", "UCX version is ", "less than 1.19", wentOn, nixlOldUCX, ""},
	{" ucx_utils", "Failed to disconnect ep", "", harmless, "", ""},
	{" ucx_", "", "", doubtful, nixlFailed, ""},

	{" libfabric_rail.cpp", "fi_mr_reg failed on rail", "", failed, nixlWithLibfabric, "EFAPeermemUnproven"},
	{" libfabric_rail.cpp", "fi_mr_bind failed", "", failed, nixlWithLibfabric, "EFAPeermemUnproven"},
	{" libfabric_rail.cpp", "fi_mr_enable failed", "", failed, nixlWithLibfabric, "EFAPeermemUnproven"},
	{" libfabric_", "Failed to register memory on rail", "", failed, nixlWithLibfabric, "EFAPeermemUnproven"},
	{" libfabric_", "Rail Manager registerMemory failed", "", failed, nixlWithLibfabric, "EFAPeermemUnproven"},
	{" libfabric_rail.cpp", "", "provider does not support FI_HMEM", wentOn, nixlNoHMem, "NoNCCLPlugin"},
	{" libfabric_topology", "", "returning all devices", wentOn, nixlAllNICs, ""},
	{" libfabric_topology", "", "fallback", wentOn, nixlAllNICs, ""},
	{" libfabric_", "fi_close", "", harmless, "", ""},
	{" libfabric_", "", "eregister", harmless, "", ""},
	{" libfabric_", "", "", doubtful, nixlFailed, ""},

	{" uccl_", "Failed to register memory", "", failed, nixlWithUCCL, "NoPeerMemoryPath"},
	{" uccl_", "", "", doubtful, nixlFailed, ""},

	{" gpunetio_", "Failed to close", "", harmless, "", ""},
	{" gpunetio_", "", "", doubtful, nixlFailed, ""},
	{" verbs.cpp", "Failed to destroy", "", harmless, "", ""},
	{" verbs.cpp", "ibv_dereg_mr", "", harmless, "", ""},
}
