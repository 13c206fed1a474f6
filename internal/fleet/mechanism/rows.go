package mechanism

import "gdr-features/tristate"

// Sources, at the commits that were read. A version in front of a commit is its tag.
const (
	ncclGDR      = "NVIDIA/nccl src/transport/net_ib/gdr.cc@5067397"
	nccl212      = "NVIDIA/nccl src/transport/net_ib.cc@7aa1c46f (2.12.12)"
	nccl213      = "NVIDIA/nccl src/init.cc@19ab67d1 (2.13.4), dmaBufSupported"
	rccl62       = "ROCm/rccl src/transport/net_ib.cc@0cbce2a"
	rccl62DMABuf = "ROCm/rccl src/misc/rocmwrap.cc@0cbce2a"
	rcclGDR      = "ROCm/rocm-systems projects/rccl/src/transport/net_ib/gdr.cc@0d92d17d"
	rcclDMABuf   = "ROCm/rocm-systems projects/rccl/src/misc/rocmwrap.cc@018c383d"
	rcclNotes    = "ROCm/rocm-systems projects/rccl/CHANGELOG.md@0005e8e8 (ROCm 7.1.0, 7.12: ROCm/rccl#1825, ROCm/rocm-systems#3607)"
	rcclForced   = rcclGDR + ", CHANGELOG.md@0005e8e8 (ROCm 7.12)"
	rccl70DMABuf = "ROCm/rccl src/misc/rocmwrap.cc@cdd66a41"
	ucx          = "openucx/ucx src/uct/ib/base/ib_md.c@9466d10, uct_ib_check_gpudirect_driver, uct_ib_md_check_dmabuf"
	ucx113       = "openucx/ucx src/uct/ib/base/ib_md.c@09f27c0 (1.13.1)"
	nvshmem      = "NVIDIA/nvshmem src/modules/transport/ibrc/ibrc.cpp@2d7d25f"
	mooncake35   = "kvcache-ai/Mooncake rdma_context.cpp@392fea7 (0.3.5)"
	mooncake310  = "kvcache-ai/Mooncake mooncake-common/common.cmake, rdma_context.cpp@59c9f90 (0.3.10)"
	mooncake311  = "kvcache-ai/Mooncake environ.cpp, rdma_context.cpp@b4ccdc3 (0.3.11)"
	mooncake312  = "kvcache-ai/Mooncake environ.cpp, rdma_context.cpp@c7ae97f (0.3.12), @3b5a594"
	uccl         = "uccl-project/uccl p2p/rdma/rdma_context.cc@da914a2, get_registration_mode"
	fabric119    = "ofiwg/libfabric prov/efa/src/efa_mr.c@145d9a8 (1.19.0)"
	fabric120    = "ofiwg/libfabric prov/efa/src/efa_mr.c@153261e (1.20.0)"
	ofi          = "aws/aws-ofi-nccl src/nccl_ofi_dmabuf.cpp@2daf7d3"
	ofiPeermem   = "aws/aws-ofi-nccl src/nccl_ofi_net.cpp@2daf7d3, support_gdr"
)

// Variables of RCCL.
const enableDMABuf, forceDMABuf = "NCCL_DMABUF_ENABLE=1", "RCCL_FORCE_ENABLE_DMABUF=1"

func can(source string) Cell    { return Cell{Can: tristate.True, Source: source} }
func cannot(source string) Cell { return Cell{Can: tristate.False, Source: source} }

