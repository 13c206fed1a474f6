package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/findings"
	"gdr-features/internal/report"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/topology"
)

// printed gives a form as text.
func printed(t testing.TB, form func(io.Writer, *report.Report) error, r *report.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := form(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// written gives a form as text, twice the same.
func written(t testing.TB, form func(io.Writer, *report.Report) error, r *report.Report) string {
	t.Helper()
	text := printed(t, form, r)
	if text != printed(t, form, r) {
		t.Error("printed differently the second time")
	}
	return text
}

// element is a start tag of a document with its attributes.
type element struct {
	name  string
	attrs map[string]string
	text  string
}

// parsed reads a document as strict XML, which the HTML is, too.
func parsed(t testing.TB, text string) []element {
	t.Helper()
	var list []element
	dec := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF):
			return list
		case err != nil:
			t.Fatalf("not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attrs: map[string]string{}}
			for _, a := range token.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			list = append(list, e)
		case xml.CharData:
			if len(list) > 0 {
				list[len(list)-1].text += string(token)
			}
		}
	}
}

// Elements and attributes there may be: none that loads or runs anything.
var (
	elements = strings.Fields("html head meta title style body main header span h1 h2 p figure figcaption section div dl dt dd table " +
		"caption thead tbody tr th td strong code br ul li svg desc g rect path text")
	attributes = strings.Fields("lang charset http-equiv content name class id scope xmlns role aria-labelledby aria-describedby aria-label " +
		"tabindex width height viewBox x y rx d font-size text-anchor")
)

// harmless finds what does not belong into a page that stands alone.
func harmless(t testing.TB, list []element) {
	t.Helper()
	ids := map[string]bool{}
	for _, e := range list {
		if !slices.Contains(elements, e.name) {
			t.Errorf("element %s", e.name)
		}
		for name, value := range e.attrs {
			if !slices.Contains(attributes, name) {
				t.Errorf("attribute %s of %s", name, e.name)
			}
			if name == "id" && ids[value] {
				t.Errorf("id %s twice", value)
			}
			ids[value] = ids[value] || name == "id"
		}
		if e.name == "style" && (strings.Contains(e.text, "url(") || strings.Contains(e.text, "@import")) {
			t.Error("the style loads something")
		}
	}
}

// checkForms: SVG and HTML are well-formed, load nothing, and
// have each GPU and NIC once, to be stepped to and read aloud.
func checkForms(t *testing.T, r *report.Report) {
	t.Helper()
	m := newModel(r)
	for name, form := range map[string]func(io.Writer, *report.Report) error{"svg": SVG, "html": HTML} {
		list := parsed(t, written(t, form, r))
		harmless(t, list)
		found := map[string]element{}
		for _, e := range list {
			if e.attrs["tabindex"] != "" {
				found[e.attrs["id"]] = e
			}
		}
		if len(found) != len(m.gpus)+len(m.nics) {
			t.Errorf("%s: %d of %d GPUs and NICs can be stepped to", name, len(found), len(m.gpus)+len(m.nics))
		}
		for _, d := range append(slices.Clone(m.gpus), m.nics...) {
			e := found[d.id]
			if label := e.attrs["aria-label"]; e.attrs["role"] != "img" || !strings.Contains(label, clean(d.name)) || !strings.Contains(label, d.address) {
				t.Errorf("%s: %s is read aloud as %q", name, d.name, label)
			}
		}
	}
	if text := written(t, Dot, r); dotFault(text) != "" {
		t.Errorf("dot: %s\n%s", dotFault(text), text)
	}
}

