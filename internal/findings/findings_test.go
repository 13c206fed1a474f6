package findings_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/internal/findings"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/source/verbs"
	"gdr-features/test/sample"
	"gdr-features/test/testsize"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

const (
	yes     = tristate.True
	no      = tristate.False
	unknown = tristate.Unknown
)

func judge(n *sample.Node) (verdict.Verdict, []finding.Finding) {
	node := n.Judge()
	return node.Verdict, findings.All(node, nil)
}

func findingOn(t *testing.T, list []finding.Finding, check string) finding.Finding {
	t.Helper()
	for _, f := range list {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("no finding %s", check)
	return finding.Finding{}
}

func findingOf(t *testing.T, n *sample.Node, check string) finding.Finding {
	t.Helper()
	_, list := judge(n)
	return findingOn(t, list, check)
}

// TestUnreadNeeds: a need that no file shows, as that GPU and NIC reach each other below two bridges
// of Intel's, is no evidence, and the others are.
func TestUnreadNeeds(t *testing.T) {
	n := sample.Ready()
	n.PCI.Functions[sample.GPU] = sample.Function(0x10, 0x1002, 0x74a1, 0x120000, "amdgpu")
	n.GPU().Bridges = nil
	n.Kmod.Drivers = map[string]kmod.Driver{"amd": {Loaded: unknown, Open: no}}
	n.Kmod.KernelOptions = map[string]tristate.State{"PCI_P2PDMA": yes, "DMABUF_MOVE_NOTIFY": yes}
	n.Platform.CPU = platform.CPU{Arch: "x86_64", Vendor: "GenuineIntel", Family: 6}
	if f := findingOf(t, n, "dmabuf"); f.Status != finding.StatusUnknown {
		t.Errorf("%+v", f)
	}
}

// TestFarNICExcluded: of two RDMA devices of a function, the one that is not excluded is named.
func TestFarNICExcluded(t *testing.T) {
	n := sample.Ready()
	n.GPU().Bridges = nil
	second := n.RDMA.Devices[0]
	second.Name = "mlx5_1"
	n.RDMA.Devices = append(n.RDMA.Devices, second)
	n.RDMA.Exclude([]string{"mlx5_0"})
	if f := findingOf(t, n, "level"); !strings.Contains(f.Detail, "GPU0 mlx5_1") {
		t.Errorf("%+v", f)
	}
}

// TestAskedFindings: the finding of devices that cannot register DMA-BUF says what
// to do.
func TestAskedFindings(t *testing.T) {
	n := sample.Ready()
	n.Kmod.Peers = sample.Peers(no)
	n.Asked = []verbs.Answer{{Device: "mlx5_0", DMABuf: no}, {Device: "rxe0", DMABuf: no}}
	f := findingOf(t, n, "dmabuf")
	const detail = "the RDMA devices cannot register DMA-BUF; asked: mlx5_0 rxe0 cannot"
	if f.Status != finding.StatusFail || f.Detail != detail || !strings.Contains(f.FixText(), "ON_DEMAND_PAGING") {
		t.Errorf("%+v", f)
	}
	if last := f.Sources[len(f.Sources)-1]; last != "/dev/infiniband/uverbs*" {
		t.Errorf("sources %q", f.Sources)
	}
	n.Asked[0].DMABuf = yes
	n.Kmod.Symbols = kmod.Symbols{}
	f = findingOf(t, n, "dmabuf")
	const can = "the GPU driver has open kernel modules, and mlx5 can register DMA-BUF (only a transfer proves more); asked: mlx5_0 can, rxe0 cannot"
	if f.Status != finding.StatusOK || f.Detail != can {
		t.Errorf("%+v", f)
	}
	n.Asked[1].DMABuf = unknown
	f = findingOf(t, n, "dmabuf")
	if want := "asked: mlx5_0 can, rxe0 gave no clear answer"; !strings.HasSuffix(f.Detail, want) {
		t.Errorf("%q lacks %q", f.Detail, want)
	}
	n.Asked = nil
	if f = findingOf(t, n, "dmabuf"); strings.Contains(f.Detail, "asked") {
		t.Error(f.Detail)
	}
}

// TestDMABufFinding: the state and the finding follow from the same prerequisites. A
// missing one is named, and so are files that could not be read.
func TestDMABufFinding(t *testing.T) {
	states := []tristate.State{yes, no, unknown}
	gpus := map[string]func(*sample.Node){
		"driven": func(*sample.Node) {}, "not driven": func(n *sample.Node) { n.GPU().Driver = "" }, "passed through": func(n *sample.Node) { n.GPU().Driver = "vfio-pci" },
		"driver unreadable": func(n *sample.Node) { n.GPU().Driver, n.GPU().DriverKnown = "", false }, "Volta": func(n *sample.Node) { n.GPU().Device = 0x1db1 },
	}
	nics := map[string]func(*sample.Node){
		"mlx5": func(*sample.Node) {}, "mlx4": func(n *sample.Node) { n.NIC().Driver = "mlx4_core" }, "no device": func(n *sample.Node) { n.RDMA.Devices = nil },
		"hidden": func(n *sample.Node) { n.RDMA = rdma.Inventory{Exclusive: true} }, "refuses": func(n *sample.Node) { n.Asked = []verbs.Answer{{Device: "mlx5_0", DMABuf: no}} },
		"accepts": func(n *sample.Node) { n.Asked = []verbs.Answer{{Device: "mlx5_0", DMABuf: yes}} },
	}
	for _, gpu := range testsize.Share(slices.Sorted(maps.Keys(gpus))) {
		for nic, changeNIC := range nics {
			for i := range 81 {
				loaded, open, umem, mlx5 := states[i%3], states[i/3%3], states[i/9%3], states[i/27]
				n := sample.Ready()
				gpus[gpu](n)
				changeNIC(n)
				n.Kmod.Peers = sample.Peers(no)
				n.Kmod.Drivers, n.Kmod.Symbols[kmod.UmemDMABuf], n.Kmod.Symbols[sample.MLX5DMABuf] = sample.Driver(loaded, open), kmod.Symbol{Found: umem}, kmod.Symbol{Found: mlx5}
				v, list := judge(n)
				got := findingOn(t, list, "dmabuf")
				name := fmt.Sprintf("GPU %s, NIC %s, loaded %v, open %v, umem %v, mlx5 %v", gpu, nic, loaded, open, umem, mlx5)
				if loaded == no && v.DMABuf != no {
					t.Errorf("%s: %v without a driver", name, v.DMABuf)
				}
				want := map[tristate.State]finding.Status{yes: finding.StatusOK, no: finding.StatusFail, unknown: finding.StatusUnknown}[v.DMABuf]
				if got.Status != want || (got.Code == "") != (v.DMABuf == yes) || (got.Code == "Unreadable" || nic == "hidden" && got.Code == "RDMANamespaces") != (v.DMABuf == unknown) || len(got.Evidence) == 0 && v.DMABuf != yes {
					t.Errorf("%s: %v, and check says %+v", name, v.DMABuf, got)
				}
			}
		}
	}
}

// TestFindings: every finding has a text, failures say what to do, and the verdict's
// reason is among the findings.
func TestFindings(t *testing.T) {
	changes := map[string]func(*sample.Node){
		"ready":       func(*sample.Node) {},
		"no bus":      func(n *sample.Node) { *n = sample.Node{}; n.RDMA.Complete = true },
		"no GPU":      func(n *sample.Node) { n.Drop(sample.GPU) },
		"GeForce":     func(n *sample.Node) { n.GPU().Device = 0x2684 },
		"no NIC":      func(n *sample.Node) { n.Drop(sample.NIC); n.RDMA.Devices = nil },
		"passthrough": func(n *sample.Node) { n.GPU().Driver = "vfio-pci" },
		"no driver":   func(n *sample.Node) { n.GPU().Driver = "" },
		"no ports":    func(n *sample.Node) { n.Port().State = "DOWN" },
		"hidden":      func(n *sample.Node) { n.RDMA = rdma.Inventory{Exclusive: true} },
		"legacy":      func(n *sample.Node) { n.Kmod.MOFED = kmod.MOFED{Origin: kmod.OriginMOFED, Version: "4.9-4.0.8"} },
		"nothing":     func(n *sample.Node) { n.Kmod = kmod.State{} },
		"no path": func(n *sample.Node) {
			n.Kmod.Peers, n.Kmod.Drivers, n.Kmod.Symbols[kmod.PeerMemoryAPI] = sample.Peers(tristate.False), sample.Driver(tristate.True, tristate.False), kmod.Symbol{Found: tristate.False}
		},
		"not loaded": func(n *sample.Node) {
			n.Kmod.Peers, n.Kmod.Drivers = sample.Peers(tristate.False), sample.Driver(tristate.True, tristate.False)
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			n := sample.Ready()
			change(n)
			v, list := judge(n)
			named := v.Reason == ""
			for _, f := range list {
				if f.Check == "" || f.Detail == "" || len(f.Sources) == 0 && n.Kmod.Files != nil || f.Status == "" {
					t.Errorf("incomplete: %+v", f)
				}
				if (f.Status == finding.StatusOK) != (f.Code == "") || f.Code != "" && !slices.Contains(findings.Codes(), f.Code) {
					t.Errorf("code %q at %s: %+v", f.Code, f.Status, f)
				}
				if f.Status == finding.StatusFail && f.Reason == "" && v.Ready != tristate.True && f.Check != "dmabuf" {
					t.Errorf("failed without a reason: %+v", f)
				}
				if f.Status == finding.StatusFail && f.FixText() == "" && f.Reason != verdict.NoGPU {
					t.Errorf("failed without a fix: %+v", f)
				}
				if v.Ready == tristate.True && f.Status == finding.StatusFail {
					t.Errorf("ready, and failed: %+v", f)
				}
				named = named || f.Reason == v.Reason
			}
			if !named {
				t.Errorf("reason %q is not among the findings", v.Reason)
			}
		})
	}
}

