package joblog

import "bytes"

// effect is what a warning says about GPUDirect RDMA.
type effect int

const (
	// harmless: nothing. The rows for it keep such a warning from a more general row below; those
	// of reasons say what else they mean.
	harmless effect = iota
	// wentOn: something failed, and the job went on without it.
	wentOn
	// doubtful: the network failed, and the line does not say whether with GPUDirect RDMA.
	doubtful
	// failed: memory of a GPU was not registered, or a transfer failed.
	failed
)

// row is a message that is known, a warning (NCCL WARN) or one of reasons (NCCL INFO), by what it has in it and where it is printed.
// Empty fields fit all. The first row that fits counts.
type row struct {
	// at is part of the source file that the line names, begin and within are parts of the text.
	at, begin, within string
	effect            effect
	means             string
	// code is the page that says what to do, see gdr-features explain.
	code string
}

// The rows are in the order of the libraries that print them. The releases that were read:
// NVIDIA/nccl v2.4.2-1 to v2.30.7-1 (73cf1122) and its branch dev at 86fa684d (2.31); ROCm/rccl
// rocm-4.5.2 to develop at 0cbce2a7; aws/aws-ofi-nccl v1.5.0 to master at 2daf7d30;
// Mellanox/nccl-rdma-sharp-plugins v2.0.1 to master at 2f5ac02e. testdata/strings.txt has
// every one of their warnings with its file, and those of nixlRows.
var rows = []row{
	// Registration: src/misc/ibvwrap.cc, wrap_ibv_reg_mr, wrap_ibv_reg_mr_iova2,
	// wrap_ibv_reg_dmabuf_mr; src/misc/mlx5dvwrap.cc, wrap_mlx5dv_reg_dmabuf_mr.
	{"", "", "ibv_reg_mr failed with error Cannot allocate memory", failed, noMemory, "LockedMemoryLow"},
	{"", "", "ibv_reg_mr_iova2 failed with error Cannot allocate memory", failed, noMemory, "LockedMemoryLow"},
	{"", "", "ibv_reg_mr failed with error Bad address", failed, badAddress, "NoPeerMemoryPath"},
	{"", "", "ibv_reg_mr_iova2 failed with error Bad address", failed, badAddress, "NoPeerMemoryPath"},
	{"", "", "ibv_reg_dmabuf_mr", failed, "the NIC could not register GPU memory by DMA-BUF", "DMABufRefused"},
	{"", "", "mlx5dv_reg_dmabuf_mr", failed, "the NIC could not register GPU memory by DMA-BUF", "DMABufRefused"},
	{"", "", "ibv_reg_mr", failed, noRegistration, "NoPeerMemoryPath"},
	{"", "Call to ibv_dereg", "", harmless, "", ""},
	// src/transport/net_ib/reg.cc, ncclIbDeregMrInternal.
	{"", "NET/IB: could not find mr", "", harmless, "", ""},

	// Completions: src/transport/net_ib/p2p.cc, ncclIbTest and its successors; gin.cc.
	{"", "", "IBV_WC_RETRY_EXC_ERR", failed, noAnswer, ""},
	{"", "", "with error 12,", failed, noAnswer, ""},
	{"", "", "with status=12 ", failed, noAnswer, ""},
	{"", "", "Got completion ", failed, badTransfer, "ACSRedirect"},
	{"", "", "Got CQE with error", doubtful, badTransfer, "ACSRedirect"},

	// RCCL, init.cc, commSetUnrollFactor and ncclCommInitRankDev: advice for the machine.
	{"", "NUMA auto balancing enabled", "", wentOn, "RCCL warns that NUMA balancing makes it slower", "NUMABalancing"},

	{"rocmwrap", "", "", wentOn, "RCCL cannot export GPU memory as DMA-BUF", ""}, // rocmLibraryInit

	// The plugin for libfabric.
	{"", "NET/OFI", "GDRCopy", wentOn, gdrcopy, ""},
	{"", "NET/OFI", "gdr_", wentOn, gdrcopy, ""},
	{"", "NET/OFI", "gdrapi", wentOn, gdrcopy, ""},
	{"", "NET/OFI", "GDR disabled on GDR-supported instance type", failed, "aws-ofi-nccl could not set up GPUDirect RDMA, and stops where the instance type has it (src/platform-aws.cpp)", ""},
	{"", "NET/OFI", "GDR support reported to NCCL but then couldn't be configured", failed, "aws-ofi-nccl could not set up GPUDirect RDMA on an endpoint", ""},
	{"", "NET/OFI", "FI_OPT_CUDA_API_PERMITTED", doubtful, "libfabric does not say that it leaves CUDA alone", ""},
	{"", "NET/OFI", "Unable to register memory", failed, ofiRegistration, "EFAPeermemUnproven"},
	{"", "NET/OFI", "Could not register memory", failed, ofiRegistration, "EFAPeermemUnproven"},
	{"", "NET/OFI", "ould not register dummy buffer", failed, ofiRegistration, "EFAPeermemUnproven"},
	{"", "NET/OFI", "Couldn't register memory region", failed, ofiRegistration, "EFAPeermemUnproven"},
	{"", "NET/OFI", "egistration failed", failed, ofiRegistration, "EFAPeermemUnproven"},
	{"", "NET/OFI", "Failed call to reg_mr", failed, ofiRegistration, "EFAPeermemUnproven"},
	{"", "NET/OFI", "Memory registration may not have completed", failed, ofiRegistration, "EFAPeermemUnproven"},
	{"", "NET/OFI", "Failed to register memory", failed, ofiRegistration, "EFAPeermemUnproven"},
	{"", "NET/OFI", "Unable to bind MR", failed, ofiRegistration, "EFAPeermemUnproven"},
	{"", "NET/OFI", "Unable to enable MR", failed, ofiRegistration, "EFAPeermemUnproven"},
	{"", "NET/OFI", "GDR flush", failed, "what the NIC had written to GPU memory could not be flushed", ""},
	{"", "NET/OFI", "gpu flush buffer", failed, "what the NIC had written to GPU memory could not be flushed", ""},
	{"", "NET/OFI", "CUDA flush enabled", harmless, "", ""},

	// The plugin for UCX: src/ucx_plugin.c, nccl_ucx_regmr; include/ucx_uct_lib.h.
	{"", "Failed: UCX error", "", failed, "UCX, which the job uses instead of NCCL's own network, failed: NCCL_NET_PLUGIN=none does without it", ""},
	{"ucx", "Failed: ", "", failed, "UCX, which the job uses instead of NCCL's own network, failed: NCCL_NET_PLUGIN=none does without it", ""},
	{"", "ucx_", "unable to ", failed, "a transfer by UCX failed", ""},
	{"", "NET/UCX_RMA: ", " failed", failed, "a transfer by UCX failed", ""},
	{"", "ucx_rma post_fifo", "", failed, "a transfer by UCX failed", ""},
	{"", "Cannot use cuda/gdr transports", "", doubtful, "UCX_TLS names transports that the plugin for UCX refuses", ""},

	// Ends of transfers and of the network as a whole: src/transport/net_ib/common.cc,
	// ncclIbAsyncThreadMain and ncclIbStatsCheckFatalCount.
	{"", "NET/IB", "async fatal event", failed, "the NIC reported a fatal error", ""},
	{"", "communicator encountered a fatal error", "", failed, "the NIC reported a fatal error", ""},
	{"", "NET/IB", "Got non-fatal async event", harmless, "", ""},
	{"", "NET/IB", "Got async error event", doubtful, "the NIC reported an error", ""},
	{"", "NET/IB", "Got async event", wentOn, "the NIC reported an event: a port went down or came back, or an error", "PortDown"},
	{"", "NET/IB", "GID table changed", harmless, "", ""},
	{"", "NET/IB", "unknown event type", harmless, "", ""},

	// What was tried again or left out: src/transport/net_ib/init.cc, ncclIbInitDevices;
	// p2p_resiliency.cc. Its own words say that the job went on.
	{"", "NET/IB", "Unable to open device", wentOn, "NCCL left out a NIC that it could not open", "VerbsNodeMissing"},
	{"", "NET/IB", "Unable to query", wentOn, "NCCL left out a NIC, or a port of it, that did not answer", ""},
	{"", "NET/IB", "marked as failed. Initiating recovery?", wentOn, "NCCL went on without a NIC that failed", ""},
	{"", "NET/IB", "Unrecognized request. It might be a CTS message", harmless, "", ""},
	{"", "NET/IB", "Encountered a stale CQE", harmless, "", ""},
	{"", "NET/IB", "Resiliency ", harmless, "", ""},
	{"", "NET/IB", "outstanding recovery operations", harmless, "", ""},
	{"", "NET/IB", "relaxed order memory access requested", harmless, "", ""},
	{"", "NET/IB", "Error in mlx5dv_get_data_direct_sysfs_path", wentOn, "NCCL could not ask a NIC for its data-direct function, and takes the NIC itself", "NoDataDirect"},
	{"", "NET/IB", "in ncclIbRoceGetVersionNum", wentOn, "NCCL could not read the type of a GID, and leaves that GID out", ""},
	{"", "NET/IB", "is invalid for family", harmless, "", ""}, // NCCL_IB_ADDR_RANGE
	{"", "", "failed to NET register userbuff", wentOn, "memory of the job could not be registered, so NCCL copies through buffers of its own", ""},
	{"", "", "COLLNET failed to register userbuff", wentOn, "memory of the job could not be registered, so NCCL copies through buffers of its own", ""},
	{"", "Warning: remote FLID", "", harmless, "", ""},

	// Libraries: src/misc/ibvsymbols.cc, buildIbvSymbols; before 2.11 ibvwrap.cc.
	{"", "Failed to open libibverbs", "", wentOn, noVerbs, "NoLibibverbs"},

	// GIN, the network that kernels start by themselves: src/gin/gin_host.cc, ncclGinConnectOnce.
	{"", "GIN not supported", "", wentOn, noGIN, "GINImpossible"},
	{"", "GIN is disabled", "", wentOn, noGIN, "GINImpossible"},
	{"", "No GIN-capable devices", "", wentOn, noGIN, "GINImpossible"},
	{"", "Unable to use GIN", "", wentOn, noGIN, "GINImpossible"},
	{"", "RMA not supported", "", wentOn, noGIN, "GINImpossible"},
	{"", "No RMA-capable devices", "", wentOn, noGIN, "GINImpossible"},
	{"", "", "Symmetric register failed", failed, "the NIC could not register GPU memory for GIN or RMA", "GINImpossible"},
	{"", "", "Failed to connect GDAKI QP", failed, "GIN could not connect", "GINImpossible"},

	// GDRCopy is another way for the CPU to GPU memory: src/misc/gdrwrap.cc.
	{"gdrwrap", "", "", wentOn, gdrcopy, ""},

	// Not about GPUDirect RDMA: sockets, the start of the job, its order of GPUs, SHARP.
	{"", "NET/Socket", "", harmless, "", ""},
	{"", "Socket : ", "", harmless, "", ""},
	{"misc/socket", "", "", harmless, "", ""},
	{"include/socket", "", "", harmless, "", ""},
	{"socket.c", "", "", harmless, "", ""},
	{"graph/", "", "", harmless, "", ""},
	{"symbols", "dlvsym failed", "", harmless, "", ""}, // tried for each version
	{"sharp", "SHARP regmr failed", "", doubtful, "SHARP could not register memory", ""},
	{"sharp", "", "", harmless, "", ""},
	{"coll_net", "", "", harmless, "", ""},
	{"", "NET/OFI", "istogram", harmless, "", ""},
	{"", "NET/OFI", "uner", harmless, "", ""}, // tuner, another plugin
	{"", "NET/OFI", "topology file", harmless, "", ""},
	{"", "NET/OFI", "dereg", harmless, "", ""},
	{"", "NET/OFI", "de-reg", harmless, "", ""},
	{"", "NET/OFI", "freeing", harmless, "", ""},
	{"", "NET/OFI", "leaking", harmless, "", ""},
	{"", "NET/OFI", "still active", harmless, "", ""},
	{"", "NET/OFI", "MR cache destroyed", harmless, "", ""},
	{"", "NET/OFI", "NVLS", harmless, "", ""},

	// All else that networks print. What it means for GPUDirect RDMA is not known.
	{"", "", "Failed to execute operation", doubtful, networkFailed, ""},
	{"", "Failed to initialize any NET plugin", "", doubtful, "NCCL has no network", "NoNCCLPlugin"},
	{"", "NET/", "", doubtful, networkFailed, ""},
	{"", "NET:", "", doubtful, networkFailed, ""},
	{"", "GIN", "", doubtful, networkFailed, ""},
	{"", "RMA", "", doubtful, networkFailed, ""},
	{"", "Call to ", "", doubtful, networkFailed, ""},
	{"net_ib", "", "", doubtful, networkFailed, ""},
	{"transport/net.cc", "", "", doubtful, networkFailed, ""},
	{"ibvwrap", "", "", doubtful, networkFailed, ""},
	{"gin", "", "", doubtful, networkFailed, ""}, // and ib_plugin.c, plugin/net.cc
	{"net.cc", "", "", doubtful, networkFailed, ""},
	{"rma", "", "", doubtful, networkFailed, ""},
	{"ucx", "", "", doubtful, networkFailed, ""},
	{"proxy.cc", "", "", harmless, "", ""},
}

