package kmod

import (
	"maps"
	"strings"
	"testing"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// TestEvidence: what proves a peer memory client for one pair of families proves nothing
// for another.
func TestEvidence(t *testing.T) {
	const (
		mm      = "sys/kernel/mm/memory_peers/"
		holders = "sys/module/ib_peer_mem/holders/"
		efa0    = "sys/bus/pci/devices/0000:10:1b.0/"
		efa1    = "sys/bus/pci/devices/0000:20:1b.0/"
	)
	nvidia, amd := []string{"nvidia"}, []string{"amd"}
	for _, tt := range []struct {
		name     string
		gpus     []string
		nic      string
		files    map[string]string
		want     tristate.State
		by       string
		problems []string
	}{
		{"nvidia_peermem on EFA", nvidia, "efa", map[string]string{"sys/module/nvidia_peermem/initstate": "live\n", mm + "nv_mem": isDir}, no, "", nil},
		{"EFA names NVIDIA", nvidia, "efa", map[string]string{efa0 + "p2p": "NVIDIA\n"}, yes, "/" + efa0 + "p2p", nil},
		{"EFA names NVIDIA peermem", nvidia, "efa", map[string]string{efa0 + "p2p": "\n", efa1 + "p2p": "NVIDIA peermem\n"}, yes, "/" + efa1 + "p2p", nil},
		{"EFA names nobody", nvidia, "efa", map[string]string{efa0 + "p2p": "\n", efa0 + "gdr": "1\n"}, no, "", nil},
		{"EFA names Neuron", nvidia, "efa", map[string]string{efa0 + "p2p": "NEURON\n"}, no, "", nil},
		{"EFA names NVIDIA, the GPUs are AMD's", amd, "efa", map[string]string{efa0 + "p2p": "NVIDIA\n"}, no, "", nil},
		{"EFA's older file", nvidia, "efa", map[string]string{efa0 + "gdr": "1\n"}, yes, "/" + efa0 + "gdr", nil},
		{"EFA's older file says no", nvidia, "efa", map[string]string{efa0 + "gdr": "0\n"}, no, "", nil},
		{"the kernel's own EFA driver", nvidia, "efa", nil, no, "", nil},
		{"EFA cannot be read", nvidia, "efa", map[string]string{efa0 + "p2p": isDir}, unknown, "", []string{"read /" + efa0 + "p2p: is a directory"}},
		{"one EFA cannot be read, another names NVIDIA", nvidia, "efa", map[string]string{efa0 + "p2p": isDir, efa1 + "p2p": "NVIDIA\n"}, yes, "/" + efa1 + "p2p", []string{"read /" + efa0 + "p2p: is a directory"}},

		{"nvidia_peermem on Broadcom, held by nobody", nvidia, "bnxt_re", map[string]string{"sys/module/nvidia_peermem/initstate": "live\n", mm + "nv_mem": isDir}, no, "", nil},
		{"both hold ib_peer_mem", nvidia, "bnxt_re", map[string]string{holders + "nvidia_peermem": isDir, holders + "bnxt_re": isDir}, yes, "/" + holders + "nvidia_peermem", nil},
		{"the client alone holds it", nvidia, "bnxt_re", map[string]string{holders + "nvidia_peermem": isDir}, no, "", nil},
		{"the RDMA driver alone holds it", nvidia, "bnxt_re", map[string]string{holders + "bnxt_re": isDir}, no, "", nil},
		{"another family's driver holds it", nvidia, "bnxt_re", map[string]string{holders + "nvidia_peermem": isDir, holders + "ionic_rdma": isDir}, no, "", nil},
		{"another vendor's client holds it", amd, "bnxt_re", map[string]string{holders + "nvidia_peermem": isDir, holders + "bnxt_re": isDir}, no, "", nil},
		{"amdgpu and the RDMA driver hold it", amd, "bnxt_re", map[string]string{holders + "amdgpu": isDir, holders + "bnxt_re": isDir}, yes, "/" + holders + "amdgpu", nil},
		{"ib_peer_mem without holders", nvidia, "bnxt_re", map[string]string{"sys/module/ib_peer_mem": isDir}, unknown, "", nil},
		{"its holders cannot be read", nvidia, "bnxt_re", map[string]string{"sys/module/ib_peer_mem/holders": "a file"}, unknown, "", []string{"open /sys/module/ib_peer_mem/holders"}},

		{"amdkfd on ConnectX", amd, "mlx5", map[string]string{mm + "amdkfd": isDir}, yes, "/" + mm + "amdkfd", nil},
		{"amdkfd on EFA, in another place", amd, "efa", map[string]string{"sys/memory_peers/amdkfd": isDir}, yes, "/sys/memory_peers/amdkfd", nil},
		{"amdkfd, the GPUs are NVIDIA's", nvidia, "mlx5", map[string]string{mm + "amdkfd": isDir}, no, "", nil},
		{"nvidia_peermem, the GPUs are AMD's", amd, "mlx5", map[string]string{"sys/module/nvidia_peermem/initstate": "live\n", mm + "nv_mem": isDir}, no, "", nil},
		{"amdgpu without a client", amd, "mlx5", map[string]string{"sys/module/amdgpu/initstate": "live\n"}, no, "", nil},
		{"irdma has no way", nvidia, "irdma", map[string]string{"sys/module/nvidia_peermem/initstate": "live\n", mm + "nv_mem": isDir}, no, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := scan(t, tt.files, Request{
				Present:   present(tt.gpus, []string{tt.nic}),
				PeerFiles: map[string][]pci.Address{"efa": {{Bus: 0x10, Device: 0x1b}, {Bus: 0x20, Device: 0x1b}}},
			})
			got, first := st.Peermem[Pair{tt.gpus[0], tt.nic}], st.AnyPeermem()
			if got.Registered != tt.want || got.By != tt.by || len(st.Peermem) != 1 || first.Registered != tt.want || first.By != tt.by {
				t.Errorf("%+v, want %v by %q", st.Peermem, tt.want, tt.by)
			}
			wantProblems(t, st.Problems, tt.problems...)
		})
	}
}

