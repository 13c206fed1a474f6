package dra

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/label"
	"gdr-features/internal/rooms/assign"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// MaxPairs is how many pairs one claim can hold: at most 32 devices are allocated for it
// (k8s.io/api, resource/v1, AllocationResultsMaxSize).
const MaxPairs = 16

// Options say what a claim asks for. Empty texts stand for the defaults.
type Options struct {
	Pairs int // 1 to MaxPairs
	// GPUDriver is the DRA driver that the GPUs must be of; any driver of the class by
	// default. NICDriver is one of NICDrivers, the first by default.
	GPUDriver, NICDriver string
	// GPUClass and NICClass are DeviceClasses; by default those that come with the drivers.
	GPUClass, NICClass string
	// Derived asks for a derived attribute in place of addresses, where neither attribute serves
	// every GPU.
	Derived bool
}

// Claim is a claim of pairs of a GPU and a NIC.
type Claim struct {
	// Template is nil where the machine has no pair that a claim can ask for.
	Template *Template
	// Attribute is what the GPU and the NIC of a pair have in common; NoAttribute where the claim
	// names the devices by address, "" where it does because the attributes could not be
	// read.
	Attribute topology.Attribute
	// Notes are for people, a sentence each.
	Notes []string
}

type claimant struct {
	Options
	m      *assign.Assignment // of every GPU
	driver *driver
	gpus   *driver // nil where neither --gpu-driver nor --gpu-class names one that is known
	fits   map[*pci.Function]bool
	Claim
}

// NewClaim returns the claim that pairs GPUs and NICs on a machine like this one. m has a
// choice for every GPU of the machine.
func NewClaim(m *assign.Machine, o Options) (*Claim, error) {
	c := claimant{Options: o}
	var err error
	if c.driver, err = nicDriverNamed(o.NICDriver); err != nil {
		return nil, err
	}
	c.gpus = find(cmp.Or(o.GPUDriver, o.GPUClass))
	// A claim pairs one GPU with one NIC, so that it may have NICs of any link layer.
	allowed := func(n *assign.NIC) bool { return n.Aside == "" || n.OtherLayer }
	if c.driver.onlyVirtual {
		allowed = func(n *assign.NIC) bool { return n.Virtual }
	}
	c.m = m.Assign(m.EveryGPU(), allowed)
	c.NICClass = cmp.Or(o.NICClass, c.driver.name)
	if c.GPUClass == "" {
		if c.GPUClass, err = c.gpuClass(); err != nil {
			return nil, err
		}
	}
	switch c.Attribute = m.Align(&m.Node.PCI, c.forGPUs); c.Attribute {
	case topology.PCIeRoot, topology.NUMANode:
		c.fits = c.fit()
		err = c.byAttribute()
	case topology.NoAttribute, "":
		err = c.byAddress()
	}
	return &c.Claim, err
}

// gpuClass is the class of the machine's GPUs, "" where none is eligible.
func (c *claimant) gpuClass() (string, error) {
	if c.GPUDriver != "" {
		return c.GPUDriver, nil
	}
	class := ""
	for _, gpu := range c.m.GPUs {
		switch driver := gpuDriver(&gpu).name; {
		case !gpu.Counts() || driver == class:
		case class != "":
			return "", fmt.Errorf("this machine has GPUs of the classes %s and %s: choose one with --gpu-class", class, driver)
		default:
			class = driver
		}
	}
	return class, nil
}

// wanted reports whether a GPU is eligible and may be of the class and driver that the claim
// names.
func (c *claimant) wanted(gpu *topology.GPU) bool {
	return gpu.Counts() && (c.gpus == nil || c.gpus.gpus == gpu.GPU.Name)
}