const (
	noMemory        = "the NIC could not register memory, mostly because the limit of locked memory is too low (ulimit -l)"
	badAddress      = "the NIC could not register GPU memory: no peer memory client has taken the address"
	noRegistration  = "the NIC could not register memory"
	ofiRegistration = "libfabric could not register memory for the NIC"
	noAnswer        = "the other end did not answer: a cable, a switch, a route, a GID, or a process that ended"
	badTransfer     = "the NIC could not do a transfer; on machines whose ACS or IOMMU is in the way, transfers to GPU memory end like this"
	noVerbs         = "libibverbs is missing where the job runs, so NCCL has no RDMA network of its own"
	noGIN           = "NCCL has no NIC that can do GIN or RMA"
	gdrcopy         = "GDRCopy failed; it is a way of the CPU to GPU memory, and not GPUDirect RDMA"
	networkFailed   = "the network reported an error"
)

// rowOf returns the row of a warning, nil for one that is not known.
func rowOf(at, text []byte) *row { return rowIn(rows, at, text) }

func rowIn(rows []row, at, text []byte) *row {
	for i := range rows {
		r := &rows[i]
		if bytes.Contains(at, []byte(r.at)) && bytes.HasPrefix(text, []byte(r.begin)) && bytes.Contains(text, []byte(r.within)) {
			return r
		}
	}
	return nil
}
