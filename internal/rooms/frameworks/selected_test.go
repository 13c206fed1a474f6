package frameworks_test

import (
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/rooms/frameworks"
)

// TestSelect: which GPUs a process sees, as CUDA, ROCr and HIP read their variables.
func TestSelect(t *testing.T) {
	nvidia := []frameworks.Candidate{{CUDA: true, UUID: "GPU-aa1"}, {CUDA: true, UUID: "GPU-aa2"}, {CUDA: true, UUID: "GPU-b"}, {CUDA: true, UUID: "GPU-c"}}
	amd := make([]frameworks.Candidate, 4)
	both := []frameworks.Candidate{{CUDA: true}, {}, {CUDA: true}, {}}
	const order = "CUDA_DEVICE_ORDER=PCI_BUS_ID "
	all := []int{0, 1, 2, 3}
	for _, tt := range []struct {
		gpus      []frameworks.Candidate
		variables string
		want      []int
		unknown   string
	}{
		{nvidia, "", all, ""},
		{nvidia, "CUDA_VISIBLE_DEVICES=", nil, ""},
		{nvidia, "CUDA_VISIBLE_DEVICES=NoDevFiles", nil, ""},
		{nvidia, "CUDA_VISIBLE_DEVICES=3", all, "CUDA numbers GPUs by speed"},
		{nvidia, "CUDA_DEVICE_ORDER=FASTEST_FIRST CUDA_VISIBLE_DEVICES=3", all, "CUDA numbers GPUs by speed"},
		{nvidia[:1], "CUDA_VISIBLE_DEVICES=0", []int{0}, ""},
		{nvidia, "CUDA_VISIBLE_DEVICES=0,1,2,3", all, ""},
		{nvidia, order + "CUDA_VISIBLE_DEVICES=3,0", []int{3, 0}, ""},
		{nvidia, order + "CUDA_VISIBLE_DEVICES=1,-1,2", []int{1}, ""},
		{nvidia, order + "CUDA_VISIBLE_DEVICES=1,4,2", []int{1}, ""},
		{nvidia, order + "CUDA_VISIBLE_DEVICES=2,GPU-c", []int{2}, ""},
		{nvidia, order + "CUDA_VISIBLE_DEVICES=1,1", nil, ""},
		{nvidia, order + "CUDA_VISIBLE_DEVICES=99999999999", nil, ""},
		{nvidia, "CUDA_VISIBLE_DEVICES=GPU-c,GPU-aa1", []int{3, 0}, ""},
		{nvidia, "CUDA_VISIBLE_DEVICES=GPU-c,GPU-a,GPU-b", []int{3}, ""},
		{nvidia, "CUDA_VISIBLE_DEVICES=GPU-b,2", []int{2}, ""},
		{nvidia, "CUDA_VISIBLE_DEVICES=GPU-b,GPU-b", nil, ""},
		{nvidia, "CUDA_VISIBLE_DEVICES=MIG-1", all, "MIG"},
		{nvidia, "ROCR_VISIBLE_DEVICES=1", all, ""},
		{both, "CUDA_VISIBLE_DEVICES=GPU-b", all, "UUID"},
		{amd, "ROCR_VISIBLE_DEVICES=", nil, ""},
		{amd, "ROCR_VISIBLE_DEVICES=2,0x3", []int{2, 3}, ""},
		{amd, "ROCR_VISIBLE_DEVICES=2,2,3", []int{2}, ""},
		{amd, "ROCR_VISIBLE_DEVICES=2,x,3", []int{2}, ""},
		{amd, "ROCR_VISIBLE_DEVICES=GPU-1", all, "UUIDs of AMD GPUs"},
		{amd, "ROCR_VISIBLE_DEVICES=2,3 HIP_VISIBLE_DEVICES=1", []int{3}, ""},
		{amd, "HIP_VISIBLE_DEVICES= CUDA_VISIBLE_DEVICES=1", []int{1}, ""},
		{amd, "HIP_VISIBLE_DEVICES=0 CUDA_VISIBLE_DEVICES=1", []int{0}, ""},
		{amd, "HIP_VISIBLE_DEVICES=", all, ""},
		{nil, "CUDA_VISIBLE_DEVICES=0", nil, ""},
	} {
		variables := map[string]string{}
		for v := range strings.FieldsSeq(tt.variables) {
			name, value, _ := strings.Cut(v, "=")
			variables[name] = value
		}
		got := frameworks.Select(tt.gpus, variables)
		if !slices.Equal(got.GPUs, tt.want) || !strings.Contains(got.Unknown, tt.unknown) || (got.Unknown == "") != (tt.unknown == "") {
			t.Errorf("%d GPUs, %q: %+v, want %v, %q", len(tt.gpus), tt.variables, got, tt.want, tt.unknown)
		}
	}
}
