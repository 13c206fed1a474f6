package explain

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// NotUsed says why a job's channels from a GPU (an address, or "") over a NIC (as FindNIC takes
// it) may have had no GPUDirect RDMA, as far as the machine shows it. ok is false for a GPU that
// this machine does not have.
func NotUsed(r *verdict.Node, found []finding.Finding, gpu, nic string) (reason string, ok bool) {
	g, err := FindGPU(r, gpu)
	if gpu != "" && err != nil && r.PCIRead {
		return "", false
	}
	switch r.Verdict.Ready {
	case tristate.False:
		return failures(r, found), true
	case tristate.Unknown:
		return fmt.Sprintf("whether the machine is ready is unknown (%s)", r.Verdict.Reason), true
	case tristate.True:
	}
	if gpu != "" {
		for name, pair := range pairs(r, g, nic) {
			if p := PathOf(r, g, pair.NIC); p.Default == tristate.False {
				_, why, _ := strings.Cut(p.DefaultWhy, " ")
				why = strings.TrimPrefix(why, "with its default settings; ")
				return fmt.Sprintf("NCCL rates the way to %s %v, and by default does without GPUDirect RDMA there; %s", name, p.NCCL, why), true
			}
		}
	}
	return "no reason is visible on the machine, which is ready: look at the job's variables and container (check --pod)", true
}

// pairs are those of a GPU with the NICs that a log names, by these names: "mlx5_0:2+mlx5_1:1" where
// NCCL uses two as one. Those that are not known are left out.
func pairs(r *verdict.Node, gpu int, nics string) iter.Seq2[string, topology.Pair] {
	return func(yield func(string, topology.Pair) bool) {
		for name := range strings.SplitSeq(nics, "+") {
			device, _, _ := strings.Cut(name, ":")
			n, err := FindNIC(r, device)
			if err == nil && !yield(name, r.Matrix.PairsOf(gpu)[n]) {
				return
			}
		}
	}
}

// FarNIC says that a GPU (an address) uses a NIC (a name, or several that are merged) though
// another one is near it, and which. It returns "" where the NIC is near, no other one is nearer,
// or one of them is not known.
func FarNIC(r *verdict.Node, gpu, nic string) string {
	g, err := FindGPU(r, gpu)
	if err != nil || gpu == "" {
		return ""
	}
	for name, pair := range pairs(r, g, nic) {
		if near := nearer(r, pair); len(near) > 0 {
			return fmt.Sprintf("%s is %v to this GPU; %s", name, pair.Level, useNear(near))
		}
	}
	return ""
}

// instead says what to do about a NIC where NCCL does not use GPUDirect RDMA by default. A wider
// level is advised only where no NIC is near.
func instead(r *verdict.Node, pair topology.Pair) string {
	if near := nearer(r, pair); len(near) > 0 {
		return useNear(near)
	}
	return fmt.Sprintf("NCCL_NET_GDR_LEVEL=%v allows it, but it may be slower: measure", pair.NCCL)
}

func useNear(near []string) string { return "use a near NIC: " + strings.Join(near, ", ") }

// nearer names the NICs near a GPU with which NCCL uses GPUDirect RDMA by default, with their
// level. There is none where the pair is as near, or its level is not known.
func nearer(r *verdict.Node, pair topology.Pair) []string {
	if pair.Level == topology.Unknown {
		return nil
	}
	var names []string
	for _, n := range r.Matrix.GPUs[pair.GPU].Near(topology.Usable).NICs {
		near := r.Matrix.PairsOf(pair.GPU)[n]
		if doubted(r, near) {
			continue
		}
		if device := r.Matrix.NICs[n].RDMA; device == nil || !slices.ContainsFunc(device.Ports, rdma.Port.Active) {
			continue // not now
		}
		if near.Default == tristate.True && near.Level.Rank() < pair.Level.Rank() {
			names = append(names, fmt.Sprintf("%s (%v)", NICName(&r.Matrix.NICs[n]), near.Level))
		}
	}
	return names
}

// doubted: transfers between pairs like this one are published to fail, and nothing here proves
// the contrary.
func doubted(r *verdict.Node, pair topology.Pair) bool {
	d := r.Verdict.BelowEmulated
	return d.Doubt == verdict.Unproven && slices.ContainsFunc(d.Pairs, func(p *topology.Pair) bool {
		return p.GPU == pair.GPU && p.NIC == pair.NIC
	})
}

func failures(r *verdict.Node, found []finding.Finding) string {
	var all []string
	for i := range found {
		if f := &found[i]; f.Status == finding.StatusFail {
			all = append(all, fmt.Sprintf("%s (%s)", f.Code, f.Detail))
		}
	}
	if len(all) == 0 {
		return string(r.Verdict.Reason)
	}
	return strings.Join(all, ", ")
}