// byAttribute makes a claim that any GPU and NIC with the same value of the attribute meet.
func (c *claimant) byAttribute() error {
	if most := c.atOnce(false); c.Pairs > most {
		return c.tooMany(most)
	}
	worst, only := c.worst(), c.only()
	devices := c.begin(worst)
	for i := range c.Pairs {
		gpu, nic := names(i)
		devices.request(gpu, c.GPUClass, c.ofGPUDriver())
		devices.request(nic, c.NICClass, c.driver.withRDMA(), only)
		devices.Constraints = append(devices.Constraints, Constraint{Requests: []string{gpu, nic}, Attribute: Name(c.Attribute)})
	}
	if worst == topology.Unknown {
		c.note("The worst level that this claim can give is unknown.")
	}
	if now := c.atOnce(true); c.Pairs > now {
		c.note("Of %d pairs %d can be allocated here, since NICs have no RDMA device or GPUs are passed through to virtual machines: as long as that is so, this claim stays Pending.", c.Pairs, now)
	}
	c.unsuitable()
	if label := c.m.Align(&c.m.Node.PCI, nil); label != c.Attribute {
		c.note("The label gdr.align is %s: it counts NICs that this claim selects out.", label)
	}
	if c.Attribute == topology.NUMANode {
		c.withoutNUMANode()
	}
	return nil
}

func (c *claimant) tooMany(most int) error {
	return fmt.Errorf("--pairs %d: a node like this one can give at most %d, each with a NIC of its own", c.Pairs, most)
}

