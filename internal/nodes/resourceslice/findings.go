package resourceslice

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/dradriver"
	"gdr-features/internal/nodes"
	"gdr-features/internal/show"
)

// Finding is something that keeps claims from what the node has.
type Finding struct {
	Code string `json:"code"`
	// Driver and Attribute are those concerned, "" for none.
	Driver    string `json:"driver"`
	Attribute string `json:"attribute"`
	// Devices are PCI addresses, or names of devices without one.
	Devices []string `json:"devices"`
	// Text says what is wrong, Fix what to do.
	Text string `json:"text"`
	Fix  string `json:"fix"`
}

// Codes of findings.
const (
	NoAgent          = "NoAgent"
	NoSlices         = "NoSlices"
	PoolIncomplete   = "PoolIncomplete"
	PoolInvalid      = "PoolInvalid"
	NotPublished     = "NotPublished"
	OnlyParts        = "OnlyParts"
	NotListed        = "NotListed"
	PublishedTwice   = "PublishedTwice"
	AttributeMissing = "AttributeMissing"
	AttributeDiffers = "AttributeDiffers"
	NoMatch          = "NoMatch"
)

type fix struct{ code, text string }

// fixes has a row for each code, in the order in which findings are shown, and what to do about
// it. The fixes of NoMatch and AttributeMissing depend on more.
var fixes = [...]fix{
	{NoAgent, "run the agent of gdr-features on the node"},
	{NoSlices, "see whether the driver's Pod runs on the node, and its log"},
	{PoolIncomplete, "wait, since the driver may be about to publish the rest; otherwise restart its Pod on the node"},
	{PoolInvalid, "restart the driver's Pod on the node; if that does not help, report it to the driver's authors"},
	{NotPublished, "see the log of the driver's Pod on the node: it leaves out what is bound to another kernel driver or excluded by its configuration, and dra.net the NIC of the default route"},
	{OnlyParts, "claim a part by the DeviceClass of its type, mig.nvidia.com for MIG, or turn MIG off"},
	{NotListed, "see with gdr-features topo whether the device is still in the node; restart the Pod of the driver or of the agent, whichever is outdated"},
	{PublishedTwice, "make one of the drivers leave these NICs out; otherwise two Pods may be given the same NIC"},
	{AttributeDiffers, "restart the driver's Pod on the node, so that it reads the machine again"},
	{NoMatch, ""},
	{AttributeMissing, ""},
}

func row(code string) int {
	return slices.IndexFunc(fixes[:], func(r fix) bool { return r.code == code })
}

func order(a, b string) int { return row(a) - row(b) }

func (c *comparison) find() {
	if c.Agent.Hardware == nil {
		c.say(Finding{Code: NoAgent, Text: "no agent has published a NodeFeature of this node, so there is nothing to compare with"})
	}
	for d := range dradriver.All() {
		c.findOf(d)
	}
	c.findNICs()
	c.findAttributes()
	c.findMatch()
	slices.SortStableFunc(c.Findings, func(a, b Finding) int { return order(a.Code, b.Code) })
}

func (c *comparison) say(f Finding) {
	if f.Fix == "" {
		f.Fix = fixes[row(f.Code)].text
	}
	if f.Devices == nil {
		f.Devices = []string{}
	}
	c.Findings = append(c.Findings, f)
}

// findOf looks for what a driver has not published, and for what it alone knows.
func (c *comparison) findOf(d *dradriver.Driver) {
	unusable, is := c.unusable[d]
	if is {
		c.say(unusable)
	}
	left := c.listedFor(d)
	if d.GPUs != "" && len(left) > 0 && !c.publishes(d) {
		c.say(Finding{Code: NoSlices, Driver: d.Name, Text: fmt.Sprintf("%s has published no ResourceSlice of this node, which has %s", d.Name, show.Count(len(left), "such GPU"))})
	}
	var gone, parts []string
	nameless := false // it has devices of unknown address
	for i, of := range c.devices {
		switch {
		case of.driver != d:
		case of.address == "":
			nameless = nameless || of.counts()
		case i > 0 && c.devices[i-1].driver == d && c.devices[i-1].address == of.address: // seen
		default:
			if c.Agent.Hardware != nil && c.listed[of.address] == nil && of.counts() {
				gone = append(gone, of.address)
			}
			if d.GPUs != "" && !slices.ContainsFunc(c.gpus, of.sameFunction) {
				parts = append(parts, of.address)
			}
		}
	}
	left = slices.DeleteFunc(left, func(address string) bool {
		return slices.ContainsFunc(c.devices, func(of *Device) bool { return of.address == address })
	})
	if len(left) > 0 && c.publishes(d) && !is && !nameless && !d.OnlyVirtual {
		c.say(Finding{Code: NotPublished, Driver: d.Name, Devices: left, Text: d.Name + " does not publish " + nodes.Few(left)})
	}
	if len(gone) > 0 {
		c.say(Finding{Code: NotListed, Driver: d.Name, Devices: gone, Text: fmt.Sprintf("%s publishes %s, which the agent does not list", d.Name, nodes.Few(gone))})
	}
	if len(parts) > 0 { // which a claim for GPUs cannot get
		c.say(Finding{Code: OnlyParts, Driver: d.Name, Devices: parts, Text: fmt.Sprintf("%s publishes %s only in parts (MIG) or for virtual machines (vfio): no claim of the DeviceClass %[1]s is given it", d.Name, nodes.Few(parts))})
	}
}

