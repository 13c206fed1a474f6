package frameworks

import (
	"slices"
	"strings"

	"gdr-features/internal/assign"
)

const deepEPName = "EP_NIC_NAME"

// writeDeepEP tells both versions of DeepEP's buffers: the legacy one sends by NVSHMEM, the
// elastic one by NCCL's GIN. The elastic one plans with the rate and the type of one NIC, which
// it asks ibstat for: EP_NIC_NAME, mlx5_0 by default (deepseek-ai/DeepEP dd758ca,
// deep_ep/buffers/legacy.py, deep_ep/buffers/elastic.py, deep_ep/utils/envs.py, get_rdma_gbs and
// check_fast_rdma_atomic_support).
func writeDeepEP(m *assign.Assignment) Settings {
	nvshmem, nccl := writeNVSHMEM(m), writeNCCL(m)
	s := Settings{Notes: nvshmem.Notes}
	if len(nvshmem.Variables) > 0 {
		s.Variables = slices.Concat(nvshmem.Variables, nccl.Variables)
		first, _, _ := strings.Cut(nvshmem.Variables[0].Value, ":")
		s.set(deepEPName, first)
	}
	return s
}

// judgeDeepEP looks at the NIC whose rate DeepEP plans with.
func judgeDeepEP(j *judge, f *Finding) {
	name := j.Variables[deepEPName]
	nic := j.device(f, name, name, 0)
	if nic == nil {
		return
	}
	near := j.Near()
	if len(near) > 0 && !slices.ContainsFunc(near, func(n *assign.NIC) bool { return n.RateGbps == nic.RateGbps }) {
		f.wrong("DeepEP plans with the rate of %s, %v Gbit/s; that of %s is %v Gbit/s", name, nic.RateGbps, near[0].RDMA, near[0].RateGbps)
	}
}
