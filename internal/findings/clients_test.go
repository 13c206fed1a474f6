package findings_test

import (
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/internal/findings"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/test/sample"
	"gdr-features/tristate"
)

// TestUnlistedClient: amdgpu may be registered with a stack that lists no clients only where it and
// the stack have what that needs. What cannot be read is said to be that.
func TestUnlistedClient(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		listing, api, symbol tristate.State
		status               finding.Status
		code                 finding.Code
	}{
		{"all there", no, yes, yes, finding.StatusUnknown, "MemoryPeersMissing"},
		{"whether it lists them is unknown", unknown, yes, yes, finding.StatusUnknown, "Unreadable"},
		{"the interface is unknown", no, unknown, yes, finding.StatusUnknown, "Unreadable"},
		{"the driver's function is unknown", no, yes, unknown, finding.StatusUnknown, "Unreadable"},
		{"others are listed", yes, yes, yes, finding.StatusFail, "PeermemNotLoaded"},
		{"no interface", no, no, yes, finding.StatusFail, "NoPeerMemoryPath"},
		{"no function", no, yes, no, finding.StatusFail, "PeermemNotLoaded"},
	} {
		n := sample.Ready()
		n.PCI.Functions[sample.GPU] = sample.Function(0x10, 0x1002, 0x74a1, 0x120000, "amdgpu")
		n.Kmod.Drivers = map[string]kmod.Driver{"amd": {Loaded: yes, Open: no}}
		n.Kmod.KernelOptions = map[string]tristate.State{"PCI_P2PDMA": no, "DMABUF_MOVE_NOTIFY": no}
		n.Kmod.Peers = sample.Peers(no)
		for _, dir := range kmod.PeerDirs() {
			n.Kmod.Peers.Directories[dir+"/amdkfd"] = no
		}
		n.Kmod.Peers.Listing = tt.listing
		n.Kmod.Symbols[kmod.PeerMemoryAPI], n.Kmod.Symbols["kfd_init_peer_direct"] = kmod.Symbol{Found: tt.api}, kmod.Symbol{Found: tt.symbol}
		if f := findingOf(t, n, "peermem"); f.Status != tt.status || f.Code != tt.code {
			t.Errorf("%s: %v %s: %s; want %v %s", tt.name, f.Status, f.Code, f.Detail, tt.status, tt.code)
		}
	}
}

// TestHardwareAlone: where no GPU can do it or none is judged, nothing else is checked.
func TestHardwareAlone(t *testing.T) {
	unread := pci.Function{Address: sample.At(0x50), Eligible: pci.IDsUnread}
	for name, tt := range map[string]struct {
		change func(*sample.Node)
		alone  bool
	}{
		"ready":                     {func(*sample.Node) {}, false},
		"a port is down":            {func(n *sample.Node) { n.Port().State = "DOWN" }, false},
		"no GPU":                    {func(n *sample.Node) { n.Drop(sample.GPU) }, true},
		"no GPU that could be read": {func(n *sample.Node) { n.PCI.Functions[sample.GPU] = unread }, true},
		"no NIC that could be read": {func(n *sample.Node) { n.PCI.Functions[sample.NIC] = unread }, false},
		"a GeForce":                 {func(n *sample.Node) { n.GPU().Device = 0x2684 }, true},
		"a NIC that is not judged":  {func(n *sample.Node) { n.NIC().Vendor, n.NIC().Device, n.NIC().Class = 0x1fff, 0x0001, 0x020000 }, true},
	} {
		n := sample.Ready()
		tt.change(n)
		_, list := judge(n)
		others := slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Check != "hardware" })
		if got := findings.HardwareAlone(&n.Node); got != tt.alone || others == tt.alone {
			t.Errorf("%s: hardware alone %v, other checks %v", name, got, others)
		}
	}
}

// TestServedBy: the finding says with what the client is registered.
func TestServedBy(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*sample.Node)
		want   string
	}{
		{"the RDMA core", func(*sample.Node) {}, "nvidia_peermem is registered with the RDMA stack"},
		{"a directory", func(n *sample.Node) {
			n.Kmod.Peers = sample.Peers(no)
			n.Kmod.Peers.Directories["/sys/kernel/mm/memory_peers/nv_mem"] = yes
		}, "/sys/kernel/mm/memory_peers/nv_mem is registered with the RDMA stack"},
		{"a directory beside the module of Broadcom", func(n *sample.Node) {
			broadcom(n)
			n.PCI.Functions[sample.GPU] = sample.Function(0x10, 0x1002, 0x74a1, 0x120000, "amdgpu")
			n.Kmod.Drivers = map[string]kmod.Driver{"amd": {Loaded: yes, Open: no}}
			n.Kmod.Peers = sample.Peers(no)
			n.Kmod.Peers.Holders["ib_peer_mem"] = kmod.Holders{Listed: yes, Module: yes, Names: []string{"bnxt_re"}}
			n.Kmod.Peers.Directories["/sys/kernel/mm/memory_peers/amdkfd"] = yes
		}, "/sys/kernel/mm/memory_peers/amdkfd is registered with the RDMA stack"},
		{"the module of Broadcom", func(n *sample.Node) {
			broadcom(n)
			n.Kmod.Peers.Holders["ib_peer_mem"] = kmod.Holders{Listed: yes, Module: yes, Names: []string{"nvidia_peermem", "bnxt_re"}}
		}, "nvidia_peermem is registered with ib_peer_mem"},
	} {
		n := sample.Ready()
		tt.change(n)
		if f := findingOf(t, n, "peermem"); f.Status != finding.StatusOK || !strings.HasPrefix(f.Detail, tt.want) {
			t.Errorf("%s: %v %q, want %q", tt.name, f.Status, f.Detail, tt.want)
		}
	}
}