// Rows is the table. Rows of one framework do not overlap.
var Rows = [...]Row{
	{
		Framework: "nccl", Before: "2.13", Peermem: can(nccl212), DMABuf: cannot(nccl212),
		Note: "it sees a client only by its directory below /sys/kernel/mm/memory_peers",
	},
	{
		Framework: "nccl", From: "2.13", Before: "2.23", Peermem: can("NVIDIA/nccl src/transport/net_ib.cc@178b6b75 (2.22.3)"), DMABuf: can(nccl213),
		Note: "it sees a client only by its directory below /sys/kernel/mm/memory_peers; NCCL_DMABUF_ENABLE=0 turns DMA-BUF off",
	},
	{
		Framework: "nccl", From: "2.23", Peermem: can(ncclGDR), DMABuf: can(ncclGDR),
		Note: "NCCL_DMABUF_ENABLE=0 turns DMA-BUF off",
	},
	{
		Framework: "rccl", From: "2.16", Before: "2.22", Peermem: can(rccl62), DMABuf: Cell{Can: tristate.True, With: "NCCL_DMABUF_ENABLE=1", Source: rccl62DMABuf},
		Note: "it also reads /boot/config-RELEASE for DMA-BUF, which is not in most images",
	},
	{
		Framework: "rccl", From: "2.22", Before: "2.27", Peermem: can(rcclGDR), DMABuf: Cell{Can: tristate.True, With: enableDMABuf, Source: rccl70DMABuf},
		Note: "it also reads /boot/config-RELEASE for DMA-BUF, which is not in most images",
	},
	{
		Framework: "rccl", From: "2.27", Before: "2.28", Peermem: can(rcclGDR),
		DMABuf: Cell{Can: tristate.True, With: enableDMABuf, Forced: forceDMABuf, Then: tristate.True, Source: rcclNotes},
		Note:   "RCCL_FORCE_ENABLE_DMABUF=1 passes over what it reads of the kernel",
	},
	{
		// 2.28.3 is the version of ROCm 7.11, 7.12 and 7.13.
		Framework: "rccl", From: "2.28", Before: "2.29",
		Peermem: Cell{Can: tristate.True, Forced: forceDMABuf, Then: tristate.Unknown, Source: rcclForced},
		DMABuf:  Cell{With: enableDMABuf, Without: "NCCL_DMABUF_ENABLE=0", Forced: forceDMABuf, Then: tristate.True, Source: rcclNotes},
		Note:    "that of ROCm 7.11 does not use DMA-BUF by default, that of ROCm 7.12 and newer does where there is no peermem",
	},
	{
		Framework: "rccl", From: "2.29",
		Peermem: Cell{Can: tristate.True, Forced: forceDMABuf, Then: tristate.False, Source: rcclForced},
		DMABuf:  Cell{Can: tristate.True, Without: "NCCL_DMABUF_ENABLE=0", Forced: forceDMABuf, Then: tristate.True, Source: rcclDMABuf},
		Note:    "DMA-BUF where there is no peermem; 2.31 uses it with NCCL_CUMEM_ENABLE=1 even if NCCL_DMABUF_ENABLE=0",
	},
	{Framework: "ucx", Before: "1.14", Peermem: can(ucx113), DMABuf: cannot(ucx113)},
	{
		Framework: "ucx", From: "1.14", Before: "1.16", Peermem: can(ucx), DMABuf: Cell{Source: "openucx/ucx NEWS@9466d10 (1.14.0)"},
		Note: "DMA-BUF came with protocols v2, which are off by default before 1.16 (UCX_PROTO_ENABLE)",
	},
	{
		Framework: "ucx", From: "1.16", Peermem: can(ucx), DMABuf: can(ucx),
		Note: "UCX_IB_GPU_DIRECT_RDMA=n turns both off",
	},
	{Framework: "nvshmem", Before: "3.4"},
	{
		Framework: "nvshmem", From: "3.4", Peermem: can(nvshmem), DMABuf: can(nvshmem),
		Note: "NVSHMEM_IB_DISABLE_DMABUF=1 turns DMA-BUF off",
	},
	{Framework: "mooncake", Before: "0.3.6", Peermem: can(mooncake35), DMABuf: cannot(mooncake35)},
	{
		Framework: "mooncake", From: "0.3.6", Before: "0.3.11", Peermem: can(mooncake310), DMABuf: cannot(mooncake310),
		Note: "chosen when it is built: by default for peermem; -DWITH_NVIDIA_PEERMEM=OFF builds for DMA-BUF",
	},
	{
		Framework: "mooncake", From: "0.3.11", Before: "0.3.12",
		Peermem: Cell{Can: tristate.True, With: "WITH_NVIDIA_PEERMEM=1", Source: mooncake311},
		DMABuf:  Cell{Can: tristate.True, Without: "WITH_NVIDIA_PEERMEM=1", Source: mooncake311},
	},
	{
		Framework: "mooncake", From: "0.3.12",
		Peermem: Cell{Can: tristate.True, Without: "WITH_NVIDIA_PEERMEM=0", Source: mooncake312},
		DMABuf:  Cell{Can: tristate.True, With: "WITH_NVIDIA_PEERMEM=0", Source: mooncake312},
	},
	{
		Framework: "mooncake-store", Through: []string{"mooncake"},
		Note: "kvcache-ai/Mooncake mooncake-store/src/client_service.cpp@c7ae97f",
	},
	{
		Framework: "uccl", Peermem: can(uccl), DMABuf: cannot(uccl),
		Note: "its P2P engine; with Intel's NICs by DMA-BUF alone",
	},
	{
		Framework: "libfabric", Before: "1.20", Peermem: can(fabric119), DMABuf: cannot(fabric119),
		Note: "the provider efa; it registers DMA-BUF of Neuron and Gaudi alone",
	},
	{
		Framework: "libfabric", From: "1.20", Before: "2.4", Peermem: can(fabric120), DMABuf: can(fabric120),
		Note: "the provider efa; DMA-BUF where the caller passes it (FI_MR_DMABUF), as aws-ofi-nccl does",
	},
	{
		Framework: "libfabric", From: "2.4", Peermem: can("ofiwg/libfabric prov/efa/src/efa_mr.c@af8ddbe"), DMABuf: can("ofiwg/libfabric NEWS.md@af8ddbe (2.4.0), prov/efa/src/efa_mr.c@af8ddbe"),
		Note: "the provider efa; it exports DMA-BUF itself, unless FI_HMEM_CUDA_USE_DMABUF=0",
	},
	{Framework: "aws-ofi-nccl", Before: "1.13"},
	{
		Framework: "aws-ofi-nccl", From: "1.13", Peermem: can(ofiPeermem), DMABuf: can(ofi),
		Note: "built against libfabric 1.20 or newer; 1.13.2 to 1.19.1 do not use DMA-BUF on the first three generations of EFA (EFADMABufOff); OFI_NCCL_DISABLE_DMABUF=1 turns it off",
	},
	{
		Framework: "nixl", Through: []string{"ucx"},
		Note: "ai-dynamo/nixl src/plugins/ucx/ucx_utils.cpp@8770b65; its other backends are libfabric, mooncake, gpunetio and uccl",
	},
	{
		Framework: "modelexpress", Through: []string{"nixl"},
		Note: "ai-dynamo/modelexpress modelexpress_client/python/modelexpress/nixl_transfer.py@3db6bdc",
	},
	{
		Framework: "deepep", Before: "2", Through: []string{"nvshmem"},
		Note: "deepseek-ai/DeepEP README.md@9af0e0d (1.2.1)",
	},
	{
		Framework: "deepep", From: "2", Through: []string{"nccl"},
		Note: "deepseek-ai/DeepEP csrc/kernels/backend/nccl.cu@dd758ca; by NCCL's GIN",
	},
	{
		Framework: "vllm", Through: []string{"nccl", "nixl"},
		Note: "vllm-project/vllm vllm/distributed/kv_transfer/kv_connector/v1/nixl_connector.py@0f12075",
	},
	{
		Framework: "sglang", Through: []string{"nccl", "mooncake", "nixl"},
		Note: "sgl-project/sglang python/sglang/srt/disaggregation/{mooncake,nixl}/conn.py@d012942, @94e9baa",
	},
}
