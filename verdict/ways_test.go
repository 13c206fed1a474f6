package verdict_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/test/sample"
	"gdr-features/test/trees"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// TestEvidence: what proves a peer memory client for one pair of families proves nothing
// for another.
func TestEvidence(t *testing.T) {
	const (
		mm      = "sys/kernel/mm/memory_peers/"
		holders = "sys/module/ib_peer_mem/holders/"
		efa0    = "sys/bus/pci/devices/0000:10:1b.0/"
		efa1    = "sys/bus/pci/devices/0000:20:1b.0/"

		peerAPI   = "ib_register_peer_memory_client\t[ib_uverbs]"
		kfdClient = "kfd_init_peer_direct\t[amdgpu]"
	)
	amdgpuHas := func(symbols ...string) map[string]string {
		const line = "0000000000000000 T "
		table := line + strings.Join(append([]string{"vfs_read"}, symbols...), "\n"+line) + "\n"
		return map[string]string{"sys/module/amdgpu/initstate": "live\n", "proc/kallsyms": table}
	}
	listsOthers := amdgpuHas(peerAPI, kfdClient)
	listsOthers[mm+"other"] = trees.Dir
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
		{"nvidia_peermem on EFA", nvidia, "efa", map[string]string{"sys/module/nvidia_peermem/initstate": "live\n", mm + "nv_mem": trees.Dir}, no, "", nil},
		{"EFA names NVIDIA", nvidia, "efa", map[string]string{efa0 + "p2p": "NVIDIA\n"}, yes, "/" + efa0 + "p2p", nil},
		{"EFA names NVIDIA peermem", nvidia, "efa", map[string]string{efa0 + "p2p": "\n", efa1 + "p2p": "NVIDIA peermem\n"}, yes, "/" + efa1 + "p2p", nil},
		{"EFA names nobody", nvidia, "efa", map[string]string{efa0 + "p2p": "\n", efa0 + "gdr": "1\n"}, no, "", nil},
		{"EFA names Neuron", nvidia, "efa", map[string]string{efa0 + "p2p": "NEURON\n"}, no, "", nil},
		{"EFA names NVIDIA, the GPUs are AMD's", amd, "efa", map[string]string{efa0 + "p2p": "NVIDIA\n"}, no, "", nil},
		{"EFA's older file", nvidia, "efa", map[string]string{efa0 + "gdr": "1\n"}, yes, "/" + efa0 + "gdr", nil},
		{"EFA's older file says no", nvidia, "efa", map[string]string{efa0 + "gdr": "0\n"}, no, "", nil},
		{"the kernel's own EFA driver", nvidia, "efa", nil, no, "", nil},
		{"EFA cannot be read", nvidia, "efa", map[string]string{efa0 + "p2p": trees.Dir}, unknown, "", []string{"read /" + efa0 + "p2p: is a directory"}},
		{"one EFA cannot be read, another names NVIDIA", nvidia, "efa", map[string]string{efa0 + "p2p": trees.Dir, efa1 + "p2p": "NVIDIA\n"}, yes, "/" + efa1 + "p2p", []string{"read /" + efa0 + "p2p: is a directory"}},

		{"nvidia_peermem on Broadcom, held by nobody", nvidia, "bnxt_re", map[string]string{"sys/module/nvidia_peermem/initstate": "live\n", mm + "nv_mem": trees.Dir}, no, "", nil},
		{"both hold ib_peer_mem", nvidia, "bnxt_re", map[string]string{holders + "nvidia_peermem": trees.Dir, holders + "bnxt_re": trees.Dir}, yes, "/" + holders + "nvidia_peermem", nil},
		{"the client alone holds it", nvidia, "bnxt_re", map[string]string{holders + "nvidia_peermem": trees.Dir}, no, "", nil},
		{"the RDMA driver alone holds it", nvidia, "bnxt_re", map[string]string{holders + "bnxt_re": trees.Dir}, no, "", nil},
		{"another family's driver holds it", nvidia, "bnxt_re", map[string]string{holders + "nvidia_peermem": trees.Dir, holders + "ionic_rdma": trees.Dir}, no, "", nil},
		{"another vendor's client holds it", amd, "bnxt_re", map[string]string{holders + "nvidia_peermem": trees.Dir, holders + "bnxt_re": trees.Dir}, no, "", nil},
		{"amdgpu and the RDMA driver hold it", amd, "bnxt_re", map[string]string{holders + "amdgpu": trees.Dir, holders + "bnxt_re": trees.Dir}, yes, "/" + holders + "amdgpu", nil},
		{"ib_peer_mem without holders", nvidia, "bnxt_re", map[string]string{"sys/module/ib_peer_mem": trees.Dir}, unknown, "", nil},
		{"its holders cannot be read", nvidia, "bnxt_re", map[string]string{"sys/module/ib_peer_mem/holders": "a file"}, unknown, "", []string{"open /sys/module/ib_peer_mem/holders"}},

		{"amdkfd on ConnectX", amd, "mlx5", map[string]string{mm + "amdkfd": trees.Dir}, yes, "/" + mm + "amdkfd", nil},
		{"amdkfd on EFA, in another place", amd, "efa", map[string]string{"sys/memory_peers/amdkfd": trees.Dir}, yes, "/sys/memory_peers/amdkfd", nil},
		{"amdkfd, the GPUs are NVIDIA's", nvidia, "mlx5", map[string]string{mm + "amdkfd": trees.Dir}, no, "", nil},
		{"nvidia_peermem, the GPUs are AMD's", amd, "mlx5", map[string]string{"sys/module/nvidia_peermem/initstate": "live\n", mm + "nv_mem": trees.Dir}, no, "", nil},
		{"amdgpu without a client", amd, "mlx5", amdgpuHas(peerAPI), no, "", nil},
		{"amdgpu, and no interface", amd, "mlx5", amdgpuHas(kfdClient), no, "", nil},
		// ROCm/rccl#1377, ROCm/rccl PR#1328: it works, and nothing shows it.
		{"amdgpu with a client, and a stack that lists none", amd, "mlx5", amdgpuHas(peerAPI, kfdClient), unknown, "", nil},
		{"the same, and symbols that cannot be read", amd, "mlx5", map[string]string{
			"sys/module/amdgpu/initstate": "live\n", "proc/kallsyms": trees.Dir,
		}, unknown, "", []string{"/proc/kallsyms: read /proc/kallsyms: is a directory"}},
		{"the same, and a stack that lists others", amd, "mlx5", listsOthers, no, "", nil},
		{"the same without amdgpu", amd, "mlx5", map[string]string{"proc/kallsyms": amdgpuHas(peerAPI, kfdClient)["proc/kallsyms"]}, no, "", nil},
		{"a family without a way", nvidia, "example", map[string]string{"sys/module/nvidia_peermem/initstate": "live\n", mm + "nv_mem": trees.Dir}, no, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := scan(t, tt.files, append(tt.gpus, tt.nic)...)
			got := pair(st, tt.gpus[0], tt.nic)
			if got.Registered != tt.want || got.By != tt.by {
				t.Errorf("%+v, want %v by %q", got, tt.want, tt.by)
			}
			wantProblems(t, st.Problems, tt.problems...)
		})
	}
}

