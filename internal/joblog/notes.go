package joblog

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/show"
	"gdr-features/tristate"
)

// hint is a message that may tell why, and the first node that printed it.
type hint struct {
	node   string
	others bool // another node printed it, too
}

// Hints that are no messages of NCCL's.
const (
	hintNVLink = "channels between nodes go over NVLink (MNNVL), without a NIC"
	hintRay    = "Ray has left lines out that it takes for repetitions, so the numbers are too low: set RAY_DEDUP_LOGS=0"
)

// reasons are messages that tell why GPUDirect RDMA is not used, by what they begin with or,
// where the network is in between, have in them.
var reasons = []struct{ begin, within, means string }{
	{"NET/IB : No device found", "", "NCCL found no RDMA device that it may use"},
	{"NET/", ": GPU Direct RDMA Disabled for HCA", "the NIC cannot register GPU memory, neither with a peer memory client nor with DMA-BUF"},
	{"NET/", ": GPU Direct RDMA Disabled for GPU", "the GPU and the NIC are too far from each other (NCCL_NET_GDR_LEVEL), or there is no peer memory client"},
	{"GPU Direct RDMA Disabled for GPU", "", "the GPU and the NIC are too far from each other (NCCL_NET_GDR_LEVEL)"},
	{"GDRDMA not enabled", "", "RCCL found no peer memory interface"},
	{"NCCL_IB_DISABLE set by environment", "", ""},
	{"NCCL_NET_GDR_LEVEL set by environment", "", ""},
	{"NCCL_NET_GDR_READ set by environment", "", ""},
	{"NCCL_DMABUF_ENABLE set by environment", "", ""},
	{"NCCL_IB_HCA set", "", ""},
}

func (l *Log) reason(before, m []byte) {
	for _, r := range reasons {
		if !bytes.HasPrefix(m, []byte(r.begin)) || !bytes.Contains(m, []byte(r.within)) {
			continue
		}
		text := r.means
		if text == "" {
			const longest = 120
			text = strings.TrimRight(string(m[:min(len(m), longest)]), " .\r\n")
		}
		l.hint(l.process(before), text)
		return
	}
}

func (l *Log) hint(p process, text string) {
	const most = 32
	if h := l.hints[text]; h != nil {
		h.others = h.others || h.node != p.host
	} else if len(l.hints) < most {
		l.hints[text] = &hint{node: p.host}
	}
}

// said returns a hint with the node that printed it; "" if none did.
func (l *Log) said(text string) string {
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

func (l *Log) notes() []string {
	var notes []string
	add := func(ok bool, text string) {
		if ok && text != "" {
			notes = append(notes, text)
		}
	}
	add(l.lines == 0, "the log has no line of NCCL or RCCL: run the job with NCCL_DEBUG=INFO")
	add(l.lines > 0 && l.channels == 0, l.said(hintNVLink))
	add(l.lines > 0 && l.channels == 0 && l.hints[hintNVLink] == nil,
		"no line names a channel over a network: a job on one node has none, and NCCL_DEBUG_SUBSYS must have INIT or NET")
	add(l.channels > 0 && l.oneNode(), "all ranks are on one node: these channels connect GPUs of this node")
	add(l.staged > 0, fmt.Sprintf("%s of a socket say GDRDMA: TCP copies through host memory, so this is not GPUDirect RDMA", show.Count(l.staged, "channel")))
	if l.direct < l.channels {
		for _, r := range reasons {
			add(r.means != "", l.said(r.means))
		}
		notes = append(notes, l.environment()...)
	}
	add(true, l.said(hintRay))
	add(l.unread > 0, fmt.Sprintf("%s about channels cannot be read", show.Count(l.unread, "line")))
	add(l.forgotten, "the log has more ranks and NICs than are remembered: the table is not complete, the numbers of channels in the last line are")
	return notes
}

// environment returns the variables that the log names, in a fixed order.
func (l *Log) environment() []string {
	var found []string
	for text := range l.hints {
		if strings.HasPrefix(text, "NCCL_") {
			found = append(found, l.said(text))
		}
	}
	slices.Sort(found)
	return found
}

// Because adds a note for each reason that why returns for ranks without GPUDirect RDMA, in
// front of the others. why returns "" for a rank that it knows nothing about.
func (r *Result) Because(why func(*Rank) string) {
	var reasons []string
	of := map[string][]string{}
	for _, rank := range r.Ranks {
		if rank.GDR() == tristate.True {
			continue
		}
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

// few joins words, no more than eight of them.
func few(words []string) string {
	const most = 8
	if n := len(words) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), n)
	}
	return strings.Join(words, ", ")
}
