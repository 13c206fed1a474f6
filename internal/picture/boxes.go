package picture

import (
	"strconv"
	"strings"

	"gdr-features/topology"
)

// tree is the PCI tree as boxes: a panel for each NUMA node, in it root buses, bridges
// and devices.
func (p paper) tree(m *model) {
	if len(m.Panels) == 0 {
		return
	}
	p.put("\n<section><h2>PCI tree</h2>\n<div class=\"panels\">")
	for _, panel := range m.Panels {
		p.put("\n<section class=\"%s\" style=\"--buses:%s\">", panel.classes("panel"), strconv.Itoa(len(panel.Below)))
		p.put("<div><h3>%s</h3><span class=\"faint\">%s</span></div>\n<ul class=\"buses\">", panel.Name, panel.Holds())
		for _, bus := range panel.Below {
			p.node(bus)
		}
		p.put("</ul></section>")
	}
	p.put("\n</div>")
	if m.Missing == "" {
		p.put(`
<p class="note">A colored frame is where a GPU and its nearest NICs meet, in the color of their level.
<span class="hint">Click a GPU or a NIC, or press Tab, to highlight what is nearest to it.</span></p>`)
	}
	p.put("</section>")
}

// node is the box of a root bus or bridge with those below it, or that of a device.
func (p paper) node(n *node) {
	if n.Device != nil {
		p.device(n.Device)
		return
	}
	p.put("\n<li class=\"%s\"><p>", n.classes(string(n.Form)))
	switch n.Form {
	case rootBus:
		p.put("<code>%s</code>", n.Name)
	case rootPort:
		p.put(`<span class="faint">%s %s</span>`, n.Name, n.Address)
	default:
		p.put(`<strong>%s %s</strong> <span class="faint">%s</span>`, n.Name, n.Address, n.Product)
	}
	p.put("</p>\n<ul class=\"below\">")
	for _, child := range n.Below {
		p.node(child)
	}
	p.put("</ul></li>")
}

func (n *node) classes(form string) string {
	if n.Meets == topology.Unknown {
		return form
	}
	return form + " meets " + n.Meets.String()
}

func (p paper) device(d *device) {
	p.put("\n<li class=\"%s\"", d.classes())
	p.putIf(` id="%s" tabindex="0"`, d.ID)
	p.put(">\n<p><strong>%s</strong>", d.Name)
	if d.Rated && d.Kind == gpu {
		p.put(`<span class="level %s">%s</span>`, class(d.Level), letters(d.Level))
	}
	p.put("</p>\n<p class=\"faint\">%s</p>", d.Product)
	p.putIf(`<p class="faint"><code>%s</code></p>`, d.Short())
	if d.ID != "" && d.Address != "" && d.Driver == "-" {
		p.put(`<p class="bad">no driver</p>`)
	}
	if d.Good {
		p.putIf(`<p class="good">%s</p>`, d.State)
	} else {
		p.putIf(`<p class="bad">%s</p>`, d.State)
	}
	if d.Rated {
		p.put(`<p class="unseen">Nearest at %s.</p>`, d.Nearest())
	}
	p.put("</li>")
}

func (d *device) classes() string {
	list := []string{"device", string(d.Kind)}
	if !d.Eligible {
		list = append(list, "ineligible")
	}
	if d.Level != topology.Unknown {
		list = append(list, d.Level.String())
	}
	if d.ID != "" {
		list = append(list, "dims")
	}
	return strings.Join(append(list, d.group()), " ")
}

// group are the classes of what stays bright while the device, or one near it, has the
// focus: the IDs of all of them.
func (d *device) group() string {
	ids := []string{d.ID}
	for _, other := range d.Near {
		ids = append(ids, other.ID)
	}
	return strings.Join(ids, " ")
}
