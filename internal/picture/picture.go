// Package picture draws a machine: the PCI tree that leads to its GPUs and NICs,
// coloured by the level each GPU reaches, the matrix, and the verdict. A report
// becomes plain values, those a layout in whole pixels, and that SVG, HTML or
// Graphviz text. Everything is self-contained: no script, no font, nothing to
// load. It is pure and prints the same for the same report.
package picture

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/findings"
	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/view"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// most is how many GPUs, and how many NICs, are drawn. No machine has as many
// adapters; virtual functions are folded before.
const most = 64

// kind is what a device is in a picture.
type kind uint8

const (
	gpu kind = iota
	nic
	dataDirect
)

// device is a GPU, a NIC, or the data-direct function of a NIC.
type device struct {
	kind kind
	// id names GPUs and NICs within the picture: g0, n0, by their places in the
	// report's Matrix. Data-direct functions have none.
	id                     string
	name, product, address string
	numa, driver           string
	// notes are what to say of it in a few letters, said is all of it.
	notes []note
	said  string
	// level is the nearest one of a GPU, and for a NIC that of the GPU that has
	// it as its nearest. near are the devices at the other end.
	level topology.Level
	near  []*device
	// counted: eligible. Others are drawn faintly. rated: a level is to be shown,
	// be it unknown.
	counted, rated bool
	fn             *pci.Function // nil for a software device
}

// note is a short remark; good and bad are said by the words, too.
type note struct {
	text string
	bad  bool
}

// model is all that is drawn.
type model struct {
	title   string // the verdict in one line
	counts  string // what the machine has
	status  status
	gpus    []*device
	nics    []*device
	others  []*device // data-direct functions
	levels  [][]topology.Level
	panels  []panel
	legend  []legendEntry
	notes   []string // about what is not drawn, and what the levels rest on
	checks  []findings.Finding
	cause   *findings.Finding // the check that decides a bad verdict
	unread  []string
	nothing string // why there is no picture, "" when there is one
}

// status is the verdict in a word, and that of a check that would end so.
type status struct {
	word string
	like findings.Status
}

func statusOf(v *verdict.Verdict) status {
	switch {
	case v.Ready == tristate.True:
		return status{"READY", findings.OK}
	case v.Capable == tristate.False:
		return status{"NOT POSSIBLE", findings.Fail}
	case v.Ready == tristate.False:
		return status{"NOT READY", findings.Fail}
	}
	return status{"UNKNOWN", findings.Undecidable}
}

// legendEntry explains a level.
type legendEntry struct {
	level   topology.Level
	meaning string
}

// newModel takes from a report what is drawn.
func newModel(r *report.Report) *model {
	m := &model{title: view.Summary(r), status: statusOf(&r.Verdict), checks: r.Findings, unread: sanitize.Errors(r.Problems)}
	if i := slices.IndexFunc(m.checks, func(f findings.Finding) bool { return f.Reason != "" && f.Reason == r.Verdict.Reason }); i >= 0 {
		m.cause = &m.checks[i]
	}
	m.nothing = view.Nothing(r)
	index := m.addDevices(r)
	m.rate(r, index)
	m.link(r)
	m.panels = plant(r, m)
	for level, meaning := range view.Meanings {
		if meaning != "" {
			m.legend = append(m.legend, legendEntry{topology.Level(level), meaning})
		}
	}
	m.counts = count(len(r.Matrix.GPUs), "GPU") + ", " + count(len(r.Matrix.NICs), "NIC")
	switch r.Matrix.Origin {
	case topology.Virtual:
		m.notes = append(m.notes, "Levels are those of the PCI tree that the hypervisor shows.")
	case topology.FromFile:
		m.notes = append(m.notes, "Levels are those of the NCCL topology file; the tree is the machine's own.")
	case topology.Physical:
	}
	return m
}

// addDevices takes the devices that are drawn, and gives the NICs by their
// indexes in the Matrix, nil for one that is not drawn.
func (m *model) addDevices(r *report.Report) []*device {
	for i := range r.Matrix.GPUs[:min(len(r.Matrix.GPUs), most)] {
		m.gpus = append(m.gpus, newGPU(i, r.Matrix.GPUs[i]))
	}
	index := make([]*device, len(r.Matrix.NICs))
	folded, left := 0, 0
	for i := range r.Matrix.NICs {
		switch n := &r.Matrix.NICs[i]; {
		case view.Folded(r, n):
			folded++
		case len(m.nics) == most:
			left++
		default:
			index[i] = newNIC(i, n)
			m.nics = append(m.nics, index[i])
		}
	}
	for i := range r.PCI.Functions {
		if f := &r.PCI.Functions[i]; f.Kind() == pci.DataDirect && len(m.others) < most {
			m.others = append(m.others, newDataDirect(f, m.nics))
		}
	}
	if folded > 0 {
		m.notes = append(m.notes, count(folded, "virtual function")+" not drawn: they stand where their physical ones do.")
	}
	if left += len(r.Matrix.GPUs) - len(m.gpus); left > 0 {
		m.notes = append(m.notes, count(left, "device")+" more than fit into a picture; topo -o json lists all.")
	}
	return index
}

func newGPU(i int, g topology.GPU) *device {
	d := &device{kind: gpu, id: fmt.Sprintf("g%d", i), name: fmt.Sprintf("GPU%d", i), counted: g.Eligible, fn: g.Function}
	d.identify(g.Function)
	if note := view.GPUNote(g); note != "" {
		d.notes = append(d.notes, note1("not supported"))
		d.said = note
	}
	return d
}

