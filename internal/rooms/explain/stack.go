package explain

import (
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/source/kmod"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Step is one part of the chain from hardware to GPU memory.
type Step struct {
	Name  string         `json:"name"`
	State tristate.State `json:"state"`
	// Waits names the steps that this one waits for.
	Waits []string `json:"waitsFor"`
	// Either says that this is one of the two ways to GPU memory; one is enough.
	Either bool `json:"either"`
	// Detail is what was found, Sources the files it was read from.
	Detail string `json:"detail"`
	// First marks, on a node that is not ready, the first broken step, or the
	// first unknown one where none is broken. Reason is the verdict's then.
	First   bool           `json:"first"`
	Reason  verdict.Reason `json:"reason"`
	Sources []string       `json:"sources"`
}

// chain lists the steps in their order, and for each the check that shows it. The
// verdict's steps of that check decide its state; those marked either have their own.
var chain = [...]struct {
	name, check string
	either      bool
	waits       []string
}{
	{"hardware", "hardware", false, nil},
	{"GPU driver", "gpu-driver", false, []string{"hardware"}},
	{"NIC driver", "nic-driver", false, []string{"hardware"}},
	{"RDMA device", "rdma-device", false, []string{"NIC driver"}},
	{"port", "port", false, []string{"RDMA device"}},
	{peerDirect, "rdma-stack", true, nil},
	{peermem, "peermem", true, []string{"GPU driver", peerDirect}},
	{dmabuf, "dmabuf", true, []string{"GPU driver", "RDMA device"}},
	{"GPU memory", verdict.GPUMemory, false, []string{peermem + " or " + dmabuf}},
}

const (
	peerDirect = "PeerDirect API"
	peermem    = "peer memory"
	dmabuf     = "DMA-BUF"
)

// Stack says what waits for what from hardware to GPU memory, and where the chain is broken. On
// hardware that is not capable, or not judged, the rest is left out.
func Stack(r *verdict.Node, found []finding.Finding) []Step {
	v := &r.Verdict
	either := map[string]tristate.State{
		peerDirect: r.Kmod.Symbols[kmod.PeerMemoryAPI].Found,
		peermem:    v.Peermem,
		dmabuf:     v.DMABuf,
	}
	switch { // a registered client proves the interface too
	case v.NIC.PeerMemory.Core && r.PeerDirect() != "":
		either[peerDirect] = tristate.Of(r.PeerDirect() != verdict.PeerDirectNone)
	case v.Peermem == tristate.True:
		either[peerDirect] = tristate.True
	}
	var steps []Step
	for _, c := range chain {
		if c.name == peerDirect && !v.NIC.PeerMemory.Core && !v.GPU.Client.AnyNIC {
			continue // their clients do not register there
		}
		l := Step{Name: c.name, Waits: append([]string{}, c.waits...), Either: c.either, State: either[c.name], Sources: []string{}}
		if !l.Either {
			l.State = met(v.Steps, c.check)
		}
		for _, f := range found {
			if f.Check == c.check {
				l.Detail, l.Sources = f.Detail, f.Sources
			}
		}
		if c.check == verdict.GPUMemory {
			l.Detail = ways(v)
		}
		l.nameClient(v)
		steps = append(steps, l)
		if c.name == "hardware" && (v.Capable == tristate.False || v.Reason == verdict.NICNotJudged) {
			break
		}
	}
	markFirst(steps, v)
	return steps
}

// nameClient names the peer memory client's module, and drops PeerDirect if it is no step.
func (l *Step) nameClient(v *verdict.Verdict) {
	if !v.NIC.PeerMemory.Core {
		l.Waits = slices.DeleteFunc(l.Waits, func(name string) bool { return name == peerDirect && !v.GPU.Client.AnyNIC })
		return
	}
	if len(v.GPU.Client.Modules) == 0 {
		return
	}
	module := v.GPU.Client.Modules[0]
	l.Name = strings.ReplaceAll(l.Name, peermem, module)
	for i := range l.Waits {
		l.Waits[i] = strings.ReplaceAll(l.Waits[i], peermem, module)
	}
}

// met reports whether all steps of a check are met; unknown where there is none.
func met(steps []verdict.Step, check string) tristate.State {
	all, found := tristate.True, false
	for _, s := range steps {
		if s.Check == check {
			all, found = tristate.And(all, s.Met), true
		}
	}
	if !found {
		return tristate.Unknown
	}
	return all
}

func ways(v *verdict.Verdict) string {
	switch {
	case v.Peermem == tristate.True && v.DMABuf == tristate.True:
		return "by peermem and by DMA-BUF"
	case v.Peermem == tristate.True:
		return "by peermem"
	case v.DMABuf == tristate.True:
		return "by DMA-BUF"
	case v.Peermem == tristate.False && v.DMABuf == tristate.False:
		return "neither way is available"
	}
	return "no way is proven"
}

// markFirst finds the step that the reason is about. One way counts as broken when both are.
func markFirst(steps []Step, v *verdict.Verdict) {
	if v.Ready == tristate.True {
		return
	}
	memory := tristate.Or(v.Peermem, v.DMABuf)
	for i := range steps {
		l := &steps[i]
		if l.State == v.Ready && (!l.Either || memory == v.Ready) && (l.Name != peerDirect || v.Ready == tristate.False) {
			l.First, l.Reason = true, v.Reason
			return
		}
	}
}
