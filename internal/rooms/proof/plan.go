// Package proof plans transfers that show whether the GPUs and NICs of a node exchange data
// directly, and reads what perftest printed about them. It starts no program.
package proof

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/rooms/assign"
	"gdr-features/source/container"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Plan is what measures the GPUs of a node, each with each of its near NICs.
type Plan struct {
	Steps []Step `json:"steps"`
	// NotMeasured are the GPUs without a step, and NotUsed the NICs near a GPU without one.
	NotMeasured []Reason `json:"notMeasured"`
	NotUsed     []Reason `json:"notUsed"`
}

// Step is a transfer from a client to a server, both on this node and on the same port of a NIC.
type Step struct {
	Name string `json:"name"`
	// GPU is "" for the baseline, which uses host memory on both sides.
	GPU   string `json:"gpu,omitempty"`
	NIC   string `json:"nic"`
	Level string `json:"level,omitempty"`
	Way   Way    `json:"way"`
	Rates Rates  `json:"rates,omitzero"`
	// Options are for both sides; Server and Client choose the memory of one side. Each transfer has
	// a TCP port of its own (-p), which the script counts.
	Options []string `json:"options"`
	Server  []string `json:"server"`
	Client  []string `json:"client"`
	// IfItFails are the transfers with GPU memory on one side alone.
	IfItFails []Step `json:"ifItFails,omitempty"`
}

// Reason says why something is not measured.
type Reason struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Way is how the NIC gets to the memory.
type Way string

// The ways, and host memory for the baseline.
const (
	Host    Way = "host"
	DMABuf  Way = "dmabuf"
	Peermem Way = "peermem"
)

// What is added to the name of a step for the transfers with GPU memory on one side.
const serverAlone, clientAlone = "_server", "_client"

// Options of all transfers. The size is the program's default: more than a megabyte is in flight
// (128 messages), and little memory is locked. The duration bounds a step on slow links, too. A write
// reads the client's memory and writes the server's, so that GPU memory on both sides shows both
// directions over PCI Express.
const always = "-s 65536 -D 5 -F --report_gbits"

// Rates are what a NIC can, in Gbit/s; 0 for unknown: its port, and its PCI Express link as it runs
// now, before the headers of packets.
type Rates struct {
	Port float64 `json:"portGbps,omitempty"`
	PCIe float64 `json:"pcieGbps,omitempty"`
}

// RatesOf are the rates of a NIC by the name of its RDMA device.
func RatesOf(node *verdict.Node, nic string) Rates {
	m := assign.NewMachine(node, func(string) bool { return true })
	if n := m.Find(nic); n != nil {
		return ratesOf(m, n)
	}
	return Rates{}
}

func ratesOf(m *assign.Machine, nic *assign.NIC) Rates {
	card, _ := m.Node.PCI.Slot(m.Node.PCI.Place(m.Of(nic).Function))
	return Rates{nic.RateGbps, math.Round(card.Link.Carries()*10) / 10}
}

// Facts are what a plan needs beside the machine.
type Facts struct {
	GIDs     []container.GIDTable
	Divided  map[pci.Address]bool // the GPUs with MIG instances
	Problems []error              // what could not be read
}

type planner struct {
	assign.Here
	Facts
	*assign.Assignment
	plan      Plan
	baselines map[string]bool
	rocm      int // the number that ROCm gives the next GPU of AMD
}

// New plans for the GPUs that this process can use, with the NICs that env gives them.
func New(here assign.Here, facts Facts) Plan {
	p := planner{Here: here, Facts: facts, Assignment: here.Assign(), baselines: map[string]bool{}}
	p.plan = Plan{Steps: []Step{}, NotMeasured: []Reason{}, NotUsed: []Reason{}}
	for _, c := range p.Choices {
		p.gpu(c)
	}
	return p.plan
}

func (p *planner) gpu(c assign.Choice) {
	name := c.GPU.Address.String()
	memory := p.memory(c.GPU)
	not := func(why string) { p.plan.NotMeasured = append(p.plan.NotMeasured, Reason{name, why}) }
	switch {
	case !c.GPU.Counts():
		not("this GPU cannot do GPUDirect RDMA")
		return
	case memory == nil:
		not("perftest has no option for the memory of this GPU")
		return
	case p.Divided[c.GPU.Address]:
		not("it is divided into MIG instances, and perftest takes whole GPUs")
		return
	}
	p.unusable(c)
	before := len(p.plan.Steps)
	var lacks []Reason // each why once
	for _, nic := range c.Near {
		why := p.pair(c, nic, memory)
		at := slices.IndexFunc(lacks, func(r Reason) bool { return r.Why == why })
		switch {
		case why == "":
		case at < 0:
			lacks = append(lacks, Reason{nic.RDMA, why})
		default:
			lacks[at].What += ", " + nic.RDMA
		}
	}
	for _, lack := range lacks {
		if len(p.plan.Steps) > before {
			p.notUsed(name, lack.What+": "+lack.Why)
		} else {
			not(lack.What + ": " + lack.Why)
		}
	}
	if len(c.Near) == 0 {
		not("no near NIC can be used here")
	}
}

func (p *planner) notUsed(gpu, why string) {
	p.plan.NotUsed = append(p.plan.NotUsed, Reason{gpu, why})
}

