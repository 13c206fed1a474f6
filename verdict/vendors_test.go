package verdict_test

import (
	"testing"

	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/test/sample"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// instinct adds a GPU of AMD beside the first one, bound to a driver.
func instinct(n *sample.Node, driver string) {
	n.PCI.Functions = append(n.PCI.Functions, sample.Function(0x30, 0x1002, 0x74a1, 0x120000, driver))
}

// TestTwoVendors: a node is ready where one family of GPUs with one of NICs is.
func TestTwoVendors(t *testing.T) {
	altra := func(n *sample.Node) { addAltra(n); n.NIC().Bridges, n.Platform.Virtual = nil, no }
	amdkfd := func(n *sample.Node) {
		n.Kmod.Peers = sample.Peers(no)
		n.Kmod.Peers.Directories["/sys/memory_peers/amdkfd"] = yes
	}
	for _, tc := range []struct {
		name   string
		change func(*sample.Node)
		gpu    string
		ready  tristate.State
		reason verdict.Reason
	}{
		{"NVIDIA's is ready, AMD's is passed through", func(n *sample.Node) { instinct(n, "vfio-pci") }, "nvidia", yes, ""},
		{"NVIDIA's is ready, AMD's has no driver", func(n *sample.Node) { instinct(n, "") }, "nvidia", yes, ""},
		{"AMD's is ready, NVIDIA's is passed through", func(n *sample.Node) { instinct(n, "amdgpu"); n.GPU().Driver = "vfio-pci"; amdkfd(n) }, "amd", yes, ""},
		{"both are passed through", func(n *sample.Node) { instinct(n, "vfio-pci"); n.GPU().Driver = "vfio-pci" }, "nvidia", no, verdict.GPUPassthrough},
		{"one is passed through, the other has no driver", func(n *sample.Node) { instinct(n, ""); n.GPU().Driver = "vfio-pci" }, "amd", no, verdict.GPUDriverNotLoaded},
		{"NVIDIA's client is none of AMD's", func(n *sample.Node) { instinct(n, "amdgpu"); n.GPU().Driver = "" }, "amd", no, verdict.PeermemNotLoaded},
		{"the CPU forbids NVIDIA's pair, AMD's is passed through", func(n *sample.Node) { instinct(n, "vfio-pci"); altra(n) }, "amd", no, verdict.GPUPassthrough},
		{"the CPU forbids NVIDIA's pair, AMD's is ready", func(n *sample.Node) { instinct(n, "amdgpu"); altra(n); amdkfd(n) }, "amd", yes, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := sample.Ready()
			n.Kmod.Symbols["kfd_init_peer_direct"] = kmod.Symbol{Found: no}
			for _, dir := range kmod.PeerDirs() {
				n.Kmod.Peers.Directories[dir+"/amdkfd"] = no
			}
			n.Kmod.Drivers["amd"] = kmod.Driver{Loaded: yes, Open: no}
			n.Kmod.KernelOptions = map[string]tristate.State{"PCI_P2PDMA": no, "DMABUF_MOVE_NOTIFY": no}
			tc.change(n)
			v := n.Judge().Verdict
			if v.Capable != yes || v.Ready != tc.ready || v.Reason != tc.reason || v.GPU.Name != tc.gpu {
				t.Errorf("capable %v, ready %v, %q, by %s; want %v, %q, by %s", v.Capable, v.Ready, v.Reason, v.GPU.Name, tc.ready, tc.reason, tc.gpu)
			}
		})
	}
}

// TestUnidentifiedNIC: a function that may be a NIC leaves link layer and IOMMU open.
func TestUnidentifiedNIC(t *testing.T) {
	n := sample.Ready()
	n.Platform.IOMMU.Groups = no
	if v := n.Judge().Verdict; v.Link != "infiniband" || v.IOMMU == "" {
		t.Fatalf("link %q, IOMMU %q", v.Link, v.IOMMU)
	}
	n.AddNIC()
	other := &n.PCI.Functions[len(n.PCI.Functions)-1]
	other.Vendor, other.Device, other.Class, other.Eligible = 0, 0, 0, pci.IDsUnread
	if v := n.Judge().Verdict; v.Link != "" || !v.Undecided.Link || v.IOMMU != "" || !v.Undecided.IOMMU {
		t.Errorf("link %q, open %v; IOMMU %q, open %v", v.Link, v.Undecided.Link, v.IOMMU, v.Undecided.IOMMU)
	}
}

// TestPeerToPeer: amdgpu exports DMA-BUF to a NIC where the kernel lets the two reach each other.
func TestPeerToPeer(t *testing.T) {
	intel, zen := platform.CPU{Arch: "x86_64", Vendor: "GenuineIntel", Family: 6, Model: 143}, platform.CPU{Arch: "x86_64", Vendor: "AuthenticAMD", Family: 0x19}
	for _, tc := range []struct {
		name   string
		cpu    platform.CPU
		apart  bool
		dmabuf tristate.State
	}{
		{"below one switch", intel, false, yes},
		{"Intel, below two root ports", intel, true, unknown},
		{"a CPU that cannot be read", platform.CPU{}, true, unknown},
		{"AMD before Zen", platform.CPU{Vendor: "AuthenticAMD", Family: 0x15}, true, unknown},
		{"the last before Zen", platform.CPU{Vendor: "AuthenticAMD", Family: 0x16}, true, unknown},
		{"the first Zen", platform.CPU{Vendor: "AuthenticAMD", Family: 0x17}, true, yes},
		{"Zen", zen, true, yes},
		{"the same number of another vendor", platform.CPU{Vendor: "GenuineIntel", Family: 0x19}, true, unknown},
	} {
		n := sample.Ready()
		n.GPU().Driver = "vfio-pci"
		instinct(n, "amdgpu")
		gpu := &n.PCI.Functions[len(n.PCI.Functions)-1]
		gpu.RootBus, gpu.Bridges = n.NIC().RootBus, n.NIC().Bridges
		if tc.apart {
			gpu.Bridges = nil
		}
		n.Kmod.Drivers["amd"] = kmod.Driver{Loaded: yes, Open: no}
		n.Kmod.KernelOptions = map[string]tristate.State{"PCI_P2PDMA": yes, "DMABUF_MOVE_NOTIFY": yes}
		for _, dir := range kmod.PeerDirs() {
			n.Kmod.Peers.Directories[dir+"/amdkfd"] = no
		}
		n.Platform.CPU = tc.cpu
		if v := n.Judge().Verdict; v.GPU.Name != "amd" || v.DMABuf != tc.dmabuf {
			t.Errorf("%s: DMA-BUF of %s is %v, want %v", tc.name, v.GPU.Name, v.DMABuf, tc.dmabuf)
		}
	}
}
