package proof

import (
	"slices"
	"strings"
)

// effect is what a failure says about the pair of GPU and NIC.
type effect int

const (
	// undecided: it is not about the memory of the GPU, or may not be.
	undecided effect = iota
	// unregistered: the NIC does not take this memory.
	unregistered
	// broken: a transfer with this memory failed.
	broken
	// followed: the other side was gone. How that one ended says more, if not by itself.
	followed
)

// row is a line by which perftest says that something failed: what it has in it, the number that ends
// it, and what another line has in it, the last two if given. The first row that fits counts.
type row struct {
	has, number, with string
	way               Way // where the row is about one way
	effect            effect
	means             string
	// code is the page that says what to do (gdr-features explain).
	code string
}

// The rows are from the sources of linux-rdma/perftest, V4.1 to 00b55b6; the file and the commit that
// added the text, or the release that has it, stand above. Error numbers are those of Linux.
var rows = []row{
	// src/perftest_resources.c, register_memory_region (b0823b7 for DMA-BUF, 98bfb36 for both ways).
	{"allocate MR with error=", "14", "", Peermem, unregistered, "the NIC cannot register this memory (error 14): no peer memory client serves it; load one, or use DMA-BUF", "PeermemNotLoaded"},
	{"allocate MR with error=", "14", "", "", unregistered, "the NIC cannot register this memory (error 14)", "NoPeerMemoryPath"},
	{"allocate MR with error=", "95", "", DMABuf, unregistered, "the RDMA stack does not register DMA-BUF (error 95)", "DMABufRefused"},
	{"allocate MR with error=", "12", "", "", undecided, "no memory may be locked (error 12)", "LockedMemoryLow"},
	{"allocate MR with error=", "1", "", "", undecided, "no memory may be locked (error 1)", "LockedMemoryLow"},
	{"allocate MR with error=", "", "", "", undecided, "memory could not be registered, for another reason than those known", ""},
	// The same with the warning of rdma-core, libibverbs/init.c, check_memlock_limit.
	{"Couldn't allocate MR", "", "RLIMIT_MEMLOCK is ", "", undecided, "this process may lock little memory", "LockedMemoryLow"},
	// v4.5-0.17 to 25.07: the error has no number where memory is not registered by DMA-BUF.
	{"Couldn't allocate MR", "", "", "", undecided, "memory could not be registered; this release does not say why: little memory may be locked, or no peer memory client serves it", "PeermemNotLoaded"},
	// src/perftest_resources.h, NOTIFY_COMP_ERROR_SEND and _RECV (bce05ff).
	{"Completion with error at ", "", "", "", broken, "a transfer failed on its way", "ACSRedirect"},
	// src/perftest_communication.c, ethernet_server_connect and ethernet_client_connect (bce05ff).
	{"Couldn't listen to port ", "", "", "", undecided, "the TCP port is in use", ""},
	{"Couldn't connect to ", "", "", "", undecided, "the other side did not listen", ""},
	// glibc getopt_long; src/perftest_parameters.c, parser (4975543).
	{"unrecognized option '--use_", "", "", "", undecided, "this perftest was built without this kind of memory", ""},
	{"Unsupported memory type", "", "", "", undecided, "this perftest was built without this kind of memory", ""},
	{"Invalid Command or flag", "", "", "", undecided, "this perftest does not know one of the options", ""},
	// src/perftest_resources.c, ctx_find_dev; the programs, as src/write_bw.c, main.
	{"IB device ", "", "", "", undecided, "there is no such NIC here", "RDMADeviceElsewhere"},
	{"Did not detect devices", "", "", "", undecided, "there is no NIC here", "VerbsNodeMissing"},
	{"No IB devices found", "", "", "", undecided, "there is no NIC here", "VerbsNodeMissing"},
	{"Found Incompatibility issue with GID types", "", "", "", undecided, "the GID of this index is not there, or of another type than that of the other side", "NoRoCEGID"},
	{"Failed to modify QP", "", "", "", undecided, "the sides could not connect: the GID, the NIC of a side or the port is wrong", "NoRoCEGID"},
	// src/cuda_memory.c, init_gpu, cuda_memory_init and allocation (4975543, before it
	// src/perftest_resources.c); src/cuda_loader.c (c543c84).
	{"Failed to load CUDA library", "", "", "", undecided, "perftest did not find libcuda.so (25.07 and newer take this name, not libcuda.so.1)", ""},
	{"cuDeviceGetByPCIBusId", "", "", "", undecided, "CUDA does not see this GPU here", "GPUNodeMissing"},
	{"cuInit(0) returned", "", "", "", undecided, "CUDA does not work here", "GPUNodeMissing"},
	{"no available device(s) that support CUDA", "", "", "", undecided, "CUDA sees no GPU here", "GPUNodeMissing"},
	{"cuCtxCreate", "", "", "", undecided, "the GPU could not be opened: another process may have it for itself, or its memory is full", ""},
	{"cuMemAlloc error=", "", "", "", undecided, "the memory of the GPU is full", ""},
	{"cuMemGetHandleForAddressRange error=", "", "", "", undecided, "CUDA did not export the memory as DMA-BUF", "NoDMABuf"},
	{"DMA-BUF is not supported on this GPU", "", "", "", undecided, "CUDA does not export the memory of this GPU as DMA-BUF", "NoDMABuf"},
	{"Couldn't init GPU context", "", "", "", undecided, "CUDA does not work here", ""},
	// src/rocm_memory.c (d5bdf7b, f5c3035).
	{"could not verify dmabuf support", "", "", "", undecided, "perftest found no kernel configuration that shows DMA-BUF", ""},
	{"Couldn't initialize ROCm device", "", "", "", undecided, "ROCm does not see this GPU here", "GPUNodeMissing"},
	{"hipMalloc error=", "", "", "", undecided, "the memory of the GPU is full", ""},
	// src/write_bw.c, main: --limit_bw, which ends the client with 1 and the server with 0.
	{"BW result is below bw limit", "", "", "", undecided, "a limit was set (--limit_bw) and missed", ""},
	{"margin is not long enough", "", "", "", undecided, "the link is too slow for the duration (-D)", ""},
	// What follows when the other side is gone.
	{"read from socket", "", "", "", followed, "the other side ended", ""},
	{"Failed to exchange data", "", "", "", followed, "the other side ended", ""},
	{"Couldn't read remote address", "", "", "", followed, "the other side ended", ""},
}

// find is the row that explains a failure best: the first in the table, not in the text, of which the
// last lines say least.
func find(lines []string, way Way) *row {
	for i := range rows {
		r := &rows[i]
		if (r.way == "" || r.way == way) && slices.ContainsFunc(lines, r.fits) &&
			slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, r.with) }) {
			return r
		}
	}
	return nil
}

func (r *row) fits(line string) bool {
	_, after, found := strings.Cut(line, r.has)
	return found && (r.number == "" || strings.TrimSpace(after) == r.number)
}