// memory are the options for the memory of a GPU by each way, nil for a family that perftest does
// not know. ROCm counts GPUs in the order of the kernel; that is taken to be the order of their
// addresses, and what perftest prints of the bus shows where it is not. CUDA takes an address.
func (p *planner) memory(gpu *topology.GPU) map[Way][]string {
	switch gpu.GPU.Name {
	case "nvidia":
		bus := "--use_cuda_bus_id=" + gpu.Address.String()
		return map[Way][]string{Peermem: {bus}, DMABuf: {bus, "--use_cuda_dmabuf"}}
	case "amd":
		number := "--use_rocm=" + strconv.Itoa(p.rocm)
		p.rocm++
		return map[Way][]string{Peermem: {number}, DMABuf: {number, "--use_rocm_dmabuf"}}
	}
	return nil
}

// unusable notes the nearest NICs of a GPU that cannot be used now.
func (p *planner) unusable(c assign.Choice) {
	for _, i := range c.GPU.Near(topology.Usable).NICs {
		n := &p.Matrix.NICs[i]
		name, why := n.Name(), "this process cannot use it: it has no device node here, or is in another network namespace"
		switch {
		case p.Usable(i) != nil:
			continue
		case n.RDMA == nil:
			name, why = n.Address(), "it has no RDMA device here"
		case !slices.Contains(p.Hidden, n.RDMA.Name):
			why = "no port is active" + states(n.RDMA.Ports)
		}
		p.notUsed(c.GPU.Address.String(), name+": "+why)
	}
}

func states(ports []rdma.Port) string {
	var all []string
	for _, port := range ports {
		all = append(all, fmt.Sprintf("%d is %s", port.Number, cmp.Or(port.State, "unknown")))
	}
	if len(all) == 0 {
		return ""
	}
	return " (port " + strings.Join(all, ", port ") + ")"
}

// pair adds the steps for a GPU and a NIC, or says why there is none.
func (p *planner) pair(c assign.Choice, nic *assign.NIC, memory map[Way][]string) (why string) {
	ways := p.ways(c.GPU, nic)
	common := []string{"-d", nic.RDMA, "-i", strconv.Itoa(nic.Port)}
	switch nic.LinkLayer {
	case "InfiniBand":
	case "Ethernet":
		index, why := p.gid(nic)
		if why != "" {
			return why
		}
		common = append(common, "-x", strconv.Itoa(index))
	default:
		return "its link layer is " + nic.LinkLayer + ", for which no options are known here"
	}
	if len(ways) == 0 {
		return fmt.Sprintf("neither peer memory nor DMA-BUF is in place (%s)", p.Node.Verdict.Reason)
	}
	rates := ratesOf(p.Assignment.Machine, nic)
	if !p.baselines[nic.RDMA] {
		p.baselines[nic.RDMA] = true
		p.add(Step{Name: nic.RDMA + "_host", NIC: nic.RDMA, Way: Host, Rates: rates}, common)
	}
	for _, way := range ways {
		gpu := c.GPU.Address.String()
		s := Step{
			Name: strings.ReplaceAll(gpu, ":", "-") + "_" + nic.RDMA + "_" + string(way),
			GPU:  gpu, NIC: nic.RDMA, Level: p.Level(c, nic).String(), Way: way, Rates: rates, Server: memory[way], Client: memory[way],
		}
		server, client := s, s
		server.Name, server.Client = s.Name+serverAlone, nil
		client.Name, client.Server = s.Name+clientAlone, nil
		s.IfItFails = []Step{server, client}
		p.add(s, common)
	}
	return ""
}

func (p *planner) add(s Step, common []string) {
	of := slices.Concat(common, strings.Fields(always))
	s.Options = of
	for i := range s.IfItFails {
		s.IfItFails[i].Options = of
	}
	p.plan.Steps = append(p.plan.Steps, s)
}

// ways are those that the node is not known to lack. What is known is about the two families that
// the node is judged by.
func (p *planner) ways(gpu *topology.GPU, nic *assign.NIC) (ways []Way) {
	v := &p.Node.Verdict
	judged := v.GPU == gpu.GPU && v.NIC == p.Of(nic).Function.NIC
	if !judged || v.DMABuf != tristate.False {
		ways = append(ways, DMABuf)
	}
	if !judged || v.Peermem != tristate.False {
		ways = append(ways, Peermem)
	}
	return ways
}

// gid is the index of the entry to use: one of IPv4 before others, as NCCL does.
func (p *planner) gid(nic *assign.NIC) (index int, why string) {
	at := slices.IndexFunc(p.GIDs, func(t container.GIDTable) bool { return t.Device.Name == nic.RDMA && t.Number == nic.Port })
	if at < 0 {
		return 0, "its GIDs are not known"
	}
	table := &p.GIDs[at]
	for _, fits := range []func(rdma.GID) bool{rdma.GID.IPv4, func(rdma.GID) bool { return true }} {
		for _, g := range table.GIDs {
			if p.UsableGID(g) && fits(g) {
				return g.Index, ""
			}
		}
	}
	if table.Unread {
		return 0, "its GIDs cannot be read"
	}
	return 0, "it has no RoCE v2 GID with a routable address here"
}