func (c *claimant) begin(worst topology.Level) *Devices {
	c.Template = &Template{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaimTemplate"}
	c.Template.Metadata.Name = "gdr-pairs-" + strconv.Itoa(c.Pairs)
	if worst != topology.Unknown {
		c.Template.Metadata.Annotations = map[string]string{label.Level: worst.String()}
	}
	return &c.Template.Spec.Spec.Devices
}

func names(pair int) (gpu, nic string) {
	return "gpu-" + strconv.Itoa(pair), "nic-" + strconv.Itoa(pair)
}

func (c *claimant) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// ofGPUDriver is the condition on the driver of a GPU, "" for none.
func (c *claimant) ofGPUDriver() string {
	if c.GPUDriver == "" {
		return ""
	}
	return fmt.Sprintf("device.driver == %q", c.GPUDriver)
}

// atOnce is how many pairs of the attribute can be allocated at the same time: each device is
// in one. With now it leaves out NICs without an RDMA device, which they may get with a driver,
// or never, as the second port of a bond; and GPUs that are passed through.
func (c *claimant) atOnce(now bool) (pairs int) {
	gpus, nics := c.gpusBy(now), map[string]int{}
	seen := map[*pci.Function]bool{} // it may have several RDMA devices
	for _, n := range c.m.Matrix.NICs {
		f := n.Function
		if f == nil || !f.NICEligible() || seen[f] || !c.fits[f] || now && n.RDMA == nil {
			continue
		}
		seen[f] = true
		value, _ := c.Attribute.Of(f)
		nics[value]++
	}
	delete(gpus, "") // these do not have it
	for value, n := range gpus {
		pairs += min(n, nics[value])
	}
	return pairs
}

// gpusBy counts the GPUs in question by value of the attribute; with now those that are not
// passed through.
func (c *claimant) gpusBy(now bool) map[string]int {
	count := map[string]int{}
	for _, gpu := range c.m.GPUs {
		if c.wanted(&gpu) && (!now || !gpu.PassedThrough()) {
			value, _ := c.Attribute.Of(gpu.Function)
			count[value]++
		}
	}
	return count
}

// worst is the worst level of a GPU and a NIC that meet the claim, topology.Unknown where it
// is not known. The scheduler may choose any, also those that are not eligible.
func (c *claimant) worst() topology.Level {
	worst := topology.PIX
	for _, p := range c.m.Pairs {
		if c.accepts(&p) != tristate.False && p.Level.Rank() > worst.Rank() {
			worst = p.Level
		}
	}
	return worst
}

// accepts reports whether a GPU and a NIC meet the claim, eligible or not.
func (c *claimant) accepts(p *topology.Pair) tristate.State {
	return tristate.And(c.matches(p), tristate.Of(c.fits[c.m.Matrix.NICs[p.NIC].Function]))
}

// matches reports whether a GPU and a NIC meet the claim as far as class and attribute go. A
// GPU of a family without any eligible GPU is not of the class.
func (c *claimant) matches(p *topology.Pair) tristate.State {
	gpu, nic := &c.m.GPUs[p.GPU], c.m.Matrix.NICs[p.NIC].Function
	claimed := slices.ContainsFunc(c.m.GPUs, func(g topology.GPU) bool { return c.wanted(&g) && g.GPU == gpu.GPU })
	if !claimed || nic == nil || !c.driver.publishes(nic) {
		return tristate.False
	}
	return c.Attribute.Same(gpu.Function, nic)
}

// unsuitable notes GPUs that a claim may be given, though they are not known to do GPUDirect
// RDMA.
func (c *claimant) unsuitable() {
	accepted := func(p topology.Pair) bool { return c.accepts(&p) == tristate.True }
	for i, gpu := range c.m.GPUs {
		if !gpu.Counts() && slices.ContainsFunc(c.m.PairsOf(i), accepted) {
			c.note("The GPU %v is not known to do GPUDirect RDMA, and this claim may be given it.", gpu.Address)
		}
	}
}

func (c *claimant) withoutNUMANode() {
	var drivers []string
	for _, gpu := range c.m.GPUs {
		d := gpuDriver(&gpu)
		if c.wanted(&gpu) && (c.GPUDriver == "" || c.gpus != nil) && !d.numaNode && !slices.Contains(drivers, d.name) {
			drivers = append(drivers, d.name)
		}
	}
	if !c.driver.numaNode {
		drivers = append(drivers, c.driver.name)
	}
	if len(drivers) > 0 {
		c.note("The driver %s is not known to publish %s: without it this claim stays Pending.", strings.Join(drivers, " and "), Name(topology.NUMANode))
	}
}

// worstOf is the worst level of pairs.
func worstOf(pairs []assign.Choice) topology.Level {
	return slices.MaxFunc(pairs, func(a, b assign.Choice) int { return cmp.Compare(a.Level.Rank(), b.Level.Rank()) }).Level
}

// byAddress makes a claim that names GPUs and NICs by their addresses, each NIC once.
func (c *claimant) byAddress() error {
	pairs := c.pairs()
	if len(pairs) == 0 {
		c.note("No claim can ask for a pair of a GPU and a NIC on this machine.")
		return nil
	}
	if c.Pairs > len(pairs) {
		return c.tooMany(len(pairs))
	}
	if c.Derived && c.Attribute == topology.NoAttribute {
		c.derived(pairs)
		return nil
	}
	pairs = pairs[:c.Pairs]
	devices := c.begin(worstOf(pairs))
	for i, p := range pairs {
		gpu, nic := names(i)
		devices.request(gpu, c.GPUClass, c.ofGPUDriver(), equals(pciBusID, p.GPU.Address))
		devices.request(nic, c.NICClass, c.driver.withRDMA(), equals(c.driver.address, p.NIC.Address))
	}
	if c.Attribute == topology.NoAttribute {
		c.note("Neither pcieRoot nor numaNode matches every GPU of this machine with a NIC.")
	} else {
		c.note("Whether pcieRoot or numaNode matches every GPU of this machine with a NIC could not be read.")
	}
	c.note("This claim names its devices by address: it can be met once on a node, and only where these addresses are the same.")
	return nil
}

// pairs are the GPUs that a claim can name, by address, with a NIC of their own each.
func (c *claimant) pairs() []assign.Choice {
	var pairs []assign.Choice
	used := map[pci.Address]bool{}
	for _, choice := range c.m.Choices {
		switch gpu := choice.GPU; {
		case !c.wanted(gpu):
		case choice.NIC == nil:
			c.note("The GPU %v has no usable NIC: %s.", gpu.Address, c.m.WhyNone())
		case !topology.Published(gpu.Address):
			c.note("The GPU %v is left out: DRA drivers do not publish an address with a domain of five digits.", gpu.Address)
		case !used[choice.NIC.Address]:
			used[choice.NIC.Address] = true
			pairs = append(pairs, choice)
		}
	}
	return pairs
}
