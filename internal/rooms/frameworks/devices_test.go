package frameworks_test

import (
	"fmt"
	"strings"
	"testing"

	"gdr-features/internal/rooms/frameworks"
	"gdr-features/tristate"
)

// TestNetworkDevices: UCX may name network devices too, which are not always known.
func TestNetworkDevices(t *testing.T) {
	m := fourGPUs(t)
	for _, tt := range []struct {
		networks []string
		want     tristate.State
	}{
		{[]string{"lo", "eth0"}, tristate.True},
		{[]string{"lo"}, tristate.False},
		{nil, tristate.Unknown},
	} {
		given := frameworks.Environment{Variables: map[string]string{"UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,eth0"}, Networks: tt.networks}
		if got := frameworks.Check(m, given); len(got) != 1 || got[0].State != tt.want {
			t.Errorf("%q: %+v, want %v", tt.networks, got, tt.want)
		}
	}
}

// TestAMD: the GPUs of a Mooncake for AMD have other names, their order needs no variable,
// and NVSHMEM is not for them.
func TestAMD(t *testing.T) {
	m := described(t, strings.NewReplacer("10de:2330", "1002:74a1", " gpu ", " accel ").Replace(four))
	const file = `{"%[1]s:0":[["mlx5_0","mlx5_1"],[]],"%[1]s:1":[["mlx5_1","mlx5_0"],[]],"%[1]s:2":[["mlx5_2","mlx5_3"],[]],"%[1]s:3":[["mlx5_2","mlx5_3"],[]]}`
	for prefix, want := range map[string]tristate.State{"hip": tristate.True, "cuda": tristate.False} {
		findings := judged(t, m, fmt.Appendf(nil, file, prefix))
		if len(findings) != 1 || findings[0].State != want {
			t.Errorf("%s: %+v", prefix, findings)
		}
	}
	if s := frameworks.Named("nvshmem").Write(m); len(s.Variables) > 0 || len(s.Notes) != 1 {
		t.Errorf("nvshmem: %+v", s)
	}
	for _, name := range []string{"sglang", "mooncake"} {
		if s := frameworks.Named(name).Write(m); len(s.Variables) > 0 {
			t.Errorf("%s: %v", name, s.Variables)
		}
	}
}

// TestRegistered: NVSHMEM assigns NICs in the order in which the kernel registered them, which
// new names do not change.
func TestRegistered(t *testing.T) {
	m := fourGPUs(t)
	const given = "CUDA_DEVICE_ORDER=PCI_BUS_ID\nNVSHMEM_ENABLE_NIC_PE_MAPPING=1\nNVSHMEM_HCA_PE_MAPPING=mlx5_0:1:1,mlx5_1:1:2,mlx5_2:1:1,mlx5_3:1:1"
	wrong := func() string {
		for _, f := range judged(t, m, []byte(given)) {
			if f.Name == "NVSHMEM_HCA_PE_MAPPING" {
				return f.Text()
			}
		}
		return ""
	}
	far := "the GPU 0000:83:00.0 is given mlx5_1 at SYS"
	if !strings.Contains(wrong(), far) {
		t.Errorf("in the order of names: %s", wrong())
	}
	for i, nic := range m.NICs {
		nic.Registered = i + 1
	}
	if !strings.Contains(wrong(), far) {
		t.Errorf("in the same order of registration: %s", wrong())
	}
	m.NICs[0].Registered, m.NICs[2].Registered = 3, 1
	if text := wrong(); !strings.Contains(text, "the GPU 0000:13:00.0 is given mlx5_2 at SYS") {
		t.Errorf("in another order of registration: %s", text)
	}
}
