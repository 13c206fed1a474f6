package expect

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/plainyaml"
	"gdr-features/topology"
)

// MaxSize is the size of a file that is read.
const MaxSize = plainyaml.MaxSize

// Parse reads a file. The error is one line that names the line, the key and what
// to write.
func Parse(text []byte) (*File, error) {
	root, err := plainyaml.Parse(text)
	if err != nil {
		return nil, err
	}
	d := decoder{}
	f := &File{}
	d.keys(root, "the file", map[string]reader{"types": func(n plainyaml.Node) { f.Types = d.types(n) }}, "types")
	if d.err != nil {
		return nil, d.err
	}
	return f, nil
}

// decoder walks the nodes and keeps the first error.
type decoder struct{ err error }

// reader takes a value.
type reader func(plainyaml.Node)

func (d *decoder) wrong(line int, format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))
	}
}

// keys reads a mapping: every key must have a reader, and those that must be
// there must be there. where says whose keys they are.
func (d *decoder) keys(n plainyaml.Node, where string, readers map[string]reader, must ...string) {
	names := make([]string, 0, len(readers))
	for name := range readers {
		names = append(names, name)
	}
	slices.Sort(names)
	if n.Kind != plainyaml.Map {
		d.wrong(n.Line, "%s: must have keys of %s, indented below it", where, strings.Join(names, ", "))
		return
	}
	for _, e := range n.Entries {
		read, ok := readers[e.Key]
		switch {
		case !ok:
			d.wrong(e.Line, "%s: no such key of %s; there are %s", e.Key, where, strings.Join(names, ", "))
		case e.Value.Kind == plainyaml.Null:
			d.wrong(e.Line, "%s: has no value", e.Key)
		}
		if d.err != nil {
			return
		}
		read(e.Value)
	}
	for _, name := range must {
		if !slices.ContainsFunc(n.Entries, func(e plainyaml.Entry) bool { return e.Key == name }) {
			d.wrong(n.Line, "%s: the key %s is missing", where, name)
		}
	}
}

// validName tells the names that a machine type may have: they stand in JSON and
// in logs.
func validName(name string) bool {
	const most, ends = 63, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return name != "" && len(name) <= most && strings.Trim(name, ends+"-_.") == "" && strings.Trim(name, "-_.") == name
}

func (d *decoder) types(n plainyaml.Node) []Type {
	if n.Kind != plainyaml.List || len(n.Items) == 0 {
		d.wrong(n.Line, "types: must be a list: - name: ... for each type of machine")
		return nil
	}
	var types []Type
	lines := map[string]int{}
	for _, item := range n.Items {
		if len(types) > 0 && types[len(types)-1].Match.any() {
			d.wrong(item.Line, "no machine gets here, since %s, above, matches any; put that last", types[len(types)-1].Name)
		}
		t := d.one(item)
		if before := lines[t.Name]; before != 0 {
			d.wrong(item.Line, "name: %s is there already, in line %d", t.Name, before)
		}
		lines[t.Name] = item.Line
		types = append(types, t)
	}
	return types
}

func (d *decoder) one(n plainyaml.Node) (t Type) {
	d.keys(n, "a type", map[string]reader{
		"name": func(n plainyaml.Node) {
			if t.Name = d.text(n, "name"); !validName(t.Name) {
				d.wrong(n.Line, "name: %q: must be up to 63 letters, digits and - . _ between them", t.Name)
			}
		},
		"match":  func(n plainyaml.Node) { t.Match = d.match(n) },
		"expect": func(n plainyaml.Node) { t.Expect = d.expectations(n) },
	}, "name", "match", "expect")
	return t
}

func (d *decoder) match(n plainyaml.Node) (m Match) {
	if n.Kind == plainyaml.Text && n.Text == "any" {
		return m
	}
	d.keys(n, "match (or any)", map[string]reader{
		"product": func(n plainyaml.Node) { m.Product = d.patterns(n, "product") },
		"vendor":  func(n plainyaml.Node) { m.Vendor = d.patterns(n, "vendor") },
		"board":   func(n plainyaml.Node) { m.Board = d.patterns(n, "board") },
		"gpu":     func(n plainyaml.Node) { m.GPU = d.patterns(n, "gpu") },
		"nic":     func(n plainyaml.Node) { m.NIC = d.patterns(n, "nic") },
		"topology": func(n plainyaml.Node) {
			for _, word := range d.words(n, "topology", "physical", "virtual", "file") {
				m.Topology = append(m.Topology, topology.Origin(word))
			}
		},
	})
	return m
}

