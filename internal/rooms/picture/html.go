package picture

import (
	"cmp"
	_ "embed" // for the style
	"html"
	"io"
	"slices"
	"strconv"
	"strings"

	"gdr-features/docs/reasons"
	"gdr-features/internal/finding"
	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/view"
	"gdr-features/topology"
)

// style has comments where the rules for levels and for devices belong.
//
//go:embed page.css
var style markup

// HTML writes one self-contained page. It has no script, its content security policy forbids
// loading and sending anything, and everything from the machine is escaped. name is the
// machine's, "" where it has none.
func HTML(w io.Writer, r *report.Report, name string) error {
	m := newModel(r)
	if name != "" {
		m.Title = name + ": " + m.Title
	}
	p := paper{text: new(strings.Builder), escape: html.EscapeString}
	p.put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta name="referrer" content="no-referrer"/>
<title>%s</title>
<style>
`, m.Title)
	p.style(m)
	p.put("</style>\n</head>\n<body>\n<main>\n")
	p.header(m)
	p.putIf("\n<p>%s</p>", m.Missing)
	p.tree(m)
	for _, note := range m.Notes {
		p.put("\n<p class=\"note\">%s</p>", note)
	}
	if m.Missing == "" {
		p.matrix(m)
	}
	p.checks(r.Findings)
	p.problems(r.Problems)
	p.devices(slices.Concat(m.GPUs, m.NICs))
	p.explanations(r.Findings)
	p.put("\n</main>\n</body>\n</html>\n")
	return p.writeTo(w)
}

// style writes the rules of the page. Nothing in them is from the machine.
func (p paper) style(m *model) {
	head, rest := style.cut("\n/* levels */")
	dark, rest := rest.cut("\n/* levels in the dark */")
	boxes, tables := rest.cut("\n/* focus */")
	p.put(head)
	for _, l := range levels {
		p.levelStyle(l.Level, l.Light)
	}
	p.put(dark)
	for _, l := range levels {
		p.levelStyle(l.Level, l.Dark)
	}
	p.put(boxes)
	for _, d := range slices.Concat(m.GPUs, m.NICs) {
		p.put("\nmain:has(#%s:focus) .dims:not(.%s){opacity:.22}", d.ID, d.ID)
	}
	p.put(tables)
}

func (p paper) levelStyle(l topology.Level, c colors) {
	p.put("\n.%s{--fill:%s;--on-fill:%s;--line:%s}", class(l, false), c.Fill, c.Text, c.Line)
}

// class is the class of what has a level, be it an unknown one; down: a NIC at that level has
// no active port.
func class(l topology.Level, down bool) string {
	name := cmp.Or(l.String(), "unknown")
	if down {
		name += " down"
	}
	return name
}

// letters are what a cell says of a level.
func letters(l topology.Level) string { return cmp.Or(l.String(), "?") }

// header is the verdict, with what is behind it: the finding that has its reason, and those
// that warn.
func (p paper) header(m *model) {
	p.put(`<header><strong class="status %s">%s</strong><h1>%s</h1>
<p class="faint">%s</p>`, string(m.Status), m.Word, m.Title, m.Counts)
	for _, f := range m.Causes {
		p.put("\n<p class=\"cause %s\">%s: ", string(f.Status), f.Check)
		p.code(f)
		p.put("%s", f.Detail)
		if f.Status != finding.StatusWarn { // the table of checks has these
			p.putIf("<br/><strong>fix:</strong> %s", f.FixText())
		}
		p.put("</p>")
	}
	p.put("</header>")
}

// code is a finding's code, a link to what it means.
func (p paper) code(f *finding.Finding) {
	if f.Code != "" {
		p.put(`<a href="#%s">%s</a>: `, string(f.Code), string(f.Code))
	}
}

// explanations are the pages about the codes of the findings.
func (p paper) explanations(list []finding.Finding) {
	var codes []string
	for i := range list {
		if code := string(list[i].Code); code != "" && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	if len(codes) == 0 {
		return
	}
	p.put("\n<section><h2>What the codes mean</h2>")
	for _, code := range codes {
		page, _ := reasons.Page(code)
		_, text, _ := strings.Cut(page, "\n")
		p.put("\n<section id=\"%s\"><h3>%s</h3>\n<pre>%s</pre></section>", code, code, strings.TrimSpace(text))
	}
	p.put("\n</section>")
}

func (p paper) columns(names ...string) {
	p.put("\n<thead><tr>")
	for _, name := range names {
		p.put(`<th scope="col">%s</th>`, name)
	}
	p.put("</tr></thead>\n<tbody>")
}

// matrix is the table of levels, with what they mean beside it.
func (p paper) matrix(m *model) {
	p.put("\n<section><h2>Matrix</h2>\n" +
		`<div class="beside"><div class="scroll" role="region" aria-label="Matrix" tabindex="0"><table class="matrix`)
	if len(m.NICs) >= 16 {
		p.put(" many")
	}
	p.put("\">\n<caption>How near each GPU is to each NIC</caption>")
	heads := []string{"GPU"}
	for _, n := range m.NICs {
		heads = append(heads, n.Name)
	}
	p.columns(append(heads, "NUMA")...)
	for i, g := range m.GPUs {
		p.put("\n<tr class=\"dims %s\"><th scope=\"row\">%s <code>%s</code></th>", g.group(), g.Name, g.Short())
		for j, l := range m.Matrix[i] {
			p.put(`<td class="level %s">%s</td>`, class(l, m.NICs[j].Down), letters(l))
		}
		p.put("<td>%s</td></tr>", g.NUMA)
	}
	p.put("\n</tbody></table></div>\n<dl>")
	for _, l := range levels {
		if l.Level != topology.Unknown {
			p.put("\n<div><dt class=\"level %s\">%s</dt><dd>%s</dd></div>", class(l.Level, false), letters(l.Level), view.Meanings[l.Level])
		}
	}
	if slices.ContainsFunc(m.NICs, func(n *device) bool { return n.Down }) {
		p.put("\n<div><dt class=\"level down\">down</dt><dd>this NIC has no active port</dd></div>")
	}
	p.put("\n</dl></div></section>")
}

