package joblog

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/show"
)

// hint is a message that may tell why, and the first node that printed it.
type hint struct {
	node   string
	others bool // another node printed it, too
}

// Hints that are no messages of NCCL's.
const (
	hintNVLink  = "channels between nodes go over NVLink (MNNVL), without a NIC"
	hintGIN     = "the job has GIN or RMA, of which no line says over which NIC, nor whether with GPUDirect RDMA"
	hintSockets = "the first communicator of a GPU uses sockets, and RCCL then takes GPUDirect RDMA from its later ones, too: create one on the NIC first (ROCm/rocm-systems#11701)"
	hintRetried = "NCCL repeated a call to the NIC that had failed"
	hintRay     = "Ray has left lines out that it takes for repetitions, so the numbers are too low: set RAY_DEDUP_LOGS=0"
)

// reasons are messages (NCCL INFO) that may tell why GPUDirect RDMA is not used, in the order in
// which they are told; those that are harmless are told elsewhere. See rows for the releases that
// were read.
var reasons = []row{
	// src/plugin/gin.cc, ncclGinPluginAssign; src/plugin/rma.cc; src/dev_runtime.cc, devCommCreate.
	{"", "GIN/Plugin: Assigned ", "", harmless, hintGIN, ""},
	{"", "Assigned GIN plugin ", "", harmless, hintGIN, ""},
	{"", "RMA/Plugin: Assigned ", "", harmless, hintGIN, ""},
	{"", "devCommCreate: ", "", harmless, hintGIN, ""},
	// src/misc/ibvwrap.cc, wrap_ibv_modify_qp.
	{"", "Call to ibv_", ", retrying ", harmless, hintRetried, ""},
	// src/transport/net_ib/init.cc, ncclIbInitDevices; misc/ibvsymbols.cc, buildIbvSymbols.
	{"", "NET/IB : No device found", "", wentOn, "NCCL found no RDMA device that it may use", "RDMADeviceElsewhere"},
	{"", "Failed to open libibverbs", "", wentOn, noVerbs, "NoLibibverbs"},
	// aws-ofi-nccl, src/nccl_ofi_ofiutils.cpp.
	{"", "NET/OFI", "disabling GDR", wentOn, "aws-ofi-nccl has switched GPUDirect RDMA off, because libfabric may call CUDA", ""},
	{"", "NET/OFI", "initialization failed", wentOn, "aws-ofi-nccl did not start", "NoNCCLPlugin"},
	// src/graph/topo.cc, ncclTopoProcessNet: what each device of the network says of itself.
	{"", "NET/Socket : ", "GPU Direct RDMA Disabled for HCA", wentOn, "", ""},
	{"", "NET/", ": GPU Direct RDMA Disabled for HCA", wentOn, "the NIC cannot register GPU memory, neither with a peer memory client nor with DMA-BUF", "NoPeerMemoryPath"},
	{"", "NET/", ": GPU Direct RDMA Disabled for GPU", wentOn, "the GPU and the NIC are too far from each other (NCCL_NET_GDR_LEVEL), or there is no peer memory client", "BeyondNCCLDefault"},
	// src/graph/paths.cc, ncclTopoCheckGdr.
	{"", "GPU Direct RDMA Disabled for ", "", wentOn, "the GPU and the NIC are too far from each other (NCCL_NET_GDR_LEVEL)", "BeyondNCCLDefault"},
	// RCCL, src/transport/net_ib.cc, ncclIbGdrSupport; src/misc/rocmwrap.cc, rocmLibraryInit.
	{"", "GDRDMA not enabled", "", wentOn, "RCCL found no peer memory interface", "MemoryPeersMissing"},
	{"", "Dmabuf feature disabled", "", wentOn, "RCCL uses DMA-BUF only with NCCL_DMABUF_ENABLE=1 (ROCm 6.0 and older: NCCL_ENABLE_DMABUF_SUPPORT=1)", ""},
	{"", "CONFIG_DMABUF_MOVE_NOTIFY and", "", wentOn, "RCCL found that the kernel has no peer-to-peer DMA-BUF", "KernelOptionMissing"},
	{"", "Current version of ROCm does not support dmabuf", "", wentOn, "this release of ROCm has no DMA-BUF", "NoDMABuf"},
	{"", "DMA_BUF_SUPPORT Failed", "", wentOn, "RCCL found that the kernel has no peer-to-peer DMA-BUF", "KernelOptionMissing"},
	// src/net.cc and src/plugin/plugin_open.cc, openPluginLib.
	{"", "NET/Plugin", "Could not find:", wentOn, "NCCL found no network plugin, and uses its own network: EFA needs the plugin", "NoNCCLPlugin"},
	{"", "NET/Plugin : ", "No plugin found", wentOn, "NCCL found no network plugin, and uses its own network: EFA needs the plugin", "NoNCCLPlugin"},
	{"", "NET/Plugin: ", "Most recent plugin load returned", wentOn, "NCCL found no network plugin, and uses its own network: EFA needs the plugin", "NoNCCLPlugin"},
	{"", "Failed to initialize NET plugin", "", wentOn, "a network plugin did not start", "NoNCCLPlugin"},
	// src/transport/net_ib/gin.cc, ncclGinIbInit; src/plugin/gin.cc, ncclGinInit.
	{"", "Unable to use GIN", "", wentOn, noGIN, "GINImpossible"},
	{"", "Compute Capability", "not sufficient to enable GIN", wentOn, noGIN, "GINImpossible"},
	{"", "GIN/Plugin: Failed to initialize any GIN plugin", "", wentOn, noGIN, "GINImpossible"},
	{"", "Failed to initialize any GIN plugin", "", wentOn, noGIN, "GINImpossible"},
	{"", "RMA/Plugin: Failed to initialize any plugin", "", wentOn, noGIN, "GINImpossible"},
	// src/transport/generic.cc, ncclTransportRingConnect.
	{"", "Connected all rings", " GDR 0", wentOn, "NCCL says that it asks for no GPUDirect RDMA on at least one connection (GDR 0)", ""},
	{"", "", "set by environment", harmless, "", ""},
	{"", "NCCL_IB_HCA set", "", harmless, "", ""},
}