// findNICs looks for NICs that no driver has published, or two.
func (c *comparison) findNICs() {
	var names []string
	published := false
	for d := range dradriver.All() {
		if d.GPUs == "" {
			names, published = append(names, d.Name), published || c.publishes(d)
		}
	}
	if c.NICs.Listed > 0 && !published {
		c.say(Finding{Code: NoSlices, Text: fmt.Sprintf("neither %s has published a ResourceSlice of this node, which has %s", strings.Join(names, " nor "), show.Count(c.NICs.Listed, "RDMA NIC"))})
	}
	var twice []string
	by := map[string]*dradriver.Driver{} // the first driver of each address
	for _, d := range c.devices {
		if by[d.address] == nil {
			by[d.address] = d.driver
		}
		if d.address != "" && by[d.address] != d.driver && !slices.Contains(twice, d.address) {
			twice = append(twice, d.address)
		}
	}
	if slices.Sort(twice); len(twice) > 0 {
		c.say(Finding{Code: PublishedTwice, Devices: twice, Text: "two drivers publish " + nodes.Few(twice)})
	}
}

// listedFor returns the addresses of what the agent has listed and a driver may publish: the
// GPUs of its family, or NICs with an RDMA device.
func (c *comparison) listedFor(d *dradriver.Driver) (addresses []string) {
	for address, f := range c.listed {
		if d.GPUs != "" && f.Family == d.GPUs || d.GPUs == "" && len(f.rdma) > 0 {
			addresses = append(addresses, address)
		}
	}
	slices.Sort(addresses)
	return addresses
}

// expected are the values of which a driver should publish one of a listed function.
type expected struct {
	attribute string
	values    []string
}

// expected leaves out what the agent does not know.
func (l *listed) expected(d *Device) []expected {
	all := []expected{{dradriver.PCIeRoot, []string{l.PCIeRoot}}, {dradriver.NUMANode, []string{l.NUMANode}}}
	if len(l.rdma) > 0 {
		all = append(all, expected{d.driver.RDMA, []string{"true"}})
	}
	if d.rdma() {
		all = append(all, expected{d.driver.RDMADevice, l.rdma})
	}
	return slices.DeleteFunc(all, func(e expected) bool { return e.attribute == "" || len(e.values) == 0 || e.values[0] == "" })
}

// findAttributes looks for attributes that are missing or differ, for each driver in one finding.
func (c *comparison) findAttributes() {
	var all []*Finding
	add := func(code string, d *Device, attribute, device, text string) {
		i := slices.IndexFunc(all, func(f *Finding) bool { return f.Code == code && f.Driver == d.driver.Name && f.Attribute == attribute })
		if i < 0 {
			i = len(all)
			all = append(all, &Finding{Code: code, Driver: d.driver.Name, Attribute: attribute, Text: text})
		}
		if !slices.Contains(all[i].Devices, device) {
			all[i].Devices = append(all[i].Devices, device)
		}
	}
	for _, d := range c.devices {
		if d.address == "" && d.counts() {
			add(AttributeMissing, d, d.driver.Addresses[0], d.Name, "")
		}
		if c.listed[d.address] == nil {
			continue
		}
		for _, e := range c.listed[d.address].expected(d) {
			got := d.value(e.attribute)
			switch {
			case share(d.Attributes[e.attribute], e.values):
			case got == "":
				add(AttributeMissing, d, e.attribute, d.address, "")
			default:
				add(AttributeDiffers, d, e.attribute, d.address, fmt.Sprintf("%s of %s is %s in the ResourceSlice of %s, and %s on the node", e.attribute, d.address, got, d.driver.Name, strings.Join(e.values, " or ")))
			}
		}
	}
	for _, f := range all {
		if n := len(f.Devices); f.Code == AttributeMissing {
			f.Text = fmt.Sprintf("%s publishes no %s of %s", f.Driver, f.Attribute, nodes.Few(f.Devices))
			f.Fix = c.missing(f.Attribute)
		} else if n > 1 { // the text names the first
			f.Text += fmt.Sprintf("; %d devices differ", n)
		}
		c.say(*f)
	}
}

// instead says by what to claim: by the other attribute if that serves every GPU, or by address.
func (c *comparison) instead(way string) string {
	other := byRoot
	if way == byRoot {
		other = byNUMA
	}
	const claim = "; gdr-features claim prints such a claim on the node"
	switch m := c.Matches[other]; {
	case m.GPUs < len(c.gpus):
		return "claim by address" + claim
	case m.Level == "":
		return "claim by " + other + claim
	default:
		return fmt.Sprintf("claim by %s, which gives %s or nearer%s", other, m.Level, claim)
	}
}

func (c *comparison) missing(attribute string) string {
	switch attribute {
	case dradriver.PCIeRoot:
		return c.instead(byRoot) + " (drivers find no pcieRoot below the VMBus of Hyper-V, nor at addresses with a domain of five digits)"
	case dradriver.NUMANode:
		return c.instead(byNUMA) + ", or upgrade the driver if a newer one publishes numaNode"
	}
	return "no claim can select these devices by it; upgrade the driver, or see the log of its Pod on the node"
}

// findMatch looks for GPUs for which a claim by pcieRoot waits forever.
func (c *comparison) findMatch() {
	if len(c.nics) == 0 || len(c.alone) == 0 {
		return
	}
	c.say(Finding{
		Code: NoMatch, Attribute: dradriver.PCIeRoot, Devices: c.alone, Fix: c.instead(byRoot),
		Text: fmt.Sprintf("%d of %s have the pcieRoot of no RDMA NIC that is published: a Pod that claims such a pair stays Pending", len(c.alone), show.Count(len(c.gpus), "GPU")),
	})
}
