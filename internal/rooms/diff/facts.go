package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/view"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Facts, by the words that people read.
const (
	factLabel, factCheck                                = "label", "check"
	factGPU, factNIC                                    = "GPU", "NIC"
	factName, factLevel, factLink                       = "device name", "nearest NIC", "PCIe link"
	factPort, factLayer, factRate, factMTU, factGID     = "port", "link layer", "rate", "active MTU", "GID index"
	factKernel, factGPUDriver, factDriver, factFirmware = "kernel", "GPU driver", "driver", "firmware"
	factParameter, factIOMMU, factCommandLine, factNUMA = "parameter", "IOMMU type", "command line", "NUMA node"
)

// facts are all of them, what a job feels first before what may be behind it.
var facts = [...]string{
	factLabel, factCheck, factGPU, factNIC, factName, factLevel, factLink, factPort, factLayer, factRate, factMTU, factGID,
	factKernel, factGPUDriver, factDriver, factFirmware, factParameter, factIOMMU, factCommandLine, factNUMA,
}

func read(r *report.Report) *reading {
	list := &reading{at: map[id]entry{}}
	list.labels(r)
	for i := range r.Findings {
		f := &r.Findings[i]
		e := entry{fact: factCheck, of: f.Check, key: f.Check, value: strings.TrimSpace(string(f.Status) + " " + string(f.Code)), always: true}
		if f.Status != finding.StatusOK {
			e.detail = f.Detail
		}
		list.add(e)
	}
	for i := range r.Matrix.GPUs {
		list.gpu(r, i)
	}
	for i := range r.Matrix.NICs {
		list.nic(r, &r.Matrix.NICs[i])
	}
	list.software(r)
	return list
}

// wrong reports whether a check finds something that is not as it should be, or not known.
func (e entry) wrong() bool { return e.value != "" && e.value != string(finding.StatusOK) }

// labels begin with those that schedulers act on.
func (l *reading) labels(r *report.Report) {
	names := slices.Concat([]string{label.Ready, label.Reason, label.Level}, r.Labels.Names(), slices.Sorted(maps.Keys(r.Unknown)))
	for _, name := range names {
		value, ok := r.Labels[name]
		if !ok && r.Unknown[name] {
			value, ok = Unknown, true
		}
		if ok {
			l.add(entry{fact: factLabel, of: name, key: name, value: value, always: true})
		}
	}
}

func (l *reading) gpu(r *report.Report, i int) {
	g := &r.Matrix.GPUs[i]
	at := g.Address.String()
	of := owner{list: l, of: fmt.Sprintf("GPU%d %s", i, at), device: at}
	l.add(entry{fact: factGPU, of: of.of, key: at, value: view.Product(g.Function), always: true})
	of.add(factLevel, "", g.Near(topology.Usable).Level.String())
	of.function(r, g.Function)
	of.add(factLink, "", lanes(g.Link)) // its speed is that of an idle GPU or a busy one
}

func (l *reading) nic(r *report.Report, n *topology.NIC) {
	at := cmp.Or(n.Address(), n.Name())
	if l.has(id{factNIC, at}) { // a further RDMA device of one function
		at += " " + n.Name()
	}
	of := owner{list: l, of: strings.TrimSpace(n.Name() + " " + n.Address()), device: at}
	product := "software device"
	if n.Function != nil {
		product = view.Product(n.Function)
	}
	l.add(entry{fact: factNIC, of: of.of, key: at, value: product, always: true})
	l.add(entry{fact: factName, of: of.of, key: at, value: n.Name(), device: at, always: true})
	if f := n.Function; f != nil {
		of.function(r, f)
		of.add(factLink, "", speedAndLanes(f.Link))
	}
	if n.RDMA == nil {
		return
	}
	of.add(factFirmware, "", sanitize.Terminal(n.RDMA.Firmware))
	for i := range n.RDMA.Ports {
		of.port(r, n.RDMA, &n.RDMA.Ports[i])
	}
}

// owner adds the facts of one device.
type owner struct {
	list       *reading
	of, device string
}

// add adds a fact of the device, or of one of its ports; "" is not known.
func (o owner) add(fact, port, value string) {
	of := strings.Replace(o.of, " ", port+" ", 1)
	o.list.add(entry{fact: fact, of: of, key: o.device + port, value: cmp.Or(value, Unknown), device: o.device})
}

func (o owner) function(r *report.Report, f *pci.Function) {
	driver := view.Driver(f)
	if driver == "?" {
		driver = Unknown
	}
	o.add(factDriver, "", driver)
	if f.NUMA != pci.Unread {
		o.add(factNUMA, "", strconv.Itoa(f.NUMA))
	}
	if group := f.IOMMUGroup; group >= 0 {
		o.add(factIOMMU, "", sanitize.Terminal(r.Platform.IOMMU.Types[group]))
	} else if group == pci.None {
		o.add(factIOMMU, "", "no group")
	}
}

func (o owner) port(r *report.Report, d *rdma.Device, p *rdma.Port) {
	number := fmt.Sprintf("/%d", p.Number)
	o.add(factPort, number, sanitize.Terminal(p.State))
	o.add(factLayer, number, sanitize.Terminal(p.LinkLayer))
	if !p.Active() { // what a port without traffic says of these does not count
		return
	}
	o.add(factRate, number, amount(p.RateGbps))
	mtu, _ := r.ActiveMTU(d, p)
	o.add(factMTU, number, amount(float64(mtu)))
	if p.LinkLayer == "Ethernet" {
		index := ""
		if p.RoCE.GIDIndex != nil {
			index = strconv.Itoa(*p.RoCE.GIDIndex)
		}
		o.add(factGID, number, index)
	}
}

func (l *reading) software(r *report.Report) {
	add := func(fact, of, value string, always bool) {
		l.add(entry{fact: fact, of: of, key: of, value: sanitize.Terminal(value), always: always})
	}
	add(factKernel, "", cmp.Or(r.Platform.Kernel, Unknown), false)
	for _, family := range slices.Sorted(maps.Keys(r.Kmod.Drivers)) {
		d := r.Kmod.Drivers[family]
		version := cmp.Or(d.Version, Unknown)
		if d.Open == tristate.True {
			version += " open"
		}
		if d.Loaded == tristate.False {
			version = ""
		}
		add(factGPUDriver, family, version, true)
	}
	if r.Kmod.ParamsUnread {
		add(factParameter, "of nvidia", Unknown, true)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Kmod.Params)) {
		add(factParameter, name, r.Kmod.Params[name], false)
	}
	add(factCommandLine, "", strings.Join(r.Platform.CommandLine, " "), false)
}

// amount writes a number; "" for 0, which is not known.
func amount(n float64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// speedAndLanes writes both; "" where one is not known.
func speedAndLanes(l *pci.Link) string {
	if l == nil || l.Speed == 0 || l.Width == 0 {
		return ""
	}
	return amount(l.Speed) + " GT/s " + lanes(l)
}

// lanes writes how many a link has; "" where that is not known.
func lanes(l *pci.Link) string {
	if l == nil || l.Width == 0 {
		return ""
	}
	return "x" + strconv.Itoa(l.Width)
}