// broadcom makes the NIC one of Broadcom, with its driver.
func broadcom(n *sample.Node) {
	n.PCI.Functions[sample.NIC] = sample.Function(0x20, 0x14e4, 0x1760, 0x020000, "bnxt_en")
	n.RDMA.Devices[0].Name, n.Port().LinkLayer = "bnxt_re0", "Ethernet"
}

// TestClientEvidence: what is cited is what was read, of a module that is there and one that is not.
func TestClientEvidence(t *testing.T) {
	const dep, version = "/lib/modules/6.8.0/modules.dep", "/sys/module/nvidia_peermem/version"
	cited := func(n *sample.Node) string { return strings.Join(findingOf(t, n, "peermem").Evidence, "\n") }
	notLoaded := func(listed tristate.State) *sample.Node {
		n := sample.Ready()
		n.Kmod.Peers, n.Kmod.Drivers = sample.Peers(no), sample.Driver(yes, no)
		n.Kmod.Advice = kmod.NoAdvice()
		n.Kmod.Advice.File = kmod.ModuleFile{Dep: []string{dep}, Listed: listed, Name: "nvidia-peermem.ko", Needs: []string{"nvidia", "ib_uverbs"}}
		return n
	}
	for listed, want := range map[tristate.State]string{yes: "nvidia-peermem.ko needs nvidia ib_uverbs", no: "no nvidia-peermem", unknown: "no nvidia-peermem"} {
		if got := cited(notLoaded(listed)); !strings.Contains(got, dep) || !strings.Contains(got, want) {
			t.Errorf("listed %v: %q, want %q", listed, got, want)
		}
	}
	for state, want := range map[kmod.Init]bool{kmod.Live: true, kmod.Absent: false} {
		n := sample.Ready()
		n.Kmod.Drivers = sample.Driver(yes, no) // DMA-BUF cannot replace the client
		n.Kmod.Peers.Modules["nvidia_peermem"] = state
		n.Kmod.Peers.Directories["/sys/memory_peers/nv_mem"] = yes
		n.Kmod.Advice = kmod.NoAdvice()
		n.Kmod.Advice.NCCLClient, n.Kmod.Advice.Peermem.Version = no, no
		f := findingOf(t, n, "peermem")
		if got := strings.Contains(strings.Join(f.Evidence, "\n"), version); f.Code != "MemoryPeersMissing" || got != want {
			t.Errorf("nvidia_peermem %v: %s cites %q", state, f.Code, f.Evidence)
		}
	}
}

// TestUnmappedPairs: the finding names GPUs that share memory with their CPU, and the first NIC of the
// judged family with an RDMA device, and no others.
func TestUnmappedPairs(t *testing.T) {
	n := sample.Ready()
	nic := sample.At(0x21)
	n.PCI.Functions = []pci.Function{
		sample.Function(0x10, 0x10de, 0x2941, 0x030200, "nvidia"),
		sample.Function(0x11, 0x10de, 0x2330, 0x030200, ""), // has memory of its own
		sample.Function(0x18, 0x15b3, 0x1021, 0x020700, ""), // of another family
		sample.Function(0x20, 0x1d0f, 0xefa2, 0x020000, "efa"),
		sample.Function(0x21, 0x1d0f, 0xefa2, 0x020000, "efa"),
	}
	n.PCI.Functions[0].IOMMUGroup, n.PCI.Functions[4].IOMMUGroup = 1, 2
	n.RDMA.Devices[0].Name, n.RDMA.Devices[0].PCI, n.Port().LinkLayer = "rdmap33s0", &nic, "Unspecified"
	n.Platform.DMI.Vendor.Missing, n.Platform.DMI.Product.Missing = true, true
	n.Kmod.Peers = sample.Peers(no)
	n.Kmod.Drivers["nvidia"] = kmod.Driver{Loaded: yes, Open: yes, Version: "595.45.04"}
	n.Kmod.Params, n.Kmod.Symbols["efa_reg_user_mr_dmabuf"] = kmod.Params{}, kmod.Symbol{Found: yes}
	f := findingOf(t, n, "dmabuf")
	if f.Code != "DriverRefusesPlace" || !strings.Contains(f.Detail, "0000:10:00.0") || !strings.Contains(f.Detail, "0000:21:00.0") {
		t.Fatalf("%v %s: %s", f.Status, f.Code, f.Detail)
	}
	for _, other := range []string{"0000:11:00.0", "0000:18:00.0", "0000:20:00.0"} {
		if strings.Contains(f.Detail, other) {
			t.Errorf("%s is named: %s", other, f.Detail)
		}
	}
}