func newNIC(i int, n *topology.NIC) *device {
	d := &device{
		kind: nic, id: fmt.Sprintf("n%d", i), name: view.NICName(n), counted: n.Eligible, fn: n.Function,
		product: "software device", address: n.Address(), driver: "-", numa: "-", said: view.NICNote(n),
	}
	switch {
	case n.Function != nil:
		d.identify(n.Function)
	case d.address != "": // the PCI bus does not list it
		d.product, d.driver = "unknown product", "?"
	}
	d.notes = append(d.notes, nicNotes(n)...)
	return d
}

// newDataDirect stands for the way that an adapter's data takes into a GPU's
// tree; whose it is shows to root only.
func newDataDirect(f *pci.Function, nics []*device) *device {
	d := &device{kind: dataDirect, name: "data-direct", fn: f, said: "which adapter it belongs to is not readable"}
	d.identify(f)
	for _, n := range nics {
		if n.fn != nil && n.fn.DataDirect != nil && *n.fn.DataDirect == f.Address {
			d.said = "of " + n.name
			d.notes = []note{{text: d.said}}
		}
	}
	return d
}

func (d *device) identify(f *pci.Function) {
	d.product, d.address, d.driver = view.Product(f), f.Address.String(), view.Driver(f)
	d.numa = "-"
	if f.NearNUMA >= 0 {
		d.numa = fmt.Sprint(f.NearNUMA)
	}
	if d.driver == "-" && d.kind != dataDirect {
		d.notes = append(d.notes, note1("no driver"))
	}
}

func note1(text string) note { return note{text: text, bad: true} }

// nicNotes are the states of the ports in the letters there is room for.
func nicNotes(n *topology.NIC) []note {
	switch {
	case n.Function != nil && n.Function.NVLinkManagement, n.RDMA != nil && n.RDMA.NVLinkManagement:
		return []note{note1("manages NVLink")}
	case n.RDMA == nil:
		return []note{note1("no RDMA device")}
	case !n.RDMA.PortsRead:
		return []note{note1("ports unreadable")}
	}
	var notes []note
	const room = 2
	for i, p := range n.RDMA.Ports {
		if i == room {
			notes = append(notes, note{text: fmt.Sprintf("and %d more", len(n.RDMA.Ports)-room)})
			break
		}
		notes = append(notes, note{text: portText(p), bad: !p.Active()})
	}
	if !n.Eligible {
		notes = append(notes, note1("not counted"))
	}
	return notes
}

// portText is "ACTIVE IB 400G".
func portText(p rdma.Port) string {
	layer := p.LinkLayer
	switch layer {
	case "InfiniBand":
		layer = "IB"
	case "Ethernet":
		layer = "Eth"
	case "":
		layer = "?"
	}
	state := p.State
	if state == "" {
		state = "?"
	}
	if p.RateGbps > 0 {
		return fmt.Sprintf("%s %s %gG", state, layer, p.RateGbps)
	}
	return state + " " + layer
}

// rate copies the matrix of what is drawn. The Map holds every GPU with every
// NIC in their order.
func (m *model) rate(r *report.Report, index []*device) {
	for i := range m.gpus {
		var row []topology.Level
		for j := range index {
			if index[j] != nil {
				row = append(row, r.Matrix.PairsOf(i)[j].Level)
			}
		}
		m.levels = append(m.levels, row)
	}
}

// link joins each GPU with the NICs at its nearest level.
func (m *model) link(r *report.Report) {
	for i, g := range m.gpus {
		g.rated = g.counted && len(m.nics) > 0
		if !g.counted {
			continue
		}
		g.level = r.Matrix.GPUs[i].Level
		for _, n := range m.nics {
			if !n.counted || !slices.Contains(r.Matrix.GPUs[i].Nearest, r.PCI.Place(n.fn)) { // a virtual one stands with its physical one
				continue
			}
			g.near, n.near = append(g.near, n), append(n.near, g)
			if n.level == topology.Unknown || g.level < n.level {
				n.level = g.level
			}
		}
	}
}

// label is what a screen reader says of a device.
func (d *device) label() string {
	words := []string{d.name, d.product, d.address}
	if d.numa != "-" {
		words = append(words, "NUMA node "+d.numa)
	}
	if d.driver == "-" {
		words = append(words, "no driver")
	} else {
		words = append(words, "driver "+d.driver)
	}
	if d.said != "" {
		words = append(words, d.said)
	}
	text := strings.Join(words, ", ") + "."
	switch {
	case d.kind == dataDirect:
	case d.kind == gpu && d.rated && d.level == topology.Unknown:
		text += " Nearest NIC unknown."
	case d.kind == gpu && d.rated:
		text += fmt.Sprintf(" Nearest NICs, at %v: %s.", d.level, names(d.near))
	case d.kind == nic && len(d.near) > 0:
		text += fmt.Sprintf(" Nearest, at %v, to %s.", d.level, names(d.near))
	}
	return text
}

// nearest is a level and who is at it.
func (d *device) nearest() string {
	switch {
	case len(d.near) > 0:
		return d.level.String() + ": " + names(d.near)
	case d.rated:
		return "unknown"
	case d.kind == gpu && !d.counted:
		return "not rated"
	}
	return "none"
}

func names(devices []*device) string {
	var list []string
	for _, d := range devices {
		list = append(list, d.name)
	}
	return strings.Join(list, " ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
