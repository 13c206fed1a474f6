package explain

import (
	"fmt"
	"strings"

	"gdr-features/internal/findings"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// NotUsed says why a job's channels from a GPU (an address, or "") over a NIC (as FindNIC takes
// it) may have had no GPUDirect RDMA, as far as the machine shows it. ok is false for a GPU that
// this machine does not have.
func NotUsed(r *verdict.Node, found []findings.Finding, gpu, nic string) (reason string, ok bool) {
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
	if n, err := FindNIC(r, nic); err == nil && gpu != "" {
		if p := PathOf(r, g, n); p.Default == tristate.False {
			return fmt.Sprintf("NCCL rates the way to %s %v and uses GPUDirect RDMA there: %s", nic, p.NCCL, p.DefaultWhy), true
		}
	}
	return "no reason is visible on the machine, which is ready: look at the job's variables and container (check --pod)", true
}

func failures(r *verdict.Node, found []findings.Finding) string {
	var all []string
	for i := range found {
		if f := &found[i]; f.Status == findings.Fail {
			all = append(all, fmt.Sprintf("%s (%s)", f.Code, f.Detail))
		}
	}
	if len(all) == 0 {
		return string(r.Verdict.Reason)
	}
	return strings.Join(all, ", ")
}
