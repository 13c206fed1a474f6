package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/source/rdma"
	"gdr-features/topology"
)

var forms = map[string]func(io.Writer, *report.Report) error{"html": asPage, "dot": Dot}

// asPage is the page of a machine without a name.
func asPage(w io.Writer, r *report.Report) error { return HTML(w, r, "") }

// printed returns a form as text.
func printed(t testing.TB, form func(io.Writer, *report.Report) error, r *report.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := form(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// written returns a form as text, twice the same.
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

// Allowed elements and attributes: none that loads or runs anything.
var (
	elements = strings.Fields("html head meta title style body main header section div h1 h2 h3 p span strong code br ul li " +
		"dl dt dd table caption thead tbody tr th td a pre")
	attributes = strings.Fields("lang charset http-equiv content name class id scope role aria-label tabindex style href")
)

// harmless finds what does not belong in a self-contained page.
func harmless(t testing.TB, list []element) {
	t.Helper()
	ids := map[string]bool{}
	var links []string
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
			if name == "href" {
				links = append(links, value)
			}
		}
		if e.name == "style" && (strings.Contains(e.text, "url(") || strings.Contains(e.text, "@import")) {
			t.Error("the style loads something")
		}
	}
	for _, to := range links {
		if id, within := strings.CutPrefix(to, "#"); !within || !ids[id] {
			t.Errorf("a link to %s", to)
		}
	}
}

// checkForms checks that both forms are well-formed and have every device, that the
// page loads nothing, and that its GPUs and NICs can have the focus.
func checkForms(t *testing.T, r *report.Report) {
	t.Helper()
	m := newModel(r)
	list := parsed(t, written(t, asPage, r))
	harmless(t, list)
	boxes := map[string]bool{}
	for _, e := range list {
		if e.name == "li" && e.attrs["id"] != "" && e.attrs["tabindex"] == "0" {
			boxes[e.attrs["id"]] = true
		}
	}
	if len(boxes) != len(m.GPUs)+len(m.NICs) {
		t.Errorf("%d boxes for %d GPUs and %d NICs", len(boxes), len(m.GPUs), len(m.NICs))
	}
	dot := written(t, Dot, r)
	checkDot(t, dot)
	for _, d := range slices.Concat(m.GPUs, m.NICs, m.Others) {
		if d.ID != "" && !boxes[d.ID] {
			t.Errorf("%s has no box", d.Name)
		}
		if !strings.Contains(dot, `[label="`+d.Name+`\n`+d.Product+`\n`+d.Address) {
			t.Errorf("%s is not in the graph", d.Name)
		}
	}
}

// checkDot checks the text for Graphviz, and the table in it, which is XML.
func checkDot(t testing.TB, text string) {
	t.Helper()
	if fault := dotFault(text); fault != "" {
		t.Errorf("dot: %s\n%s", fault, text)
	}
	if _, table, found := strings.Cut(text, "label=<"); found {
		table, _, _ = strings.Cut(table, "</table>")
		parsed(t, table+"</table>")
	}
}

