// Package picture shows a machine as a page (HTML) and as a graph (Dot): the PCI tree, colored
// by level, and the matrix. It is pure; the layout is left to the browser and to Graphviz.
package picture

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/report"
	"gdr-features/internal/show"
	"gdr-features/internal/view"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

const (
	// most is how many GPUs, and how many NICs, are shown: working machines have fewer.
	most         = 64
	mostProblems = 20
)

// colors of a level: of a cell, its text, a box. They differ in lightness for the color-blind.
type colors struct{ Fill, Text, Line string }

// levels are all levels that a cell of the matrix can have, the nearest first.
var levels = []struct {
	Level       topology.Level
	Light, Dark colors
}{
	{topology.PIX, colors{"#0a7a55", "#ffffff", "#0a7a55"}, colors{"#22a97c", "#03130d", "#22a97c"}},
	{topology.PXB, colors{"#1d63b8", "#ffffff", "#1d63b8"}, colors{"#6aa7f2", "#04101f", "#6aa7f2"}},
	{topology.PHB, colors{"#fbe6ae", "#614300", "#b78103"}, colors{"#43370f", "#f5d478", "#d6a625"}},
	{topology.NODE, colors{"#fbe0cf", "#7d340a", "#d0601a"}, colors{"#472a12", "#f7b585", "#e2853f"}},
	{topology.SYS, colors{"#f5e3ec", "#80204f", "#b0447c"}, colors{"#401d30", "#f3abce", "#d36a9f"}},
	{topology.Unknown, colors{"#e7eaef", "#47525f", "#8d99aa"}, colors{"#2a3340", "#c3ccd8", "#67758a"}},
}

// light returns the colors of a level on white paper.
func light(level topology.Level) colors {
	for _, l := range levels {
		if l.Level == level {
			return l.Light
		}
	}
	return light(topology.Unknown)
}

// kind is what a device is; its text is a class of the page.
type kind string

const (
	gpu        kind = "gpu"
	nic        kind = "nic"
	dataDirect kind = "data-direct"
)

// device is a GPU, a NIC, or the data-direct function of a NIC.
type device struct {
	Kind kind
	// ID names GPUs and NICs by their indexes: g0, n0. Data-direct functions have none.
	ID                     string
	index                  int
	Name, Product, Address string
	NUMA, Driver           string // "-" for none
	// State is that of its ports, or why it takes no part; Good: a port is active.
	State string
	Good  bool
	// Eligible devices take part in GPUDirect RDMA.
	Eligible bool
	// Level is that of a GPU with its nearest NICs; of a NIC, the nearest one at
	// which a GPU has it as a nearest NIC. Near are the devices at the other end.
	Level topology.Level
	Near  []*device
	Rated bool // it has a level to show, be it an unknown one
	// Down: a NIC without an active port, or a GPU whose nearest NICs are all so.
	Down bool

	function *pci.Function // nil for a software device
	leaf     *node         // its node in the tree
}

// Short is the address as lspci prints it.
func (d *device) Short() string { return view.Short(d.Address) }

// Nearest is the level of the device and the devices at that level.
func (d *device) Nearest() string {
	switch {
	case len(d.Near) > 0:
		names := []string{d.Level.String() + ":"}
		for _, other := range d.Near {
			names = append(names, other.Name)
		}
		return strings.Join(names, " ")
	case d.Rated:
		return "unknown"
	case d.Kind == gpu && !d.Eligible:
		return "not rated"
	}
	return "none"
}

type model struct {
	Title  string         // the verdict in one line
	Word   string         // the verdict in a word
	Status finding.Status // the status of a finding that says the same
	Counts string         // how many GPUs and NICs there are
	// Missing says why there are no pairs, "" when there are some.
	Missing string
	GPUs    []*device
	NICs    []*device
	Others  []*device          // data-direct functions
	Matrix  [][]topology.Level // a row a GPU, a column a NIC
	Panels  []*node            // the trees of the NUMA nodes
	Notes   []string           // what is left out, and where the levels come from
	Causes  []*finding.Finding // the one with the verdict's reason, and those that warn
}

func newModel(r *report.Report) *model {
	m := &model{
		Title: view.Summary(&r.Node, r.Findings), Missing: view.Nothing(&r.Node),
		Counts: show.Count(len(r.Matrix.GPUs), "GPU") + ", " + show.Count(len(r.Matrix.NICs), "NIC"),
	}
	m.Word, m.Status = word(r)
	reason := r.Verdict.Reason
	for i := range r.Findings {
		switch f := &r.Findings[i]; {
		case f.Reason != "" && f.Reason == reason:
			m.Causes = slices.Insert(m.Causes, 0, f)
			reason = ""
		case f.Status == finding.StatusWarn:
			m.Causes = append(m.Causes, f)
		}
	}
	m.addDevices(r)
	for _, g := range m.GPUs {
		if g.Eligible {
			m.connect(g, &r.Matrix)
		}
	}
	m.Panels = newTree(r, m)
	if source := sources[r.Matrix.Source()]; source != "" {
		m.Notes = append(m.Notes, source)
	}
	return m
}