// A client that is registered proves where the function is that registers it: in the RDMA
// core, or in a module of the NICs' vendor. A file in which a driver names a provider does not.
func TestPeerDirectProven(t *testing.T) {
	const holders = "sys/module/ib_peer_mem/holders/"
	held := map[string]string{holders + "nvidia_peermem": isDir, holders + "bnxt_re": isDir}
	for _, tt := range []struct {
		name, nic string
		files     map[string]string
		memory    tristate.State
		want      PeerDirect
	}{
		{"in the core", "mlx5", nil, yes, PeerDirectCurrent},
		{"held by a vendor's module, mlx5 has no client", "mlx5", held, no, PeerDirectNone},
		{"held by a vendor's module", "bnxt_re", held, yes, PeerDirectNone},
		{"what holds a vendor's module cannot be read", "mlx5", map[string]string{"sys/module/ib_peer_mem/holders": "a file"}, unknown, ""},
		{"named in a file", "efa", nil, yes, ""},
	} {
		files := map[string]string{
			"sys/module/mlx_compat":                isDir,
			"sys/module/mlx5_core/version":         "24.10-1.1.4\n",
			"sys/module/nvidia_peermem/initstate":  "live\n",
			"sys/bus/pci/devices/0000:10:1b.0/p2p": "NVIDIA\n",
			kallsyms:                               "garbage\n",
		}
		maps.Copy(files, tt.files)
		if tt.memory == no {
			files[kallsyms] = "0000000000000000 T ib_register_peer_memory_client\t[ib_peer_mem]\n"
		}
		st := scan(t, files, Request{
			Families: family.Known(), Present: present([]string{"nvidia"}, []string{tt.nic}),
			PeerFiles: map[string][]pci.Address{"efa": {{Bus: 0x10, Device: 0x1b}}},
		})
		if got := st.Stack.PeerDirect; st.AnyPeermem().Registered != tt.memory || got != tt.want {
			t.Errorf("%s: %v, %q; want %v, %q", tt.name, st.AnyPeermem().Registered, got, tt.memory, tt.want)
		}
	}
}