// A client that is registered proves where the function is that registers it: in the RDMA
// core, or in a module of the NICs' vendor. A file in which a driver names a provider does not.
func TestPeerDirectProven(t *testing.T) {
	const holders = "sys/module/ib_peer_mem/holders/"
	held := map[string]string{holders + "nvidia_peermem": trees.Dir, holders + "bnxt_re": trees.Dir}
	for _, tt := range []struct {
		name, nic string
		files     map[string]string
		memory    tristate.State
		want      verdict.PeerDirect
	}{
		{"in the core", "mlx5", nil, yes, verdict.PeerDirectCurrent},
		{"held by a vendor's module, mlx5 has no client", "mlx5", held, no, verdict.PeerDirectNone},
		{"held by a vendor's module", "bnxt_re", held, yes, verdict.PeerDirectNone},
		{"what holds a vendor's module cannot be read", "mlx5", map[string]string{"sys/module/ib_peer_mem/holders": "a file"}, unknown, ""},
		{"named in a file", "efa", nil, yes, ""},
	} {
		files := map[string]string{
			"sys/module/mlx_compat":                trees.Dir,
			"sys/module/mlx5_core/version":         "24.10-1.1.4\n",
			"sys/module/nvidia_peermem/initstate":  "live\n",
			"sys/bus/pci/devices/0000:10:1b.0/p2p": "NVIDIA\n",
			"proc/kallsyms":                        "garbage\n",
		}
		maps.Copy(files, tt.files)
		if tt.memory == no {
			files["proc/kallsyms"] = "0000000000000000 T ib_register_peer_memory_client\t[ib_peer_mem]\n"
		}
		st := scan(t, files, "nvidia", tt.nic)
		memory := pair(st, "nvidia", tt.nic).Registered
		if got := verdict.PeerDirectOf(&st, present([]string{"nvidia"}, []string{tt.nic}), family.Known()); memory != tt.memory || got != tt.want {
			t.Errorf("%s: %v, %q; want %v, %q", tt.name, memory, got, tt.memory, tt.want)
		}
	}
}

