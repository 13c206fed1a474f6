package resourceslice

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/dradriver"
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

// row is the place of a code in fixes.
func row(code string) int {
	return slices.IndexFunc(fixes[:], func(r fix) bool { return r.code == code })
}

// order compares two codes by their row.
func order(a, b string) int { return row(a) - row(b) }

func (c *comparison) find() {
	if c.Agent.Hardware == nil {
		c.say(Finding{Code: NoAgent, Text: "no agent has published a NodeFeature of this node, so there is nothing to compare with"})
	}
	c.findDrivers()
	c.findDevices()
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

// few lists texts, as many as are easily read.
func few(all []string) string {
	const most = 3
	if len(all) <= most+1 {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// findDrivers looks for drivers that have published nothing, or not all.
func (c *comparison) findDrivers() {
	var nics []string
	published := false
	for d := range dradriver.All() {
		if f, ok := c.unusable[d]; ok {
			c.say(f)
		}
		if d.GPUs == "" {
			nics, published = append(nics, d.Name), published || c.drivers[d]
			continue
		}
		if n := len(c.listedFor(d)); n > 0 && !c.drivers[d] {
			c.say(Finding{Code: NoSlices, Driver: d.Name, Text: fmt.Sprintf("%s has published no ResourceSlice of this node, which has %s", d.Name, show.Count(n, "such GPU"))})
		}
	}
	if c.NICs.Listed > 0 && !published {
		c.say(Finding{Code: NoSlices, Text: fmt.Sprintf("neither %s has published a ResourceSlice of this node, which has %s", strings.Join(nics, " nor "), show.Count(c.NICs.Listed, "RDMA NIC"))})
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

// findDevices looks for devices that only one side knows, or two drivers.
func (c *comparison) findDevices() {
	by := map[string][]*dradriver.Driver{}   // the drivers of each address
	nameless := map[*dradriver.Driver]bool{} // those with devices of unknown address
	gone := map[*dradriver.Driver][]string{}
	for _, d := range c.devices {
		if d.address == "" {
			nameless[d.driver] = nameless[d.driver] || d.driver.GPUs != "" || d.rdma()
			continue
		}
		known := slices.Contains(by[d.address], d.driver)
		if !known {
			by[d.address] = append(by[d.address], d.driver)
		}
		if c.Agent.Hardware != nil && c.listed[d.address] == nil && !known && (d.driver.GPUs != "" || d.rdma()) {
			gone[d.driver] = append(gone[d.driver], d.address)
		}
	}
	for d := range dradriver.All() {
		if _, none := c.unusable[d]; none || !c.drivers[d] || nameless[d] || d.OnlyVirtual {
			continue
		}
		if left := slices.DeleteFunc(c.listedFor(d), func(address string) bool { return by[address] != nil }); len(left) > 0 {
			c.say(Finding{Code: NotPublished, Driver: d.Name, Devices: left, Text: d.Name + " does not publish " + few(left)})
		}
	}
	c.findParts()
	for d := range dradriver.All() {
		if g := gone[d]; len(g) > 0 {
			c.say(Finding{Code: NotListed, Driver: d.Name, Devices: g, Text: fmt.Sprintf("%s publishes %s, which the agent does not list", d.Name, few(g))})
		}
	}
	var twice []string
	for address, drivers := range by {
		if len(drivers) > 1 {
			twice = append(twice, address)
		}
	}
	if slices.Sort(twice); len(twice) > 0 {
		c.say(Finding{Code: PublishedTwice, Devices: twice, Text: "two drivers publish " + few(twice)})
	}
}

// findParts looks for GPUs of which only parts are published, which a claim for GPUs cannot get.
func (c *comparison) findParts() {
	for d := range dradriver.All() {
		var parts []string
		for _, of := range c.devices {
			is := func(gpu *Device) bool { return gpu.address == of.address }
			if of.driver == d && d.GPUs != "" && of.address != "" && !slices.ContainsFunc(c.gpus, is) && !slices.Contains(parts, of.address) {
				parts = append(parts, of.address)
			}
		}
		if len(parts) > 0 {
			c.say(Finding{Code: OnlyParts, Driver: d.Name, Devices: parts, Text: fmt.Sprintf("%s publishes %s only in parts (MIG) or for virtual machines (vfio): no claim of the DeviceClass %[1]s is given it", d.Name, few(parts))})
		}
	}
}

// expected is what a driver should publish of a listed function: the values of which it
// publishes one.
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

// findAttributes looks for attributes that are missing or differ, and makes one finding of all
// devices of a driver.
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
		if d.address == "" && (d.driver.GPUs != "" || d.rdma()) {
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
		c.word(f)
		c.say(*f)
	}
}

// instead says by what to claim if not by one attribute: by the other one if that serves every
// GPU, or else by address.
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

// missing says what to do if an attribute is missing.
func (c *comparison) missing(attribute string) string {
	switch attribute {
	case dradriver.PCIeRoot:
		return c.instead(byRoot) + " (drivers find no pcieRoot below the VMBus of Hyper-V, nor at addresses with a domain of five digits)"
	case dradriver.NUMANode:
		return c.instead(byNUMA) + ", or upgrade the driver if a newer one publishes numaNode"
	}
	return "no claim can select these devices by it; upgrade the driver, or see the log of its Pod on the node"
}

// word puts the finding about an attribute into words; that of an attribute that differs has the
// first device in its text.
func (c *comparison) word(f *Finding) {
	if f.Code == AttributeMissing {
		f.Text = fmt.Sprintf("%s publishes no %s of %s", f.Driver, f.Attribute, few(f.Devices))
		f.Fix = c.missing(f.Attribute)
	} else if n := len(f.Devices); n > 1 {
		f.Text += fmt.Sprintf("; %d devices differ", n)
	}
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
