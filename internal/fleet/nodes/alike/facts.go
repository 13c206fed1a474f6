package alike

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/fleet/nodes"
	"gdr-features/internal/label"
)

// fact is one in which the nodes of a kind should be alike.
type fact struct {
	// name is what people read, and key the same in JSON.
	name, key string
	// job: a job needs it alike on all nodes of its ranks.
	job bool
	// Either node or rail says what a node, or one of its NICs, has; "" for unknown. applies
	// reports whether a NIC has it at all; nil for every NIC.
	node    func(*machine) string
	rail    func(*nodes.Function) string
	applies func(*nodes.Function) bool
}

// facts are all of them. What a job needs alike for all its ranks comes first.
var facts = [...]fact{
	{name: "device names", key: "names", job: true, rail: func(f *nodes.Function) string { return f.RDMA }},
	{name: "active MTU", key: "mtu", job: true, applies: active, rail: func(f *nodes.Function) string { return f.MTU }},
	{name: "number of NICs", key: "nics", job: true, node: func(m *machine) string { return fmt.Sprint(len(m.nics)) }},
	{name: "number of GPUs", key: "gpus", job: true, node: func(m *machine) string { return fmt.Sprint(len(m.gpus)) }},
	{name: "link layer", key: "link", job: true, applies: active, rail: func(f *nodes.Function) string { return f.Link }},
	{name: "GID index", key: "gid", job: true, applies: roce, rail: func(f *nodes.Function) string { return f.GIDIndex }},
	{name: "port state", key: "port", job: true, rail: func(f *nodes.Function) string { return f.State }},
	{name: "rate", key: "rate", applies: active, rail: func(f *nodes.Function) string { return f.Rate }},
	{name: "NIC product", key: "product", rail: func(f *nodes.Function) string { return f.Name }},
	{name: "NUMA node of NIC", key: "numa", rail: func(f *nodes.Function) string { return f.NUMANode }},
	{name: "level", key: "level", node: labelled(label.Level)},
	{name: "ready", key: "ready", node: ready},
	{name: "findings", key: "findings", node: findings},
	{name: "peermem", key: "peermem", node: labelled(label.Peermem)},
	{name: "DMA-BUF", key: "dmabuf", node: labelled(label.DMABuf)},
	{name: "GPU driver", key: "driver", node: driver},
	{name: "RDMA stack", key: "stack", node: labelled(label.MOFED)},
	{name: "kernel", key: "kernel", node: func(m *machine) string { return m.node.Hardware.Software.Kernel }},
	{name: "IOMMU", key: "iommu", node: labelled(label.IOMMU)},
	{name: "ACS", key: "acs", node: labelled(label.ACS)},
}

// active: a port that carries no traffic has no MTU that counts, and another rate.
func active(f *nodes.Function) bool { return f.State == "ACTIVE" }

// roce: only there is an entry of the GID table chosen.
func roce(f *nodes.Function) bool { return active(f) && f.Link == "Ethernet" }

func labelled(name string) func(*machine) string {
	return func(m *machine) string { return m.node.Labels[name] }
}

// ready is "true", or "false NoActivePort".
func ready(m *machine) string {
	return strings.TrimSpace(m.node.Labels[label.Ready] + " " + m.node.Labels[label.Reason])
}

// findings are the codes of a node, sorted, "none" for none.
func findings(m *machine) string {
	var codes []string
	for _, f := range m.node.Findings {
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	return cmp.Or(strings.Join(slices.Compact(codes), " "), "none")
}

// driver is "570.86.15 open".
func driver(m *machine) string {
	s := m.node.Hardware.Software
	if s.Driver == "" {
		return ""
	}
	return strings.TrimSpace(s.Driver + map[string]string{"true": " open"}[s.DriverOpen])
}
