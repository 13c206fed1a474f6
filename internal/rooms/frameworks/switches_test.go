package frameworks_test

import (
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/internal/fleet/mechanism"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/tristate"
)

func mapOn(t *testing.T, name string) *assign.Assignment {
	t.Helper()
	described, err := machine.Load(filepath.Join("../../../testdata/machines", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return mapOf(t, described.Tree(t, described.Ready()))
}

// TestSwitches: what turns GPUDirect RDMA off is found, whole or in part, and what does not
// is not. Rows with ";" set several variables.
func TestSwitches(t *testing.T) {
	both := mechanism.Ways{Peermem: tristate.True, DMABuf: tristate.True}
	dmabuf := mechanism.Ways{Peermem: tristate.False, DMABuf: tristate.True}
	const (
		near              = "dell-xe9680-h100"       // every GPU has a NIC at PIX
		mixed             = "a40-8gpu-2cx7-nccl1343" // four GPUs at PIX, four at NODE
		amd               = "supermicro-mi300x-thor2"
		grace             = "aks-gb300" // every GPU has a NIC at P2C
		efa               = "aws-p5-h100"
		none, whole, part = 0, 1, 2
	)
	maps := map[string]*assign.Assignment{near: mapOn(t, near), mixed: mapOn(t, mixed), amd: mapOn(t, amd), grace: mapOn(t, grace), efa: mapOn(t, efa)}
	tests := []struct {
		on, set string
		ways    mechanism.Ways
		want    int
	}{
		{near, "NCCL_IB_DISABLE=1", both, whole},
		{near, "NCCL_IB_DISABLE=2 of them", both, whole},
		{near, "NCCL_IB_DISABLE=0", both, none},
		{near, "NCCL_IB_DISABLE=", both, none},
		{near, "NCCL_IB_DISABLE=yes", both, none}, // NCCL reads 0
		{near, "NCCL_IB_DISABLE=99999999999999999999", both, none},
		{efa, "NCCL_IB_DISABLE=1", both, none}, // a plug-in is used
		{near, "NCCL_NET=socket", both, whole},
		{near, "NCCL_NET=IB", both, none},
		{near, "NCCL_NET_GDR_LEVEL=LOC", both, whole},
		{near, "NCCL_NET_GDR_LEVEL=0", both, whole},
		{near, "NCCL_NET_GDR_LEVEL=C2C", both, whole},
		{near, "NCCL_NET_GDR_LEVEL=PIX", both, none},
		{near, "NCCL_NET_GDR_LEVEL=1", both, none},
		{near, "NCCL_NET_GDR_LEVEL=SYS", both, none},
		{near, "NCCL_NET_GDR_LEVEL=7", both, none},
		{near, "NCCL_NET_GDR_LEVEL=NODE", both, part}, // NCCL ignores it
		{near, "NCCL_NET_GDR_LEVEL=pix", both, part},
		{mixed, "NCCL_NET_GDR_LEVEL=LOC", both, whole}, // the others are beyond the default anyway
		{mixed, "NCCL_NET_GDR_LEVEL=PXB", both, none},
		{near, "NCCL_NET_PLUGIN=none", both, none},
		{efa, "NCCL_NET_PLUGIN=None", both, whole},
		{efa, "NCCL_NET_PLUGIN=ofi", both, none},
		{efa, "NCCL_NET=IB", both, whole},
		{efa, "NCCL_NET=Libfabric", both, none},
		{grace, "NCCL_NET_GDR_LEVEL=PXB", both, whole},
		{grace, "NCCL_NET_GDR_LEVEL=PHB", both, none},
		{grace, "NCCL_NET_GDR_C2C=0", both, whole},
		{grace, "NCCL_NET_GDR_C2C=1", both, none},
		{grace, "NCCL_NET_GDR_C2C=0;NCCL_NET_GDR_LEVEL=PHB", both, none},
		{near, "NCCL_NET_GDR_C2C=0", both, none},
		{near, "NCCL_NET_GDR_READ=0", both, part},
		{near, "NCCL_NET_GDR_READ=1", both, none},
		{near, "NCCL_DMABUF_ENABLE=0", both, none},
		{near, "NCCL_DMABUF_ENABLE=0", dmabuf, whole},
		{near, "NCCL_DMABUF_ENABLE=1", dmabuf, none},
		{near, "NCCL_DMABUF_ENABLE=0", mechanism.Ways{DMABuf: tristate.True}, none}, // peermem unknown
		{near, "UCX_TLS=all", both, none},
		{near, "UCX_TLS=rc,cuda_copy,cuda_ipc", both, none},
		{near, "UCX_TLS=rc_x,cuda,sm,self", both, none},
		{near, `UCX_TLS=\rc_mlx5,\cuda_copy`, both, none},
		{near, "UCX_TLS=ib,rocm", both, part},
		{near, "UCX_TLS=rc,sm,self", both, part},
		{near, "UCX_TLS=rc,gdr_copy", both, part},
		{near, "UCX_TLS=tcp", both, part}, // of an MPI beside NCCL
		{near, "UCX_TLS=tcp,cuda", both, whole},
		{near, "UCX_TLS=tcp;NCCL_IB_HCA==mlx5_0", both, none}, // an MPI beside NCCL
		{near, "UCX_TLS=tcp,cuda;NCCL_IB_GID_INDEX=3", both, none},
		{near, "UCX_TLS=tcp;NCCL_IB_HCA=", both, part},
		{near, "UCX_TLS=rc,sm,self;NCCL_IB_HCA==mlx5_0", both, part},
		{near, "UCX_TLS=cuda_copy,cuda_ipc,tcp", both, part}, // right inside one NVLink domain
		{near, "UCX_TLS=cuda_copy,cuda_ipc,tcp;UCX_CUDA_IPC_ENABLE_MNNVL=y", both, none},
		{near, "UCX_TLS=cuda_copy,cuda_ipc,tcp;UCX_CUDA_IPC_ENABLE_MNNVL=n", both, part},
		{near, "UCX_TLS=cuda_copy,tcp;UCX_CUDA_IPC_ENABLE_MNNVL=y", both, whole},
		{near, "MC_FORCE_TCP=0", both, whole}, // any value counts
		{near, "UCX_TLS=^ib", both, whole},
		{near, "UCX_TLS=^rc", both, none},
		{near, "UCX_TLS=^cuda", both, part},
		{near, "UCX_TLS=^tcp,gga", both, none},
		{near, "UCX_TLS=rc:aux,cuda", both, whole},
		{amd, "UCX_TLS=rc,rocm", both, none},
		{amd, "UCX_TLS=rc,cuda", both, part},
		{near, "UCX_IB_GPU_DIRECT_RDMA=no", both, whole},
		{near, "UCX_IB_GPU_DIRECT_RDMA=N", both, whole},
		{near, "UCX_IB_GPU_DIRECT_RDMA=try", both, none},
		{near, "NVSHMEM_REMOTE_TRANSPORT=none", both, whole},
		{near, "NVSHMEM_REMOTE_TRANSPORT=ibgda", both, whole},
		{near, "NVSHMEM_REMOTE_TRANSPORT=none;NVSHMEM_IB_ENABLE_IBGDA=1", both, none},
		{near, "NVSHMEM_REMOTE_TRANSPORT=IBRC", both, none},
		{near, "NVSHMEM_REMOTE_TRANSPORT=libfabric", both, none},
		{near, "NVSHMEM_IB_DISABLE_DMABUF=1", dmabuf, whole},
		{near, "NVSHMEM_IB_DISABLE_DMABUF=1", both, none},
		{near, "NVSHMEM_IB_DISABLE_DMABUF=false", dmabuf, none},
	}
	for _, tt := range tests {
		variables := map[string]string{}
		for set := range strings.SplitSeq(tt.set, ";") {
			name, value, _ := strings.Cut(set, "=")
			variables[name] = value
		}
		got := frameworks.Switches(maps[tt.on], tt.ways, variables)
		switch {
		case len(got) != min(tt.want, 1), len(got) == 1 && got[0].Whole != (tt.want == whole):
			t.Errorf("%s on %s: %+v, want %d", tt.set, tt.on, got, tt.want)
		case len(got) == 1 && (variables[got[0].Name] != got[0].Value || got[0].Why == ""):
			t.Errorf("%s: %+v", tt.set, got)
		}
	}
}

// TestPrintedSwitchesNothingOff: what is printed for a framework does not turn anything off.
func TestPrintedSwitchesNothingOff(t *testing.T) {
	for _, described := range testsize.Share(machine.All(t, "../../../testdata/machines")) {
		m := mapOf(t, described.Tree(t, described.Ready()))
		for _, f := range frameworks.All {
			variables := map[string]string{}
			for _, v := range f.Write(m).Variables {
				variables[v.Name] = v.Value
			}
			if got := frameworks.Switches(m, mechanism.Ways{Peermem: tristate.False, DMABuf: tristate.True}, variables); len(got) > 0 {
				t.Errorf("%s %s: %+v", described.Name, f.Name, got)
			}
		}
	}
}

func TestGIDIndexes(t *testing.T) {
	tests := map[string]struct {
		index int64
		set   bool
	}{
		"3": {3, true}, "0": {0, true}, "+5": {5, true}, "0x10": {16, true}, "-1": {}, "auto": {}, "": {}, "inf": {}, "99999999999999999999": {},
	}
	for value, want := range tests {
		for _, name := range []string{"NCCL_IB_GID_INDEX", "NVSHMEM_IB_GID_INDEX", "UCX_IB_GID_INDEX"} {
			got := frameworks.GIDIndexes(map[string]string{name: value})
			if (len(got) == 1) != want.set || want.set && (got[0].Index != want.index || got[0].Name != name) {
				t.Errorf("%s=%s: %+v, want %+v", name, value, got, want)
			}
		}
	}
}

// FuzzSwitches: whatever a value holds, an effect names its variable and says why.
func FuzzSwitches(f *testing.F) {
	described, err := machine.Load("../../../testdata/machines/bluefield3-l40s.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add("UCX_TLS", "^ib,")
	f.Add("NCCL_NET_GDR_LEVEL", "99999999999999999999999")
	var m *assign.Assignment
	f.Fuzz(func(t *testing.T, name, value string) {
		if m == nil {
			m = mapOf(t, described.Tree(t, described.Ready()))
		}
		variables := map[string]string{name: value}
		for _, effect := range frameworks.Switches(m, mechanism.Ways{}, variables) {
			if effect.Name != name || effect.Why == "" || value == "" {
				t.Errorf("%+v", effect)
			}
		}
		for _, index := range frameworks.GIDIndexes(variables) {
			if index.Index < 0 {
				t.Errorf("%+v", index)
			}
		}
	})
}