// TestNamedPeer: what a function says is kept, also where it proves nothing, and the state of
// the client's module where it may serve the NICs.
func TestNamedPeer(t *testing.T) {
	const efa = "sys/bus/pci/devices/0000:10:1b.0/"
	for text, says := range map[string]string{"\n": "", "NEURON\n": "NEURON", "NVIDIA\n": "NVIDIA"} {
		st := scan(t, map[string]string{efa + "p2p": text}, "nvidia", "efa")
		if p := pair(st, "nvidia", "efa"); p.File != "/"+efa+"p2p" || p.Says != says {
			t.Errorf("%q: %+v", text, p)
		}
	}
	st := scan(t, nil, "nvidia", "efa")
	if p := pair(st, "nvidia", "efa"); p.File != "" {
		t.Errorf("without a file: %+v", p)
	}
}

// A client registered with the RDMA stack shows in many ways, none of which
// disproves the others.
func TestScanPeermem(t *testing.T) {
	const (
		module, old = "sys/module/nvidia_peermem/initstate", "sys/module/nv_peer_mem/initstate"
		mm          = "sys/kernel/mm/memory_peers/"
	)
	tests := []struct {
		name     string
		files    map[string]string
		want     tristate.State
		by       string
		problems []string
	}{
		{"nothing", nil, tristate.False, "", nil},
		{"nvidia_peermem", map[string]string{module: "live\n"}, tristate.True, "nvidia_peermem", nil},
		{"nv_peer_mem", map[string]string{old: "live\n"}, tristate.True, "nv_peer_mem", nil},
		{"both", map[string]string{module: "live\n", old: "live\n"}, tristate.True, "nvidia_peermem", nil},
		{"one comes, the other is there", map[string]string{module: "coming\n", old: "live\n"}, tristate.True, "nv_peer_mem", nil},
		{"both come or go", map[string]string{module: "coming\n", old: "going\n"}, tristate.False, "", nil},
		{"the client nv_mem", map[string]string{mm + "nv_mem/version": "550.54.14\n"}, tristate.True, "/sys/kernel/mm/memory_peers/nv_mem", nil},
		{"the client nv_mem_nc", map[string]string{mm + "nv_mem_nc/version": "550.54.14\n"}, tristate.True, "/sys/kernel/mm/memory_peers/nv_mem_nc", nil},
		{"in the second place", map[string]string{"sys/kernel/memory_peers/nv_mem": trees.Dir}, tristate.True, "/sys/kernel/memory_peers/nv_mem", nil},
		{"in the third place", map[string]string{"sys/memory_peers/nv_mem_nc": trees.Dir}, tristate.True, "/sys/memory_peers/nv_mem_nc", nil},
		{"a client of another vendor", map[string]string{mm + "amd_mem/version": "1\n"}, tristate.False, "", nil},
		{"no modules to see", map[string]string{"sys/module/kernel": trees.Absent}, tristate.Unknown, "", []string{"open /sys/module: no such file"}},
		{
			"no modules to see, and a client",
			map[string]string{"sys/module/kernel": trees.Absent, mm + "nv_mem": trees.Dir},
			tristate.True, "/sys/kernel/mm/memory_peers/nv_mem",
			[]string{"open /sys/module: no such file"},
		},
		{
			"clients that cannot be looked at",
			map[string]string{"sys/kernel/mm/memory_peers": "a file"},
			tristate.Unknown, "",
			[]string{"stat /" + mm + "nv_mem: not a directory", "stat /" + mm + "nv_mem_nc: not a directory"},
		},
		{
			"clients that cannot be looked at, and one in the next place",
			map[string]string{"sys/kernel/mm/memory_peers": "a file", "sys/kernel/memory_peers/nv_mem": trees.Dir},
			tristate.True, "/sys/kernel/memory_peers/nv_mem",
			[]string{"stat /" + mm + "nv_mem: not a directory", "stat /" + mm + "nv_mem_nc: not a directory"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := scan(t, tt.files, "nvidia", "mlx5", "mlx4")
			mlx5, mlx4 := pair(st, "nvidia", "mlx5"), pair(st, "nvidia", "mlx4")
			for _, got := range []verdict.Client{mlx5, mlx4} {
				if got.Registered != tt.want || got.By != tt.by || got.File != "" {
					t.Errorf("%+v, want %v by %q", got, tt.want, tt.by)
				}
			}
			wantProblems(t, st.Problems, tt.problems...)
		})
	}
}