var sources = map[topology.Origin]string{
	topology.Virtual:  "Levels are those of the PCI tree that the hypervisor shows.",
	topology.FromFile: "Levels are those of the NCCL topology file; the tree is the machine's own.",
}

func word(r *report.Report) (string, finding.Status) {
	switch v := &r.Verdict; {
	case v.Ready == tristate.True && len(view.Warnings(r.Findings)) > 0:
		return "READY, WITH WARNINGS", finding.StatusWarn
	case v.Ready == tristate.True:
		return "READY", finding.StatusOK
	case v.Capable == tristate.False:
		return "NOT POSSIBLE", finding.StatusFail
	case v.Ready == tristate.False:
		return "NOT READY", finding.StatusFail
	}
	return "UNKNOWN", finding.StatusUnknown
}

// addDevices takes the devices that are shown, and their part of the matrix.
func (m *model) addDevices(r *report.Report) {
	for i := range r.Matrix.GPUs[:min(len(r.Matrix.GPUs), most)] {
		m.GPUs = append(m.GPUs, newGPU(i, r.Matrix.GPUs[i]))
	}
	m.Matrix = make([][]topology.Level, len(m.GPUs))
	folded, left := 0, len(r.Matrix.GPUs)-len(m.GPUs)
	for j := range r.Matrix.NICs {
		switch n := &r.Matrix.NICs[j]; {
		case view.Folded(&r.Node, n):
			folded++
		case len(m.NICs) == most:
			left++
		default:
			m.NICs = append(m.NICs, newNIC(j, n, r.Verdict.ActivePort))
			for i := range m.Matrix {
				m.Matrix[i] = append(m.Matrix[i], r.Matrix.PairsOf(i)[j].Level)
			}
		}
	}
	for i := range r.PCI.Functions {
		if f := &r.PCI.Functions[i]; f.DataDirectOf != nil && len(m.Others) < most {
			m.Others = append(m.Others, newDataDirect(f, m.NICs))
		}
	}
	if folded > 0 {
		m.Notes = append(m.Notes, show.Count(folded, "virtual function")+" left out, which have the levels of their physical ones.")
	}
	if left > 0 {
		m.Notes = append(m.Notes, fmt.Sprintf("Only the first %d GPUs and %d NICs are shown, %s left out; topo -o json lists all.", most, most, show.Count(left, "device")))
	}
}

func newGPU(i int, g topology.GPU) *device {
	d := &device{Kind: gpu, ID: fmt.Sprintf("g%d", i), index: i, Name: fmt.Sprintf("GPU%d", i), State: view.GPUNote(g), Eligible: g.Counts()}
	d.identify(g.Function)
	return d
}

// newNIC is a NIC on a machine where NICs that count have active ports, or have none. It is
// down where its ports are, and where it has no RDMA device while others do their work.
func newNIC(i int, n *topology.NIC, active tristate.State) *device {
	d := &device{
		Kind: nic, ID: fmt.Sprintf("n%d", i), index: i, Name: view.NICName(n), State: view.NICNote(n), Eligible: n.Counts(),
		Good:    n.Counts() && n.RDMA != nil && slices.ContainsFunc(n.RDMA.Ports, rdma.Port.Active),
		Down:    n.Counts() && verdict.HasActivePort(n) == tristate.False && (n.RDMA != nil || active == tristate.True),
		Product: "software device", Address: n.Address(), NUMA: "-", Driver: "-",
	}
	switch {
	case n.Function != nil:
		d.identify(n.Function)
	case d.Address != "": // a function that the PCI bus does not list
		d.Product, d.Driver = "unknown product", "?"
	}
	return d
}

// newDataDirect is a NIC's data-direct function. Only root can read which NIC it belongs to.
func newDataDirect(f *pci.Function, nics []*device) *device {
	d := &device{Kind: dataDirect, Name: "data-direct", State: "NIC not readable", Eligible: true}
	for _, n := range nics {
		if n.function != nil && n.function.DataDirect != nil && *n.function.DataDirect == f.Address {
			d.State, d.Good = "of "+n.Name, true
		}
	}
	d.identify(f)
	return d
}

func (d *device) identify(f *pci.Function) {
	d.function = f
	d.Product, d.Address, d.Driver, d.NUMA = view.Product(f), f.Address.String(), view.Driver(f), "-"
	if f.NearNUMA >= 0 {
		d.NUMA = fmt.Sprint(f.NearNUMA)
	}
}

// connect joins a GPU with the NICs near it.
func (m *model) connect(g *device, matrix *topology.Matrix) {
	near := matrix.GPUs[g.index].Near(topology.Usable)
	g.Level, g.Rated, g.Down = near.Level, len(m.NICs) > 0, true
	for _, n := range m.NICs {
		if slices.Contains(near.NICs, n.index) {
			g.Near, n.Near = append(g.Near, n), append(n.Near, g)
			n.Level, n.Rated = nearer(n.Level, g.Level), true
			g.Down = g.Down && n.Down
		}
	}
	g.Down = g.Down && len(g.Near) > 0
}

func nearer(a, b topology.Level) topology.Level {
	if b.Rank() < a.Rank() {
		return b
	}
	return a
}