// told are the variables whose lines are repeated.
var told = []string{"NCCL_IB_DISABLE", "NCCL_IB_HCA", "NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_READ", "NCCL_DMABUF_ENABLE", "NCCL_IB_GDR_LEVEL"}

// reason takes in a message that may tell why.
func (l *reading) reason(before, m []byte) {
	if bytes.IndexByte([]byte("NGFDCURAd"), m[0]) < 0 {
		return
	}
	r := rowIn(reasons, nil, m)
	if r == nil {
		return
	}
	text := r.said()
	if text == "" {
		if !slices.ContainsFunc(told, func(name string) bool { return bytes.HasPrefix(m, []byte(name)) }) {
			return
		}
		const most = 120
		text = strings.TrimRight(string(m[:min(len(m), most)]), " .\r\n")
	}
	l.hint(l.process(before), text)
}

func (l *reading) hint(p process, text string) {
	const most = 32
	if h := l.hints[text]; h != nil {
		h.others = h.others || h.node != p.host
	} else if len(l.hints) < most {
		l.hints[text] = &hint{node: p.host}
	}
}

// said returns a hint with the node that printed it; "" if none did.
func (l *reading) said(text string) string {
	h := l.hints[text]
	switch {
	case h == nil:
		return ""
	case h.node == "":
		return text
	case h.others:
		return text + " (" + h.node + " and others)"
	}
	return text + " (" + h.node + ")"
}