func (d *decoder) expectations(n plainyaml.Node) (e Expectations) {
	d.keys(n, "expect", map[string]reader{
		"gpus":         func(n plainyaml.Node) { e.GPUs = d.groups(n, "gpus", d.gpus) },
		"nics":         func(n plainyaml.Node) { e.NICs = d.groups(n, "nics", d.nics) },
		"level":        func(n plainyaml.Node) { e.Level = d.level(n) },
		"nearest-rate": func(n plainyaml.Node) { e.NearestRate = d.number(n, "nearest-rate") },
		"driver":       func(n plainyaml.Node) { e.Driver = d.versions(n, "driver", driverForm) },
		"modules":      func(n plainyaml.Node) { e.Modules = d.word(n, "modules", "open", "closed") },
		"mofed": func(n plainyaml.Node) {
			if e.Inbox = n.Kind == plainyaml.Text && n.Text == "inbox"; !e.Inbox {
				e.MOFED = d.versions(n, "mofed", mofedForm)
			}
		},
		"mechanism": func(n plainyaml.Node) {
			e.Mechanism = d.word(n, "mechanism", "peermem", "dmabuf", "either", "both")
		},
		"iommu": func(n plainyaml.Node) { e.IOMMU = d.words(n, "iommu", "off", "passthrough", "translated") },
		"acs":   func(n plainyaml.Node) { e.ACS = d.words(n, "acs", "clear", "redirect") },
		"ready": func(n plainyaml.Node) { ready := d.word(n, "ready", "true", "false") == "true"; e.Ready = &ready },
	})
	return e
}

func (d *decoder) level(n plainyaml.Node) topology.Level {
	level, err := topology.ParseLevel(d.text(n, "level"))
	if err != nil {
		d.wrong(n.Line, "level: %v", err)
	}
	return level
}

// groups reads a number, one group or a list of groups.
func (d *decoder) groups(n plainyaml.Node, key string, one func(plainyaml.Node) Group) []Group {
	switch n.Kind {
	case plainyaml.Text:
		if count := d.number(n, key); count != nil {
			return []Group{{Count: *count}}
		}
	case plainyaml.Map:
		return []Group{one(n)}
	case plainyaml.List:
		var groups []Group
		for _, item := range n.Items {
			groups = append(groups, one(item))
		}
		if len(groups) > 0 {
			return groups
		}
		d.wrong(n.Line, "%s: the list is empty", key)
	case plainyaml.Null:
	}
	return nil
}

func (d *decoder) gpus(n plainyaml.Node) (g Group) {
	d.keys(n, "gpus", d.common(&g), "count")
	return g
}

func (d *decoder) nics(n plainyaml.Node) (g Group) {
	readers := d.common(&g)
	readers["active-ports"] = func(n plainyaml.Node) { g.ActivePorts = d.number(n, "active-ports") }
	readers["link"] = func(n plainyaml.Node) { g.LinkLayer = d.word(n, "link", "infiniband", "ethernet") }
	readers["rate"] = func(n plainyaml.Node) { g.Rate = d.number(n, "rate") }
	readers["firmware"] = func(n plainyaml.Node) { g.Firmware = d.versions(n, "firmware", firmwareForm) }
	d.keys(n, "nics", readers, "count")
	return g
}

// common are the keys of GPUs and NICs.
func (d *decoder) common(g *Group) map[string]reader {
	return map[string]reader{
		"model": func(n plainyaml.Node) { g.Model = d.patterns(n, "model") },
		"count": func(n plainyaml.Node) {
			if count := d.number(n, "count"); count != nil {
				g.Count = *count
			}
		},
		"pcie": func(n plainyaml.Node) { g.FullLink = d.word(n, "pcie", "full") != "" },
	}
}

// text reads a text that is not empty.
func (d *decoder) text(n plainyaml.Node, key string) string {
	if n.Kind != plainyaml.Text || strings.TrimSpace(n.Text) == "" {
		d.wrong(n.Line, "%s: must be a text", key)
		return ""
	}
	return n.Text
}

// texts reads a text or a list of texts.
func (d *decoder) texts(n plainyaml.Node, key string) []string {
	if n.Kind != plainyaml.List {
		return []string{d.text(n, key)}
	}
	if len(n.Items) == 0 {
		d.wrong(n.Line, "%s: the list is empty", key)
	}
	var all []string
	for _, item := range n.Items {
		all = append(all, d.text(item, key))
	}
	return all
}

// word reads one of some words.
func (d *decoder) word(n plainyaml.Node, key string, of ...string) string {
	text := d.text(n, key)
	if !slices.Contains(of, text) {
		d.wrong(n.Line, "%s: %q: must be %s", key, text, strings.Join(of, ", "))
		return ""
	}
	return text
}

// words reads some of some words.
func (d *decoder) words(n plainyaml.Node, key string, of ...string) []string {
	all := d.texts(n, key)
	for _, text := range all {
		if !slices.Contains(of, text) {
			d.wrong(n.Line, "%s: %q: must be of %s", key, text, strings.Join(of, ", "))
		}
	}
	return all
}

func (d *decoder) patterns(n plainyaml.Node, key string) []Pattern {
	var all []Pattern
	for _, text := range d.texts(n, key) {
		all = append(all, Pattern(text))
	}
	return all
}

func (d *decoder) number(n plainyaml.Node, key string) *Range {
	r, err := ParseRange(d.text(n, key))
	if err != nil {
		d.wrong(n.Line, "%s: %v", key, err)
		return nil
	}
	return &r
}

func (d *decoder) versions(n plainyaml.Node, key string, form Form) *Versions {
	v, err := ParseVersions(d.text(n, key), form)
	if err != nil {
		d.wrong(n.Line, "%s: %v", key, err)
		return nil
	}
	return &v
}
