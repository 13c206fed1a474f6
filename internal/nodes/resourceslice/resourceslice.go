// Package resourceslice compares what DRA drivers have published of GPUs and NICs with what the
// agents have found: which attributes are missing or differ, and how many GPUs a claim can
// match with a NIC. It is pure; package apiserver reads both.
package resourceslice

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/dradriver"
	"gdr-features/internal/nodes"
	"gdr-features/internal/show"
)

// Slice is what is compared of a ResourceSlice of one node (k8s.io/api, resource/v1).
type Slice struct {
	Node    string            `json:"nodeName"`
	Driver  *dradriver.Driver `json:"-"`
	Pool    `json:"pool"`
	Devices []Device `json:"devices"`
}

// Pool is the pool that a slice is part of. Only slices of a pool's newest generation count,
// and a pool is complete when there are Count of them.
type Pool struct {
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	Count      int64  `json:"resourceSliceCount"`
}

// Device is a device of a slice.
type Device struct {
	Name string `json:"name"`
	// Attributes are by their full names.
	Attributes map[string]Values `json:"attributes"`

	driver  *dradriver.Driver
	address string // its PCI address, "" if it has none
}

// Values are those of an attribute, as text; most have one. The attribute is an object with
// one key, which says the type: {"int": 1}, or from Kubernetes 1.36 on {"ints": [1, 2]}.
type Values []string

// UnmarshalJSON implements json.Unmarshaler.
func (v *Values) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // large integers stay as they are
	var typed map[string]any
	if err := d.Decode(&typed); err != nil {
		return err
	}
	for _, value := range typed {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, one := range list {
			*v = append(*v, fmt.Sprint(one))
		}
	}
	return nil
}

// rdma reports whether it is published as a NIC with an RDMA device.
func (d *Device) rdma() bool { return d.value(d.driver.RDMA) == "true" }

// counts reports whether it is published as a GPU, or as a NIC with an RDMA device.
func (d *Device) counts() bool { return d.driver.GPUs != "" || d.rdma() }

func (d *Device) sameFunction(other *Device) bool { return d.address == other.address }

// whole reports whether it is of the DeviceClass of its driver's name: a GPU, not a part of one.
func (d *Device) whole() bool {
	kind := d.value(d.driver.Type)
	return kind == "" || kind == d.driver.Whole
}

