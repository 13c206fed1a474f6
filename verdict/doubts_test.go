package verdict_test

import (
	"slices"
	"testing"

	"gdr-features/source/pci"
	"gdr-features/test/sample"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// doubtCase is a machine in a state in which transfers are published to fail, or beside it.
type doubtCase struct {
	name   string
	change func(*sample.Node)
	ready  tristate.State
	reason verdict.Reason
	doubt  verdict.Doubt
}

func (tt *doubtCase) compare(t *testing.T, v *verdict.Verdict, got verdict.Doubt) {
	t.Helper()
	if v.Ready != tt.ready || v.Reason != tt.reason || got != tt.doubt {
		t.Errorf("%s: ready %v, %q, doubt %d; want %v, %q, %d", tt.name, v.Ready, v.Reason, got, tt.ready, tt.reason, tt.doubt)
	}
}

// grace is a GPU that shares memory with its CPU, behind an Arm SMMU that passes its addresses
// through, with ACS on.
func grace() *sample.Node {
	n := sample.Ready()
	n.Platform.Virtual, n.Platform.CPU.Arch, n.Platform.Kernel = no, "arm64", "6.8.0-45-generic"
	n.GPU().Device, n.GPU().IOMMUGroup = 0x2941, 1
	n.Platform.IOMMU.Types = map[int]string{1: "identity"}
	n.ACS = map[pci.Address]*pci.ACS{}
	for _, bridge := range n.GPU().Bridges {
		n.ACS[bridge] = &pci.ACS{Present: true, Control: 1 << 2}
	}
	return n
}

// TestIdentity: such a GPU gets no CUDA context on a kernel before 6.11.
func TestIdentity(t *testing.T) {
	kernel := func(release string) func(*sample.Node) {
		return func(n *sample.Node) { n.Platform.Kernel = release }
	}
	arch := func(arch, release string) func(*sample.Node) {
		return func(n *sample.Node) { n.Platform.CPU.Arch, n.Platform.Kernel = arch, release }
	}
	unreadType := func(n *sample.Node) { delete(n.Platform.IOMMU.Types, 1) }
	cleared := func(n *sample.Node) {
		for bridge := range n.ACS {
			n.ACS[bridge] = &pci.ACS{Present: true}
		}
	}
	for _, tt := range []doubtCase{
		{"before 6.11", func(*sample.Node) {}, unknown, "SMMUPassthrough", verdict.Unproven},
		{"6.11", kernel("6.11.0-29-generic"), yes, "", verdict.NoDoubt},
		{"x86", arch("x86_64", "6.8.0"), yes, "", verdict.NoDoubt},
		{"an architecture that was not read", arch("", "6.8.0"), unknown, "Unreadable", verdict.Unproven},
		{"the same with 6.11", arch("", "6.11.0"), yes, "", verdict.NoDoubt},
		{"NVIDIA's kernel", kernel("6.8.0-1028-nvidia-64k"), yes, "", verdict.Suspect},
		{"a tree without the release", kernel(""), yes, "", verdict.Suspect},
		{"a release that was not read", func(n *sample.Node) { n.Platform.Kernel, n.Platform.KernelUnread = "", true }, unknown, "Unreadable", verdict.Unproven},
		{"translated", func(n *sample.Node) { n.Platform.IOMMU.Types[1] = "DMA" }, yes, "", verdict.NoDoubt},
		{"a type that was not read", unreadType, unknown, "Unreadable", verdict.NoDoubt},
		{"the same with NVIDIA's kernel", func(n *sample.Node) { unreadType(n); kernel("6.8.0-1028-nvidia-64k")(n) }, yes, "", verdict.NoDoubt},
		{"the same with 6.11", func(n *sample.Node) { unreadType(n); kernel("6.11.0")(n) }, yes, "", verdict.NoDoubt},
		{"no group", func(n *sample.Node) { unreadType(n); n.GPU().IOMMUGroup = pci.None }, yes, "", verdict.NoDoubt},
		{"a GPU with memory of its own", func(n *sample.Node) { n.GPU().Device = 0x2330 }, yes, "", verdict.NoDoubt},
		{"the GPU in identity has no driver", func(n *sample.Node) { addGPU(n, 0x2941); n.GPU().Driver = "" }, yes, "", verdict.NoDoubt},
		{"ACS off", cleared, yes, "", verdict.NoDoubt},
		{"ACS on at one bridge", func(n *sample.Node) { cleared(n); n.ACS[n.GPU().Bridges[1]].Control = 1 << 2 }, unknown, "SMMUPassthrough", verdict.Unproven},
		{"ACS unread at one bridge", func(n *sample.Node) { cleared(n); delete(n.ACS, n.GPU().Bridges[1]) }, unknown, "SMMUPassthrough", verdict.Unproven},
		{"a port is down as well", func(n *sample.Node) { n.Port().State = "DOWN" }, no, "NoActivePort", verdict.Unproven},
	} {
		n := grace()
		tt.change(n)
		v := n.Judge().Verdict
		tt.compare(t, &v, v.Identity.Doubt)
	}
}

// emulated is a GPU and a NIC that were passed through below a switch that QEMU emulates. ATS of
// the NIC is off.
func emulated() *sample.Node {
	n := sample.Ready()
	n.Platform.Virtual = yes
	for i := range n.PCI.Functions {
		n.PCI.Functions[i].Bridges[1] = sample.At(0xf0)
	}
	n.PCI.Functions = append(n.PCI.Functions, pci.Function{Address: sample.At(0xf0), Vendor: 0x104c, Device: 0x8232, Class: 0x060400, RootBus: "pci0000:00", Top: "pci0000:00"})
	n.ATS = map[pci.Address]tristate.State{sample.At(0x20): no}
	return n
}

// addNIC adds a second NIC below that switch.
func addNIC(n *sample.Node) {
	n.AddNIC()
	last := len(n.PCI.Functions) - 1
	n.PCI.Functions[last].Bridges[1] = sample.At(0xf0)
	n.PCI.Functions[last-1], n.PCI.Functions[last] = n.PCI.Functions[last], n.PCI.Functions[last-1] // by address
}

// TestBelowEmulated: without ATS transfers below such a switch are published to fail, unless the
// cloud is known to do them.
func TestBelowEmulated(t *testing.T) {
	named := func(vendor, product string) func(*sample.Node) {
		return func(n *sample.Node) {
			n.Platform.DMI.Vendor.Value, n.Platform.DMI.Product.Value = vendor, product
		}
	}
	ats := func(is tristate.State) func(*sample.Node) {
		return func(n *sample.Node) { n.ATS[n.NIC().Address] = is }
	}
	// twoNICs adds a second NIC, and says of both whether they have ATS.
	twoNICs := func(first, second tristate.State) func(*sample.Node) {
		return func(n *sample.Node) {
			addNIC(n)
			n.ATS[sample.At(0x20)], n.ATS[sample.At(0x21)] = first, second
		}
	}
	for _, tt := range []struct {
		doubtCase
		pairs int
	}{
		{doubtCase{"ATS off", func(*sample.Node) {}, unknown, "EmulatedSwitch", verdict.Unproven}, 1},
		{doubtCase{"ATS on", ats(yes), yes, "", verdict.NoDoubt}, 0},
		{doubtCase{"ATS not read", ats(unknown), yes, "", verdict.Suspect}, 1},
		{doubtCase{"bare metal", func(n *sample.Node) { n.Platform.Virtual = no }, yes, "", verdict.NoDoubt}, 0},
		{doubtCase{"a virtual machine by its switch alone", func(n *sample.Node) {
			n.Platform.Virtual = unknown
			n.PCI.Functions[len(n.PCI.Functions)-1].Vendor, n.PCI.Functions[len(n.PCI.Functions)-1].Device = 0x1b36, 0x000c
		}, unknown, "EmulatedSwitch", verdict.Unproven}, 1},
		{doubtCase{"EC2", named("Amazon EC2", "p5.48xlarge"), yes, "", verdict.NoDoubt}, 0},
		{doubtCase{"Google", named("Google", "Google Compute Engine"), yes, "", verdict.NoDoubt}, 0},
		{doubtCase{"another product of Google", named("Google", "a desktop"), unknown, "EmulatedSwitch", verdict.Unproven}, 1},
		{doubtCase{"another vendor of that name", named("QEMU", "Google Compute Engine"), unknown, "EmulatedSwitch", verdict.Unproven}, 1},
		{doubtCase{"a real switch", func(n *sample.Node) { n.PCI.Functions[sample.NIC+1].Vendor = 0x1000 }, yes, "", verdict.NoDoubt}, 0},
		{doubtCase{"another switch", func(n *sample.Node) { n.NIC().Bridges = n.NIC().Bridges[:1] }, yes, "", verdict.NoDoubt}, 0},
		{doubtCase{"no bridge in common", func(n *sample.Node) { n.NIC().Bridges = nil }, yes, "", verdict.NoDoubt}, 0},
		{doubtCase{"no RDMA device", func(n *sample.Node) { n.RDMA.Devices = nil }, no, "NoRDMADevice", verdict.NoDoubt}, 0},
		{doubtCase{"a GeForce", func(n *sample.Node) { n.GPU().Device = 0x2684 }, no, "GPUUnsupported", verdict.NoDoubt}, 0},
		{doubtCase{"a NIC that is not judged", func(n *sample.Node) { sample.NotJudged(n.NIC()) }, unknown, "NICNotJudged", verdict.NoDoubt}, 0},
		{doubtCase{"one not read, one off", twoNICs(unknown, no), unknown, "EmulatedSwitch", verdict.Unproven}, 1},
		{doubtCase{"one off, one not read", twoNICs(no, unknown), unknown, "EmulatedSwitch", verdict.Unproven}, 1},
		{doubtCase{"both off", twoNICs(no, no), unknown, "EmulatedSwitch", verdict.Unproven}, 2},
		{doubtCase{"both not read", twoNICs(unknown, unknown), yes, "", verdict.Suspect}, 2},
	} {
		n := emulated()
		tt.change(n)
		v := n.Judge().Verdict
		tt.compare(t, &v, v.BelowEmulated.Doubt)
		if len(v.BelowEmulated.Pairs) != tt.pairs {
			t.Errorf("%s: %d pairs, want %d", tt.name, len(v.BelowEmulated.Pairs), tt.pairs)
		}
	}
}

// TestEmulatedPairs: only GPUs and NICs that count are such pairs, whichever families are judged.
func TestEmulatedPairs(t *testing.T) {
	n := emulated()
	addNIC(n)
	n.PCI.Functions[sample.NIC+1].Device = 0x673c // ConnectX-2
	gpu := *n.GPU()
	gpu.Address, gpu.Device = sample.At(0x11), 0x2684
	n.PCI.Functions = slices.Insert(n.PCI.Functions, sample.GPU+1, gpu)
	if pairs := n.Judge().EmulatedPairs(); len(pairs) != 1 || !n.Matrix.GPUs[pairs[0].GPU].Counts() || !n.Matrix.NICs[pairs[0].NIC].Counts() {
		t.Errorf("%d pairs", len(pairs))
	}
	if n.Matrix.Origin != topology.Virtual {
		t.Errorf("a machine of %q", n.Matrix.Origin)
	}
}

// TestConfidential: nothing proves transfers in a confidential guest, and what is missing is said
// first.
func TestConfidential(t *testing.T) {
	for _, tt := range []doubtCase{
		{"all in place", func(*sample.Node) {}, unknown, "ConfidentialGuest", 0},
		{"no driver", func(n *sample.Node) { n.GPU().Driver = "" }, no, "GPUDriverNotLoaded", 0},
		{"a port that was not read, too", func(n *sample.Node) { n.Port().State = "" }, unknown, "ConfidentialGuest", 0},
		{"hardware that was not read", func(n *sample.Node) { addAltra(n); n.NIC().RootBus, n.Platform.Virtual = "", no }, unknown, "Unreadable", 0},
	} {
		n := sample.Ready()
		n.Platform.Confidential = "/proc/cpuinfo"
		tt.change(n)
		v := n.Judge().Verdict
		tt.compare(t, &v, 0)
	}
}

// TestNothingToJudge: no way to GPU memory is judged without a GPU and a NIC, and none is known to
// be reached.
func TestNothingToJudge(t *testing.T) {
	for name, change := range map[string]func(*sample.Node){
		"no GPU":         func(n *sample.Node) { n.Drop(sample.GPU) },
		"no NIC":         func(n *sample.Node) { n.Drop(sample.NIC); n.RDMA.Devices = nil },
		"a GeForce":      func(n *sample.Node) { n.GPU().Device = 0x2684 },
		"a ConnectX-2":   func(n *sample.Node) { n.NIC().Device = 0x673c },
		"NVLink's alone": func(n *sample.Node) { n.NIC().NVLinkManagement = true },
	} {
		n := sample.Ready()
		change(n)
		v := n.Judge().Verdict
		if v.Peermem != unknown || v.DMABuf != unknown || v.Reachable != unknown || len(v.Others) != 0 || v.Ready != no {
			t.Errorf("%s: peermem %v, dmabuf %v, reachable %v, ready %v, %d others", name, v.Peermem, v.DMABuf, v.Reachable, v.Ready, len(v.Others))
		}
	}
}

// TestJudgedAnswers: what is not known of the GPUs is neither proven nor denied.
func TestJudgedAnswers(t *testing.T) {
	n := sample.Ready()
	n.GPU().DriverKnown = false
	if v := n.Judge().Verdict; v.AllPassthrough != unknown || v.GPUDriven != unknown {
		t.Errorf("passed through %v, driven %v", v.AllPassthrough, v.GPUDriven)
	}
	n = sample.Ready()
	n.GPU().Driver = ""
	if v := n.Judge().Verdict; v.OwnMemory != yes || v.AllPassthrough != no { // that is another need
		t.Errorf("own memory %v, passed through %v", v.OwnMemory, v.AllPassthrough)
	}
	n = sample.Ready()
	n.Drop(sample.GPU)
	if v := n.Judge().Verdict; v.AllPassthrough != no {
		t.Errorf("no GPU: passed through %v", v.AllPassthrough)
	}
	// A GeForce reaches the NIC, the GPU that counts does not.
	n = altra()
	n.PCI.Functions[sample.GPU].Device = 0x2684
	if v := n.Judge().Verdict; v.Reachable != no || v.Ready != no {
		t.Errorf("reachable %v, ready %v", v.Reachable, v.Ready)
	}
}