// TestBoundFunctions: only functions that their own driver drives are asked, and only GPUs
// that are there ask for options of the kernel.
func TestBoundFunctions(t *testing.T) {
	functions := pci.Inventory{Functions: []pci.Function{
		{Address: pci.Address{Bus: 1}, Vendor: 0x1d0f, Device: 0xefa1, Class: 0x020000, Driver: "efa", DriverKnown: true},
		{Address: pci.Address{Bus: 2}, Vendor: 0x1d0f, Device: 0xefa1, Class: 0x020000, Driver: "vfio-pci", DriverKnown: true},
		{Address: pci.Address{Bus: 3}, Vendor: 0x15b3, Device: 0x1021, Class: 0x020000, Driver: "mlx5_core", DriverKnown: true},
		{Address: pci.Address{Bus: 4}, Vendor: 0x1002, Device: 0x744c, Class: 0x030000, Driver: "amdgpu", DriverKnown: true}, // a Radeon
		{Address: pci.Address{Bus: 5}, Vendor: 0x10de, Device: 0x2330, Class: 0x030200, Driver: "nvidia", DriverKnown: true},
	}}
	table := present([]string{"nvidia", "amd"}, []string{"mlx5", "efa"})
	classify := func() Request {
		for i := range functions.Functions {
			functions.Functions[i].Classify(table)
		}
		return For(&functions, table)
	}
	if got := classify(); len(got.PeerFiles) != 1 || len(got.PeerFiles["efa"]) != 1 || got.PeerFiles["efa"][0].Bus != 1 || len(got.KernelOptions) != 0 {
		t.Errorf("%+v", got)
	}
	functions.Functions[3].Device, functions.Functions[3].Class = 0x74a1, 0x120000
	var names []string
	for _, o := range classify().KernelOptions {
		names = append(names, o.Name)
	}
	if got := strings.Join(names, " "); got != "PCI_P2PDMA DMABUF_MOVE_NOTIFY" {
		t.Errorf("options %q", got)
	}
}

const (
	yes     = tristate.True
	no      = tristate.False
	unknown = tristate.Unknown
)

// TestNamedPeer: what a function says is kept, also where it proves nothing, and the state of
// the client's module where it may serve the NICs.
func TestNamedPeer(t *testing.T) {
	const efa = "sys/bus/pci/devices/0000:10:1b.0/"
	at := map[string][]pci.Address{"efa": {{Bus: 0x10, Device: 0x1b}}}
	for text, says := range map[string]string{"\n": "", "NEURON\n": "NEURON", "NVIDIA\n": "NVIDIA"} {
		st := scan(t, map[string]string{efa + "p2p": text}, Request{Present: present([]string{"nvidia"}, []string{"efa"}), PeerFiles: at})
		if p := st.Peermem[Pair{"nvidia", "efa"}]; p.File != "/"+efa+"p2p" || p.Says != says {
			t.Errorf("%q: %+v", text, p)
		}
	}
	st := scan(t, nil, Request{Present: present([]string{"nvidia"}, []string{"efa"}), PeerFiles: at})
	if p := st.Peermem[Pair{"nvidia", "efa"}]; p.File != "" || len(st.Clients) != 0 {
		t.Errorf("without a file: %+v, clients %v", p, st.Clients)
	}
	live := map[string]string{"sys/module/nvidia_peermem/initstate": "live\n"}
	for nic, want := range map[string]Init{"mlx5": Live, "bnxt_re": Live, "efa": Unread} {
		if st := scan(t, live, Request{Present: present([]string{"nvidia"}, []string{nic})}); st.Clients["nvidia"] != want {
			t.Errorf("%s: %q, want %q", nic, st.Clients["nvidia"], want)
		}
	}
}