func TestPeerDirect(t *testing.T) {
	origin := func(o kmod.Origin) kmod.MOFED { return kmod.MOFED{Origin: o} }
	tests := []struct {
		mofed kmod.MOFED
		want  verdict.PeerDirect // where the symbol is there
	}{
		{kmod.MOFED{Origin: kmod.OriginMOFED, Version: "24.10-1.1.4"}, verdict.PeerDirectCurrent},
		{kmod.MOFED{Origin: kmod.OriginMOFED, Version: "10.0-1.1.4"}, verdict.PeerDirectCurrent},
		{kmod.MOFED{Origin: kmod.OriginMOFED, Version: "6.0-1.1.4"}, verdict.PeerDirectCurrent},
		{kmod.MOFED{Origin: kmod.OriginMOFED, Version: "5.8-1.1.2"}, verdict.PeerDirectCurrent},
		{kmod.MOFED{Origin: kmod.OriginMOFED, Version: "5.1-0.6.6"}, verdict.PeerDirectCurrent},
		{kmod.MOFED{Origin: kmod.OriginMOFED, Version: "5.0-2.1.8"}, verdict.PeerDirectLegacy},
		{kmod.MOFED{Origin: kmod.OriginMOFED, Version: "4.9-4.0.8"}, verdict.PeerDirectLegacy},
		{kmod.MOFED{Origin: kmod.OriginMOFED, Version: "4.1-1.0.2"}, verdict.PeerDirectLegacy},
		{origin(kmod.OriginMOFED), ""},
		{origin(kmod.OriginInbox), verdict.PeerDirectInbox},
		{origin(kmod.OriginUnknown), ""},
		{origin(kmod.OriginNotLoaded), ""},
	}
	for _, tt := range tests {
		for symbol, want := range map[tristate.State]verdict.PeerDirect{tristate.True: tt.want, tristate.False: verdict.PeerDirectNone, tristate.Unknown: ""} {
			if got := level(tt.mofed, symbol); got != want {
				t.Errorf("%+v, symbol %v: %q, want %q", tt.mofed, symbol, got, want)
			}
		}
	}
}