func (l *reading) notes() []string {
	var notes []string
	add := func(ok bool, text string) {
		if ok && text != "" {
			notes = append(notes, text)
		}
	}
	add(l.lines == 0, "the log has no line of NCCL or RCCL: run the job with NCCL_DEBUG=INFO")
	quiet := l.lines > 0 && l.channels == 0
	add(quiet, l.said(hintNVLink))
	add(true, l.said(hintGIN))
	add(quiet && l.hints[hintNVLink] == nil && l.hints[hintGIN] == nil && len(l.failures) == 0,
		"no line names a channel over a network: a job on one node has none, and NCCL_DEBUG_SUBSYS must have INIT or NET")
	add(l.channels > 0 && l.oneNode(), "all ranks are on one node: these channels connect GPUs of this node")
	add(l.staged > 0, fmt.Sprintf("%s of a socket say GDRDMA: TCP copies through host memory, so this is not GPUDirect RDMA", show.Count(l.staged, "channel")))
	add(l.sockets > l.staged, fmt.Sprintf("%d of the channels go over TCP, which copies through host memory", l.sockets))
	if l.socketsOf != "" {
		add(true, "comm 0x"+l.socketsOf+": "+l.said(hintSockets))
	}
	notes = append(notes, l.causes()...)
	add(true, l.said(hintRetried))
	add(true, l.said(hintRay))
	lines := show.Count(l.unread+l.loose, "line") + " that may be about channels"
	add(l.unread+l.loose > 0, lines+" cannot be read: cut, torn or damaged")
	add(l.long > 0, fmt.Sprintf("%s of more than 64 KiB have messages that are not read", show.Count(l.long, "part of lines")))
	add(l.warnings > 0, fmt.Sprintf("%s of other kinds, the first: %s", show.Count(l.warnings, "warning"), l.warned))
	add(l.forgotten, "the log has more ranks and NICs than are remembered: the table is not complete, the numbers of channels in the last line are")
	return notes
}

// causes are the reasons why channels are without GPUDirect RDMA, and what failed without
// ending the job.
func (l *reading) causes() []string {
	var notes []string
	seen := map[string]bool{}
	for key := range l.failures {
		seen[key.row.said()] = true
	}
	add := func(text string) {
		if said := l.said(text); said != "" && !seen[text] {
			seen[text] = true
			notes = append(notes, said)
		}
	}
	tables, variables := [][]row{rows, ucxRows, nixlRows}, []string(nil)
	if l.direct < l.channels || l.channels == 0 {
		tables, variables = append(tables, reasons), l.variables()
	}
	for _, table := range tables {
		for i := range table {
			if table[i].effect == wentOn {
				add(table[i].said())
			}
		}
	}
	for _, text := range variables {
		notes = append(notes, l.said(text))
	}
	return notes
}

// variables returns those that the log names, in a fixed order.
func (l *reading) variables() []string {
	var found []string
	for text := range l.hints {
		if strings.HasPrefix(text, "NCCL_") {
			found = append(found, text)
		}
	}
	slices.Sort(found)
	return found
}

// Because adds a note for each reason that why returns for a rank, in front of the others. why
// returns "" for a rank that it knows nothing about.
func (r *Result) Because(why func(*Rank) string) {
	var reasons []string
	of := map[string][]string{}
	for _, rank := range r.Ranks {
		reason, who := why(&rank), cmp.Or(rank.GPU, fmt.Sprintf("rank %d", rank.Rank))
		if reason == "" || slices.Contains(of[reason], who) {
			continue
		}
		if of[reason] == nil {
			reasons = append(reasons, reason)
		}
		of[reason] = append(of[reason], who)
	}
	for i, reason := range reasons {
		reasons[i] = few(of[reason]) + ": " + reason
	}
	r.Notes = append(reasons, r.Notes...)
}

// NearGPU returns the GPU that a rank's NIC should be near: its own, or that of the rank of its
// node whose NIC it uses (PXN). It is "" where that is not known.
func (r *Result) NearGPU(rank *Rank) string {
	if len(rank.Through) == 0 {
		return rank.GPU
	}
	for i := range r.Ranks {
		if other := &r.Ranks[i]; len(rank.Through) == 1 && other.Node == rank.Node && other.Rank == rank.Through[0] {
			return other.GPU
		}
	}
	return ""
}

// Chose says which variables of the log chose a NIC that is far: "NCCL_IB_HCA set to mlx5_7".
func (r *Result) Chose() string {
	var chose []string
	for _, text := range r.Variables {
		if strings.HasPrefix(text, "NCCL_IB_HCA") || strings.HasPrefix(text, "NCCL_NET_GDR_LEVEL") || strings.HasPrefix(text, "NCCL_IB_GDR_LEVEL") {
			chose = append(chose, text)
		}
	}
	return few(chose)
}

// few joins words, no more than eight of them.
func few(words []string) string {
	const most = 8
	if n := len(words) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), n)
	}
	return strings.Join(words, ", ")
}