// dotFault checks text for Graphviz: braces in pairs, strings that end in their
// line, nothing printable outside them but the words of the language.
func dotFault(text string) string {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
			if i == len(text) || !strings.ContainsRune(`n"\`, rune(text[i])) {
				return "an unknown escape"
			}
		case c == '"':
			quoted = !quoted
		case quoted && c == '\n':
			return "a string that does not end"
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		case !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 \n[]=-", rune(c)):
			return fmt.Sprintf("%q outside a string", c)
		}
	}
	if depth != 0 || quoted {
		return "something is not closed"
	}
	return ""
}

// TestMatrixTable: the table of the page says of every pair what the Map says.
func TestMatrixTable(t *testing.T) {
	r := named(t, "dell-xe9680-h100", "ready")
	var cells []string
	for _, e := range parsed(t, written(t, HTML, r)) {
		if e.name == "td" && strings.HasPrefix(e.attrs["class"], "cell") {
			cells = append(cells, e.text)
		}
	}
	if len(cells) != len(r.Matrix.Pairs) || len(cells) != 8*12 {
		t.Fatalf("%d cells for %d pairs", len(cells), len(r.Matrix.Pairs))
	}
	for i, p := range r.Matrix.Pairs {
		if cells[i] != p.Level.String() {
			t.Errorf("pair %d: %s, want %v", i, cells[i], p.Level)
		}
	}
}

// TestVerdictOnPage: the reason, every finding and every fix can be read.
func TestVerdictOnPage(t *testing.T) {
	r := named(t, "a40-8gpu-2cx7-nccl1343", "closed-no-peermem")
	html, svg := written(t, HTML, r), written(t, SVG, r)
	for _, f := range r.Findings {
		for _, text := range []string{f.Detail, f.Fix} {
			if !strings.Contains(html, escape(text)) {
				t.Errorf("the page lacks %q", text)
			}
		}
		if first, _, _ := strings.Cut(f.Fix, " "); f.Status != findings.OK && !strings.Contains(svg, "fix: "+escape(first)) {
			t.Errorf("the picture lacks %q", f.Fix)
		}
	}
	if head, _, _ := strings.Cut(html, "</header>"); !strings.Contains(head, "fix:</strong> modprobe nvidia-peermem") {
		t.Errorf("the page does not begin with the fix:\n%s", head)
	}
	for name, text := range map[string]string{"page": html, "picture": svg} {
		if !strings.Contains(text, "not ready (PeermemNotLoaded)") {
			t.Errorf("the %s lacks the verdict", name)
		}
	}
}

// TestNoPicture: a machine without GPU says so.
func TestNoPicture(t *testing.T) {
	for name, want := range map[string]string{
		"bridges-only": "No RDMA device", "nic-only": "No NVIDIA GPU on this machine.",
	} {
		r := named(t, name, "ready")
		for _, form := range []func(io.Writer, *report.Report) error{SVG, HTML, Dot} {
			if text := written(t, form, r); !strings.Contains(text, want) {
				t.Errorf("%s does not say so:\n%s", name, text)
			}
		}
	}
	unread := report.Report{}
	for _, form := range []func(io.Writer, *report.Report) error{SVG, HTML, Dot} {
		if text := written(t, form, &unread); !strings.Contains(text, "The PCI bus cannot be read.") {
			t.Errorf("nothing was read: %s", text)
		}
	}
	if r := described(t, many(2, 0)); !strings.Contains(written(t, SVG, r), "No RDMA device") {
		t.Error("no adapter, and no word of it")
	}
}

// evil puts a text wherever a machine's own words are shown.
func evil(r *report.Report, text string) {
	r.Problems = []error{errors.New(text)}
	r.PCI.Functions = slices.Clone(r.PCI.Functions)
	for i := range r.Matrix.NICs {
		r.Matrix.NICs[i].RDMA = &rdma.Device{Name: text, PortsRead: true, Ports: []rdma.Port{{Number: 1, State: text, LinkLayer: text, RateGbps: 1}}}
	}
	for i := range r.Matrix.GPUs {
		f := *r.Matrix.GPUs[i].Function
		f.Driver, f.DriverKnown = text, true
		r.Matrix.GPUs[i].Function = &f
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Detail, f.Fix, f.Sources, f.Status = text, text, []string{text}, findings.Fail
	}
}

// FuzzWords: whatever a machine calls its devices, the forms stay well-formed,
// harmless and free of overlaps.
func FuzzWords(f *testing.F) {
	for _, text := range []string{
		"", "mlx5_0", `"><script>alert(1)</script>`, "<img src=x onerror=alert(1)>", "]]>", "&lt;", "a\nb\tc\x00d", "\xff\xfe",
		"\u202etxt", "e\u0301\u0301\u0301", "\U0001f600 \u4e2d\u6587", `\"`, `\`, `\N`, `"]; evil [label="`, "--", "%s%d%!", strings.Repeat("W", 400),
		strings.Repeat("word ", 100), "</style>", "]]></svg>",
	} {
		f.Add(text)
	}
	reports := map[string]*report.Report{"broadcom-nested": nil, "vfs-with-pf": nil}
	for name := range reports {
		reports[name] = named(f, name, "closed-no-peermem")
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, clean := range reports {
			r := *clean
			r.Matrix.NICs, r.Matrix.GPUs = slices.Clone(r.Matrix.NICs), slices.Clone(r.Matrix.GPUs)
			r.Findings = slices.Clone(r.Findings)
			evil(&r, text)
			for _, form := range []func(io.Writer, *report.Report) error{SVG, HTML} {
				list := parsed(t, printed(t, form, &r))
				harmless(t, list)
			}
			if out := printed(t, Dot, &r); dotFault(out) != "" {
				t.Errorf("dot: %s\n%s", dotFault(out), out)
			}
			m := newModel(&r)
			for _, s := range []scene{drawTree(m), drawWhole(m)} {
				for _, fault := range faults(s) {
					t.Error(fault)
				}
			}
		}
	})
}

// checkNear: a GPU is joined with the NICs at its nearest level, all of them and no others,
// and what leads there carries its mark.
func checkNear(t *testing.T, r *report.Report) {
	t.Helper()
	m := newModel(r)
	for i, g := range m.gpus {
		for _, n := range m.nics {
			want := g.counted && n.counted && slices.Contains(r.Matrix.GPUs[i].Nearest, r.PCI.Place(n.fn))
			if got := slices.Contains(g.near, n); got != want || slices.Contains(n.near, g) != want {
				t.Errorf("%s and %s: near %v, want %v", g.name, n.name, got, want)
			}
		}
	}
	for _, p := range drawTree(m).parts {
		for _, d := range m.gpus {
			isNear := slices.ContainsFunc(d.near, func(n *device) bool { return n.id == p.id })
			if p.id != "" && slices.Contains(p.marks, d.id) != (p.id == d.id || isNear) {
				t.Errorf("%s is marked %v", p.id, p.marks)
			}
		}
	}
}

// TestWay looks at the lines of one machine: the way between a GPU and its
// nearest NIC has their level, others none.
func TestWay(t *testing.T) {
	r := named(t, "broadcom-nested", "ready")
	m := newModel(r)
	var ways []string
	var walk func(n *node, way string)
	walk = func(n *node, way string) {
		way += "/" + n.name + n.address
		if n.device != nil {
			way += n.device.name
		}
		if n.form != rootBus {
			ways = append(ways, fmt.Sprintf("%s %v %v", way, n.level, n.marks))
		}
		for _, child := range n.below {
			walk(child, way)
		}
	}
	walk(m.panels[0].buses[2], "")
	want := []string{
		"/pci0000:30/root port30:01.0  []",
		"/pci0000:30/root port30:01.0/switch31:00.0  []",
		"/pci0000:30/root port30:01.0/switch31:00.0/switch33:00.0 PXB [g2 n2]",
		"/pci0000:30/root port30:01.0/switch31:00.0/switch33:00.0/GPU2 PXB [g2 n2]",
		"/pci0000:30/root port30:01.0/switch31:00.0/mlx5_2 PXB [n2 g2]",
	}
	if !slices.Equal(ways, want) {
		t.Errorf("ways:\n%s\nwant:\n%s", strings.Join(ways, "\n"), strings.Join(want, "\n"))
	}
}

// TestBounded: of many functions only what leads to GPUs and NICs is drawn, and
// what is left out is said.
func TestBounded(t *testing.T) {
	r := described(t, crowded())
	text := written(t, SVG, r)
	if !strings.Contains(text, "700 virtual functions not drawn") || len(text) > 20000 {
		t.Errorf("%d bytes", len(text))
	}
	if text := written(t, SVG, described(t, many(70, 70))); !strings.Contains(text, "12 devices more than fit") {
		t.Error("not said that devices are left out")
	}
}

// TestNUMATitles: a panel says what is known of its NUMA node.
func TestNUMATitles(t *testing.T) {
	two := "nodes 2\npci0000:00%s\n  0000:00:01.0 port 8086:1\n    0000:01:00.0 gpu 10de:2330%s\n    0000:02:00.0 ib 15b3:1021 rdma=x%s\n"
	for _, tc := range []struct{ text, want string }{
		{fmt.Sprintf(two, " numa=1", "", ""), "NUMA node 1"},
		{fmt.Sprintf(two, "", "", ""), "NUMA node unknown"},
		{fmt.Sprintf(two, "", " numa=0", " numa=1"), "NUMA nodes 0 1"},
		{strings.Replace(fmt.Sprintf(two, "", "", ""), "nodes 2", "nodes 1", 1), "One NUMA node"},
		{strings.Replace(fmt.Sprintf(two, "", "", ""), "nodes 2", "nodes 0", 1), "No NUMA nodes"},
	} {
		m := newModel(described(t, tc.text))
		if len(m.panels) != 1 || m.panels[0].title != tc.want {
			t.Errorf("%v, want %s", m.panels, tc.want)
		}
	}
}

// TestHomeless: what has no place in the tree is drawn, too.
func TestHomeless(t *testing.T) {
	r := described(t, many(1, 1))
	r.Matrix.NICs = append(r.Matrix.NICs, topology.NIC{RDMA: &rdma.Device{Name: "rxe0"}})
	r.Matrix.Pairs = append(r.Matrix.Pairs, topology.Pair{GPU: 0, NIC: 1})
	r.Matrix.GPUs[0].Function = &pci.Function{Vendor: pci.VendorNVIDIA}
	m := newModel(r)
	if last := m.panels[len(m.panels)-1]; last.title != "Elsewhere" || len(last.buses[0].below) != 2 {
		t.Errorf("%+v", last)
	}
	if found := faults(drawTree(m)); len(found) > 0 {
		t.Error(found)
	}
}
