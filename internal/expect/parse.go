package expect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"gdr-features/internal/strictyaml"
	"gdr-features/topology"
)

// reader reads the value of a key.
type reader = func(*yaml.Node) error

// Parse reads a file. The error is one line that names the line, the key and what
// to write.
func Parse(text []byte) (*File, error) {
	root, err := strictyaml.Parse(text)
	if err != nil {
		return nil, err
	}
	f := &File{}
	if err := strictyaml.Map(root, "the file", strictyaml.Keys{"types": f.readTypes}, "types"); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) readTypes(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return errors.New("must be a list of machine types, each with name, match and expect")
	}
	lines := map[string]int{}
	for _, item := range n.Content {
		if last := len(f.Types) - 1; last >= 0 && f.Types[last].Match.any() {
			return strictyaml.At(item, fmt.Errorf("unreachable: type %s above matches every machine; move it to the end", f.Types[last].Name))
		}
		var t Type
		if err := t.read(item); err != nil {
			return err
		}
		if before := lines[t.Name]; before != 0 {
			return strictyaml.At(item, fmt.Errorf("name: %s: already given in line %d", t.Name, before))
		}
		lines[t.Name] = item.Line
		f.Types = append(f.Types, t)
	}
	return nil
}

func (t *Type) read(n *yaml.Node) error {
	return strictyaml.Map(n, "a type", strictyaml.Keys{
		"name":   one(&t.Name, typeName),
		"match":  t.Match.read,
		"expect": t.Expect.read,
	}, "name", "match", "expect")
}

func (m *Match) read(n *yaml.Node) error {
	switch {
	case n.Value == "any":
		return nil
	case n.Kind != yaml.MappingNode:
		return errors.New("must be any, or a mapping (key: value) of what to match")
	}
	return strictyaml.Map(n, "match", strictyaml.Keys{
		"product":  list(&m.Product, ParsePattern),
		"vendor":   list(&m.Vendor, ParsePattern),
		"board":    list(&m.Board, ParsePattern),
		"gpu":      list(&m.GPU, ParsePattern),
		"nic":      list(&m.NIC, ParsePattern),
		"topology": list(&m.Topology, source),
	})
}

func (e *Expectations) read(n *yaml.Node) error {
	return strictyaml.Map(n, "expect", strictyaml.Keys{
		"gpus":         groups(&e.GPUs, (*Group).readGPUs),
		"nics":         groups(&e.NICs, (*Group).readNICs),
		"level":        one(&e.Level, topology.ParseLevel),
		"nearest-rate": optional(&e.NearestRate, ParseRange),
		"driver":       optional(&e.Driver, versions(driverForm)),
		"modules":      one(&e.Modules, oneOf("open", "closed")),
		"mofed":        e.readMOFED,
		"mechanism":    one(&e.Mechanism, oneOf("peermem", "dmabuf", "either", "both")),
		"iommu":        list(&e.IOMMU, oneOf("off", "passthrough", "translated")),
		"acs":          list(&e.ACS, oneOf("clear", "redirect")),
		"ready":        optional(&e.Ready, boolean),
	})
}

func (e *Expectations) readMOFED(n *yaml.Node) error {
	if e.Inbox = n.Value == "inbox"; e.Inbox {
		return nil
	}
	return optional(&e.MOFED, versions(mofedForm))(n)
}

// groups reads a number, one group or a list of groups.
func groups(to *[]Group, read func(*Group, *yaml.Node) error) reader {
	return func(n *yaml.Node) error {
		if n.Kind == yaml.ScalarNode {
			*to = make([]Group, 1)
			return one(&(*to)[0].Count, ParseRange)(n)
		}
		items, err := strictyaml.Items(n)
		if err != nil {
			return err
		}
		for _, item := range items {
			var g Group
			if err := read(&g, item); err != nil {
				return err
			}
			*to = append(*to, g)
		}
		return nil
	}
}

func (g *Group) readGPUs(n *yaml.Node) error {
	return strictyaml.Map(n, "gpus", g.keys(), "count")
}

func (g *Group) readNICs(n *yaml.Node) error {
	keys := g.keys()
	keys["active-ports"] = optional(&g.ActivePorts, ParseRange)
	keys["link"] = one(&g.LinkLayer, oneOf("infiniband", "ethernet"))
	keys["rate"] = optional(&g.Rate, ParseRange)
	keys["firmware"] = optional(&g.Firmware, versions(firmwareForm))
	return strictyaml.Map(n, "nics", keys, "count")
}

// keys are those of GPUs and NICs.
func (g *Group) keys() strictyaml.Keys {
	return strictyaml.Keys{
		"model": list(&g.Model, ParsePattern),
		"count": one(&g.Count, ParseRange),
		"pcie": func(n *yaml.Node) error {
			g.FullLink = n.Value == "full"
			if !g.FullLink {
				return fmt.Errorf("%q: must be full", n.Value)
			}
			return nil
		},
	}
}

// one reads a text.
func one[T any](to *T, parse func(string) (T, error)) reader {
	return func(n *yaml.Node) error {
		text, err := strictyaml.Text(n)
		if err == nil {
			*to, err = parse(text)
		}
		return err
	}
}

// optional reads a text into a value that is nil without it.
func optional[T any](to **T, parse func(string) (T, error)) reader {
	return func(n *yaml.Node) error {
		*to = new(T)
		return one(*to, parse)(n)
	}
}

// list reads a text or a list of texts.
func list[T any](to *[]T, parse func(string) (T, error)) reader {
	return func(n *yaml.Node) error {
		texts, err := strictyaml.Texts(n)
		for _, text := range texts {
			value, err := parse(text)
			if err != nil {
				return err
			}
			*to = append(*to, value)
		}
		return err
	}
}

// oneOf accepts some words.
func oneOf(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", fmt.Errorf("%q: must be one of %s", text, strings.Join(words, ", "))
		}
		return text, nil
	}
}

func source(text string) (topology.Origin, error) {
	word, err := oneOf("physical", "virtual", "file")(text)
	return topology.Origin(word), err
}

func boolean(text string) (bool, error) {
	word, err := oneOf("true", "false")(text)
	return word == "true", err
}

func versions(form Form) func(string) (Versions, error) {
	return func(text string) (Versions, error) { return ParseVersions(text, form) }
}

// typeName accepts the names that a machine type may have: they appear in JSON and
// in logs.
func typeName(text string) (string, error) {
	const most, ends = 63, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	if len(text) > most || strings.Trim(text, ends+"-_.") != "" || strings.Trim(text, "-_.") != text {
		return "", fmt.Errorf("%q: must be up to 63 letters, digits and - . _ between them", text)
	}
	return text, nil
}