func (p paper) checks(list []finding.Finding) {
	p.put("\n<section><h2>Checks</h2>\n<table class=\"list\">\n<caption>What GPUDirect RDMA needs</caption>")
	p.columns("Status", "Check", "Found, and what to do")
	for i := range list {
		f := &list[i]
		p.put("\n<tr><td class=\"%s\"><strong>%s</strong></td><th scope=\"row\">%s</th><td>", string(f.Status), string(f.Status), f.Check)
		p.code(f)
		p.put("%s", f.Detail)
		p.putIf("<p><strong>fix:</strong> %s</p>", f.FixText())
		if f.Status != finding.StatusOK {
			p.put(`<p class="faint">read from: <code>%s</code></p>`, strings.Join(f.Sources, " "))
		}
		p.put("</td></tr>")
	}
	p.put("\n</tbody></table></section>")
}

func (p paper) problems(list []error) {
	if len(list) == 0 {
		return
	}
	p.put("\n<section><h2>Not readable</h2>\n<ul>")
	for _, problem := range sanitize.Errors(list[:min(len(list), mostProblems)]) {
		p.put("\n<li><code>%s</code></li>", problem)
	}
	p.put("\n</ul>")
	if more := len(list) - mostProblems; more > 0 {
		p.put(`<p class="note">and %s more (check -o json lists them)</p>`, strconv.Itoa(more))
	}
	p.put("</section>")
}

func (p paper) devices(list []*device) {
	if len(list) == 0 {
		return
	}
	p.put("\n<section><h2>Devices</h2>\n" +
		`<div class="scroll" role="region" aria-label="Devices" tabindex="0"><table class="list">` +
		"\n<caption>What each GPU and NIC is</caption>")
	p.columns("Name", "Address", "Product", "NUMA", "Driver", "State", "Nearest")
	for _, d := range list {
		p.put("\n<tr><th scope=\"row\">%s</th><td><code>%s</code></td>", d.Name, d.Address)
		for _, cell := range []string{d.Product, d.NUMA, d.Driver, d.State, d.Nearest()} {
			p.put("<td>%s</td>", cell)
		}
		p.put("</tr>")
	}
	p.put("\n</tbody></table></div></section>")
}

// tree is the PCI tree as boxes: a panel for each NUMA node, in it root buses and the rest.
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
	return form + " meets " + class(n.Meets, n.Lost)
}

func (p paper) device(d *device) {
	p.put("\n<li class=\"%s\"", d.classes())
	p.putIf(` id="%s" tabindex="0"`, d.ID)
	p.put(">\n<p><strong>%s</strong>", d.Name)
	if d.Rated && d.Kind == gpu {
		p.put(`<span class="level %s">%s</span>`, class(d.Level, d.Down), letters(d.Level))
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
		list = append(list, class(d.Level, d.Down))
	}
	if d.ID != "" {
		list = append(list, "dims")
	}
	return strings.Join(append(list, d.group()), " ")
}

// group are the IDs of the device and those near it: what stays bright while one has the focus.
func (d *device) group() string {
	ids := []string{d.ID}
	for _, other := range d.Near {
		ids = append(ids, other.ID)
	}
	return strings.Join(ids, " ")
}