// value returns the first value of an attribute, "" for none.
func (d *Device) value(attribute string) string {
	if values := d.Attributes[attribute]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Node is a node with what is published of it.
type Node struct {
	// Agent is what the agent has published. Its Hardware is nil if there is no agent.
	Agent nodes.Node `json:"-"`
	// Drivers are the names of those that have published devices.
	Drivers []string `json:"drivers"`
	// GPUs and NICs count functions. Only NICs with an RDMA device count.
	GPUs Count `json:"gpus"`
	NICs Count `json:"nics"`
	// Matches are by "pcieRoot", "numaNode" and "address", the ways of claims.
	Matches  map[string]Match `json:"matches"`
	Findings []Finding        `json:"findings"`
}

// Count is how many functions the agent has listed, and how many of any are published.
type Count struct {
	Listed    int `json:"listed"`
	Published int `json:"published"`
}

// Compare compares the slices of each node with what its agent has published. Nodes without
// an agent are among the result if they have GPUs. The result is sorted by name.
func Compare(agents []nodes.Node, all []Slice) []Node {
	of := map[string][]Slice{}
	for _, s := range all {
		of[s.Node] = append(of[s.Node], s)
	}
	var compared []Node
	for i := range agents {
		compared = append(compared, compare(agents[i], of[agents[i].Name]))
	}
	for i := range agents {
		delete(of, agents[i].Name)
	}
	for name, published := range of {
		if slices.ContainsFunc(published, func(s Slice) bool { return s.Driver.GPUs != "" }) {
			compared = append(compared, compare(nodes.Node{Name: name}, published))
		}
	}
	slices.SortStableFunc(compared, func(a, b Node) int { return strings.Compare(a.Agent.Name, b.Agent.Name) })
	return compared
}

type comparison struct {
	Node
	listed map[string]*listed // by address
	// devices are all that the scheduler may give out: those of complete pools.
	devices []*Device
	// gpus and nics are devices of different functions; nics only those with RDMA.
	gpus, nics []*Device
	// alone are the GPUs that have the pcieRoot of none of nics.
	alone []string
	// unusable say why the scheduler gives out no devices of a pool, one finding a driver.
	unusable map[*dradriver.Driver]Finding
}

type listed struct {
	nodes.Function
	rdma []string // the names of its RDMA devices
}

func compare(agent nodes.Node, published []Slice) Node {
	c := comparison{
		Node:   Node{Agent: agent, Drivers: []string{}, Matches: map[string]Match{}, Findings: []Finding{}},
		listed: map[string]*listed{}, unusable: map[*dradriver.Driver]Finding{},
	}
	if agent.Hardware != nil {
		c.list(agent.Hardware)
	}
	c.take(published)
	for d := range dradriver.All() {
		if slices.ContainsFunc(published, func(s Slice) bool { return s.Driver == d }) {
			c.Drivers = append(c.Drivers, d.Name)
		}
	}
	c.match()
	c.find()
	return c.Node
}

// publishes reports whether a driver has published anything.
func (c *comparison) publishes(d *dradriver.Driver) bool { return slices.Contains(c.Drivers, d.Name) }

func (c *comparison) list(h *nodes.Hardware) {
	for _, f := range h.GPUs {
		c.listed[f.Address] = &listed{Function: f}
	}
	c.GPUs.Listed = len(c.listed)
	for _, f := range h.NICs {
		at := c.listed[f.Address]
		if at == nil {
			at = &listed{Function: f}
			c.listed[f.Address] = at
		}
		if f.RDMA == "" {
			continue
		}
		if at.rdma = append(at.rdma, f.RDMA); len(at.rdma) == 1 {
			c.NICs.Listed++
		}
	}
}

// take takes over the devices of the newest generation of each pool. The scheduler gives no
// device of a pool that is not complete or has a name twice, and takes its older generations for
// outdated (k8s.io/dynamic-resource-allocation v0.35.3, structured/internal/stable,
// pools_stable.go, GatherPools and poolIsInvalid; allocator_stable.go, allocateOne).
func (c *comparison) take(published []Slice) {
	type pool struct {
		driver *dradriver.Driver
		name   string
	}
	pools := map[pool][]*Slice{}
	for i := range published {
		s := &published[i]
		of := pool{s.Driver, s.Name}
		switch now := pools[of]; {
		case now == nil, s.Generation > now[0].Generation:
			pools[of] = []*Slice{s}
		case s.Generation == now[0].Generation:
			pools[of] = append(now, s)
		}
	}
	for of, newest := range pools {
		if f, ok := unusable(of.driver.Name, newest); ok {
			c.unusable[of.driver] = f
			continue
		}
		for _, s := range newest {
			for i := range s.Devices {
				c.add(of.driver, &s.Devices[i])
			}
		}
	}
	slices.SortFunc(c.devices, func(a, b *Device) int {
		return cmp.Or(strings.Compare(a.driver.Name, b.driver.Name), strings.Compare(a.address, b.address), strings.Compare(a.Name, b.Name))
	})
	c.functions()
}

// unusable says why the scheduler gives out no devices of a pool with these slices.
func unusable(driver string, newest []*Slice) (Finding, bool) {
	if n, want := len(newest), newest[0].Count; int64(n) != want {
		return Finding{Code: PoolIncomplete, Driver: driver, Text: fmt.Sprintf("%s has published %s of its newest generation instead of %d, and until that is right the scheduler gives out none of its devices", driver, show.Count(n, "ResourceSlice"), want)}, true
	}
	seen := map[string]bool{}
	for _, s := range newest {
		for i := range s.Devices {
			name := s.Devices[i].Name
			if seen[name] {
				return Finding{Code: PoolInvalid, Driver: driver, Text: fmt.Sprintf("%s has published two devices of the name %s in one pool, so the scheduler gives out none of its devices", driver, name)}, true
			}
			seen[name] = true
		}
	}
	return Finding{}, false
}

func (c *comparison) add(driver *dradriver.Driver, d *Device) {
	d.driver = driver
	for _, attribute := range driver.Addresses {
		if d.address = d.value(attribute); d.address != "" {
			break
		}
	}
	c.devices = append(c.devices, d)
}

// functions picks one device of each function, which may also be published in parts or twice.
func (c *comparison) functions() {
	seen := map[string]bool{}
	for _, d := range c.devices {
		if d.address != "" && seen[d.address] {
			continue
		}
		switch {
		case d.driver.GPUs != "" && d.whole():
			c.gpus = append(c.gpus, d)
		case d.rdma():
			c.nics = append(c.nics, d)
		default:
			continue
		}
		seen[d.address] = true
	}
	c.GPUs.Published, c.NICs.Published = len(c.gpus), len(c.nics)
}