// A registered client proves the API where the table of symbols is not read.
func TestScanPeerDirect(t *testing.T) {
	const (
		symbol = "0000000000000000 T ib_register_peer_memory_client\t[ib_uverbs]\n"
		others = "0000000000000000 T vfs_read\n"
	)
	client := map[string]string{"sys/module/nvidia_peermem/initstate": "live\n"}
	tests := []struct {
		name  string
		files map[string]string
		want  verdict.PeerDirect
	}{
		{"the symbol", map[string]string{"proc/kallsyms": symbol}, verdict.PeerDirectCurrent},
		{"no such symbol", map[string]string{"proc/kallsyms": others}, verdict.PeerDirectNone},
		{"no table", map[string]string{"proc/kallsyms": trees.Absent}, ""},
		{"a client, no table", client, verdict.PeerDirectCurrent},
		{"a client, and a table that lacks the symbol", map[string]string{"sys/module/nvidia_peermem/initstate": "live\n", "proc/kallsyms": others}, verdict.PeerDirectCurrent},
		{"a client that goes", map[string]string{"sys/module/nvidia_peermem/initstate": "going\n", "proc/kallsyms": trees.Absent}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{"sys/module/mlx5_core/version": "24.10-1.1.4\n"}
			maps.Copy(files, tt.files)
			st := scan(t, files, "nvidia", "mlx5", "mlx4")
			if got := verdict.PeerDirectOf(&st, present([]string{"nvidia"}, []string{"mlx5", "mlx4"}), family.Known()); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// pair is the client of a pair of families.
func pair(st kmod.State, gpu, nic string) verdict.Client {
	table := present([]string{gpu}, []string{nic})
	return verdict.ClientOf(&st, table.GPUs[0], table.NICs[0], family.Known())
}

// level is the level of a stack where no client proves anything.
func level(mofed kmod.MOFED, symbol tristate.State) verdict.PeerDirect {
	st := kmod.State{MOFED: mofed, Symbols: kmod.Symbols{kmod.PeerMemoryAPI: {Found: symbol}}}
	return verdict.PeerDirectOf(&st, family.Table{}, family.Known())
}

// scan reads a tree of some files of a machine with functions of these families: two of each of
// NICs, whose driver drives them. Unless the files say otherwise there are modules, and symbols
// that do not matter.
func scan(t *testing.T, files map[string]string, families ...string) kmod.State {
	t.Helper()
	table, functions := sample.Families(), pci.Inventory{}
	for _, g := range table.GPUs {
		if slices.Contains(families, g.Name) {
			functions.Functions = append(functions.Functions, pci.Function{GPU: g, Eligible: pci.Counts, DriverKnown: true})
		}
	}
	for _, n := range slices.Concat(table.NICs, table.Others) {
		for _, bus := range [...]uint8{0x10, 0x20} {
			if slices.Contains(families, n.Name) {
				functions.Functions = append(functions.Functions, pci.Function{
					Address: pci.Address{Bus: bus, Device: 0x1b}, NIC: n, Eligible: pci.Counts, Driver: n.Drivers[0], DriverKnown: true,
				})
			}
		}
		if slices.Contains(families, n.Name) && !slices.Contains(table.NICs, n) {
			table.NICs = append(table.NICs, n)
		}
	}
	return kmod.Scan(trees.Tree(t, withKernel(files)), &functions, table, source.What{})
}

func withKernel(files map[string]string) map[string]string {
	all := map[string]string{
		"sys/module/kernel": trees.Dir,
		"proc/kallsyms":     "0000000000000000 T vfs_read\n",
	}
	maps.Copy(all, files)
	return all
}

// wantProblems checks that there are problems with these beginnings, in this
// order, and no others.
func wantProblems(t *testing.T, problems []error, beginnings ...string) {
	t.Helper()
	for i, err := range problems {
		if i >= len(beginnings) || !strings.HasPrefix(err.Error(), beginnings[i]) {
			t.Errorf("problem %d: %v", i, err)
		}
	}
	if len(problems) < len(beginnings) {
		t.Errorf("no problem tells of %q", beginnings[len(problems):])
	}
}

// present is the table of some families alone.
func present(gpus, nics []string) (t family.Table) {
	known := sample.Families()
	for _, g := range known.GPUs {
		if slices.Contains(gpus, g.Name) {
			t.GPUs = append(t.GPUs, g)
		}
	}
	for _, n := range slices.Concat(known.NICs, known.Others) {
		if slices.Contains(nics, n.Name) {
			t.NICs = append(t.NICs, n)
		}
	}
	return t
}