// TestFindingsSanitized: names of files and drivers do not act on a terminal.
func TestFindingsSanitized(t *testing.T) {
	n := sample.Ready()
	n.Kmod.Peers, n.Kmod.Drivers = sample.Peers(no), map[string]kmod.Driver{"nvidia": {Loaded: yes, Version: "570\x1b[2J"}}
	n.Kmod.Advice = kmod.NoAdvice()
	n.Kmod.Advice.File = kmod.ModuleFile{Listed: yes, Name: "nvidia_peermem", Dep: []string{"/lib/modules/6.8\x1b[2J/modules.dep"}, Needs: []string{"ib_uverbs\r"}}
	all := fmt.Sprintf("%q %q", findingOf(t, n, "gpu-driver"), findingOf(t, n, "peermem"))
	for _, want := range []string{`nvidia 570?[2J`, `"/lib/modules/6.8?[2J/modules.dep"`, `"/lib/modules/6.8?[2J/modules.dep=nvidia_peermem needs ib_uverbs?"`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
	if strings.Contains(all, `\x1b`) || strings.Contains(all, `\r`) {
		t.Error(all)
	}
}

// TestPortOfUnknownLinkLayer: an active port of unknown link layer is shown with the
// missing file.
func TestPortOfUnknownLinkLayer(t *testing.T) {
	n := sample.Ready()
	n.AddNIC()
	n.RDMA.Devices[1].Ports, n.RDMA.Devices[1].PortsRead = slices.Clone(n.RDMA.Devices[0].Ports), true
	n.Port().LinkLayer = ""
	got := findingOf(t, n, "port")
	if want := "mlx5_0/1 ACTIVE, link layer unknown"; !strings.Contains(got.Detail, want) {
		t.Errorf("no %q in %q", want, got.Detail)
	}
	if want := []string{"/sys/class/infiniband/mlx5_0/ports/1/link_layer=?"}; !slices.Equal(got.Evidence, want) {
		t.Errorf("evidence %q, want %q", got.Evidence, want)
	}
}

// TestNearPortBesideManagement: a NIC that its RDMA device alone shows to manage NVLink
// switches is nearest to no GPU.
func TestNearPortBesideManagement(t *testing.T) {
	n := sample.Ready()
	n.Kmod.Advice = kmod.NoAdvice()
	n.RDMA.Devices[0].NVLinkManagement = true
	for i, state := range []string{"DOWN", "ACTIVE"} {
		bus := uint8(0x21 + i)
		at := sample.At(bus)
		fn := sample.Function(bus, 0x15b3, 0x1021, 0x020700, "mlx5_core")
		fn.Bridges = []pci.Address{{Bus: 0, Device: 1}, {Bus: 3}, {Bus: 4, Device: bus}}
		if state == "ACTIVE" {
			fn.RootBus = "pci0000:40"
		}
		n.PCI.Functions = append(n.PCI.Functions, fn)
		n.RDMA.Devices = append(n.RDMA.Devices, rdma.Device{
			Name: fmt.Sprintf("mlx5_%d", i+1), PCI: &at, PortsRead: true,
			Ports: []rdma.Port{{Number: 1, State: state, LinkLayer: "InfiniBand"}},
		})
	}
	f := findingOf(t, n, "near-port")
	if f.Code != "NearPortDown" || !strings.Contains(f.Detail, "has mlx5_1 0000:21:00.0 at PXB with no active port, and mlx5_2 0000:22:00.0 at NODE next") {
		t.Errorf("%+v", f)
	}
}

// TestIDFile: the evidence of a function's ids names the file that they were read from.
func TestIDFile(t *testing.T) {
	n := sample.Ready()
	n.GPU().Device = 0x2684 // a GeForce
	for _, file := range []string{pci.ModaliasFile, pci.VendorFile} {
		n.GPU().IDFile = file
		_, list := judge(n)
		f := findingOn(t, list, "hardware")
		if want := "/sys/bus/pci/devices/0000:10:00.0/" + file + "=10de:2684 class 030200"; !slices.Contains(f.Evidence, want) {
			t.Errorf("no %q in %q", want, f.Evidence)
		}
	}
}

// TestDataDirectBeside: a data-direct function is beside a GPU below a switch; one that has only
// the root port in common with it is not.
func TestDataDirectBeside(t *testing.T) {
	root, up := pci.Address{Bus: 0, Device: 1}, pci.Address{Bus: 1}
	for name, tt := range map[string]struct {
		bridges []pci.Address
		apart   bool
	}{
		"one switch":    {[]pci.Address{root, up, {Bus: 2, Device: 9}}, true},
		"one root port": {[]pci.Address{root, {Bus: 1, Device: 9}}, false},
		"two":           {[]pci.Address{{Bus: 0, Device: 9}}, false},
	} {
		n := sample.Ready()
		n.GPU().Device, n.GPU().IOMMUGroup = 0x2941, 7 // of a GB200
		n.Kmod.Advice = &kmod.Advice{}
		direct := sample.Function(0x40, 0x15b3, 0x2100, 0x080100, "")
		direct.Bridges, direct.IOMMUGroup = tt.bridges, 8
		n.PCI.Functions = append(n.PCI.Functions, direct)
		_, list := judge(n)
		if said := slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Code == "DataDirectApart" }); said != tt.apart {
			t.Errorf("%s: %v, want %v", name, said, tt.apart)
		}
	}
}