// dotFault checks text for Graphviz: brackets in pairs, strings that end in their
// line, nothing printable outside them but the words of the language.
func dotFault(text string) string {
	depth, tags, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
			if i == len(text) || !strings.ContainsRune(`n"\`, rune(text[i])) {
				return "an unknown escape"
			}
		case tags == 0 && c == '"':
			quoted = !quoted
		case quoted && c == '\n':
			return "a string that does not end"
		case quoted:
		case c == '<':
			tags++
		case c == '>':
			tags--
		case tags > 0:
		case c == '{':
			depth++
		case c == '}':
			depth--
		case !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 \n[]=-", rune(c)):
			return fmt.Sprintf("%q outside a string", c)
		}
	}
	if depth != 0 || tags != 0 || quoted {
		return "something is not closed"
	}
	return ""
}

// TestMatrix: the tables of the page and of the graph say of every pair what the Matrix says.
func TestMatrix(t *testing.T) {
	r := named(t, "dell-xe9680-h100", "ready")
	if len(r.Matrix.Pairs) != 8*12 {
		t.Fatalf("%d pairs", len(r.Matrix.Pairs))
	}
	var want, page, graph []string
	for _, p := range r.Matrix.Pairs {
		want = append(want, p.Level.String())
	}
	for _, e := range parsed(t, written(t, asPage, r)) {
		if e.name == "td" && strings.HasPrefix(e.attrs["class"], "level ") {
			page = append(page, e.text)
		}
	}
	_, table, _ := strings.Cut(written(t, Dot, r), "label=<<table")
	for _, cell := range strings.SplitAfter(table, "</font>")[:len(want)] {
		level := strings.TrimSuffix(cell, "</font>")
		graph = append(graph, level[strings.LastIndex(level, ">")+1:])
	}
	if !slices.Equal(page, want) {
		t.Errorf("the page has %v, want %v", page, want)
	}
	if !slices.Equal(graph, want) {
		t.Errorf("the graph has %v, want %v", graph, want)
	}
}

// TestVerdictOnPage: the reason, every finding and every fix can be read.
func TestVerdictOnPage(t *testing.T) {
	r := named(t, "a40-8gpu-2cx7-nccl1343", "closed-no-peermem")
	page, graph := written(t, asPage, r), written(t, Dot, r)
	for _, f := range r.Findings {
		for _, text := range []string{f.Detail, f.FixText()} {
			if !strings.Contains(page, html.EscapeString(text)) {
				t.Errorf("the page lacks %q", text)
			}
		}
	}
	if head, _, _ := strings.Cut(page, "</header>"); !strings.Contains(head, "fix:</strong> modprobe nvidia-peermem") {
		t.Errorf("the page does not begin with the fix:\n%s", head)
	}
	for name, text := range map[string]string{"page": page, "graph": graph} {
		if !strings.Contains(text, "not ready (PeermemNotLoaded)") {
			t.Errorf("the %s lacks the verdict", name)
		}
	}
}

// TestNoPairs: a machine without pairs says why.
func TestNoPairs(t *testing.T) {
	for why, r := range map[string]*report.Report{
		"No RDMA device":                        named(t, "bridges-only", "ready"),
		"No NVIDIA or AMD GPU on this machine.": named(t, "nic-only", "ready"),
		"The PCI bus cannot be read.":           {},
		"No RDMA device and no":                 described(t, many(2, 0)),
	} {
		for name, form := range forms {
			if text := written(t, form, r); !strings.Contains(text, why) || strings.Contains(text, "<table class=\"matrix") || strings.Contains(text, "matrix [") {
				t.Errorf("%s does not say %q, or has a matrix:\n%s", name, why, text)
			}
		}
	}
}

// evil puts a text wherever names from the machine are shown.
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
		f.Detail, f.Fix, f.Sources, f.Status = text, []string{text}, []string{text}, finding.StatusFail
	}
}

// FuzzWords: whatever a machine calls its devices, both forms stay well-formed, free of
// what a terminal acts on, and the page stays harmless.
func FuzzWords(f *testing.F) {
	for _, text := range []string{
		"", "mlx5_0", `"><script>alert(1)</script>`, "<img src=x onerror=alert(1)>", "]]>", "&lt;", "a\nb\tc\x00d", "\xff\xfe",
		"\u202etxt", "e\u0301\u0301\u0301", "\U0001f600 \u4e2d\u6587", `\"`, `\`, `\N`, `"]; evil [label="`, "--", "%s%d%!", strings.Repeat("W", 400),
		strings.Repeat("word ", 100), "</style>", "]]></svg>", ">]", "<!--", "{{.}}",
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
			page, graph := printed(t, asPage, &r), printed(t, Dot, &r)
			harmless(t, parsed(t, page))
			checkDot(t, graph)
			for c := range strings.SplitSeq(page+graph, "") {
				if c != "\n" && sanitize.Terminal(c) != c {
					t.Errorf("%q is to be printed", c)
				}
			}
		}
	})
}

// checkNear: a GPU is joined with the NICs at its nearest level, all of them and
// no others.
func checkNear(t *testing.T, r *report.Report) {
	t.Helper()
	m := newModel(r)
	for i, g := range m.GPUs {
		withRole := !slices.ContainsFunc(r.Matrix.NICs, func(nic topology.NIC) bool { return nic.Counts() && nic.Role == "" })
		best := r.Matrix.GPUs[i].Near(topology.Usable).Level
		if best != topology.Unknown && !withRole {
			best = topology.Unknown
			for j, p := range r.Matrix.PairsOf(i) {
				if nic := &r.Matrix.NICs[j]; nic.Counts() && nic.Role == "" && p.Level.Rank() < best.Rank() {
					best = p.Level
				}
			}
		}
		for j, n := range m.NICs {
			want := g.Eligible && best != topology.Unknown && n.Eligible && m.Matrix[i][j] == best && (r.Matrix.NICs[n.index].Role == "" || withRole)
			if got := slices.Contains(g.Near, n); got != want || slices.Contains(n.Near, g) != want {
				t.Errorf("%s and %s: near %v, want %v", g.Name, n.Name, got, want)
			}
		}
		if len(g.Near) > 0 && g.Level != best {
			t.Errorf("%s: %v, want %v", g.Name, g.Level, best)
		}
	}
}
