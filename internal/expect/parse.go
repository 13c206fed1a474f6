package expect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"gdr-features/internal/yamlfile"
	"gdr-features/topology"
)

// Parse reads a file. The error is a *yamlfile.Error.
func Parse(text []byte) (*File, error) {
	f := &File{}
	return f, f.parse(text, "name, match and expect", (*Type).read)
}

// parse reads a file with a list of types, each with some keys by a function.
func (f *File) parse(text []byte, keys string, read func(*Type, *yaml.Node) error) error {
	types := func(n *yaml.Node) error { return f.readEach(n, keys, read) }
	err := yamlfile.Decode(text, func(n *yaml.Node) error {
		return yamlfile.Mapping(n, yamlfile.Keys{{"types", types}}, "types")
	})
	if err == nil && len(f.Types) == 0 {
		err = &yamlfile.Error{Line: 1, Column: 1, Reason: "the file is empty; it must have the key types"}
	}
	return err
}

func (f *File) readEach(n *yaml.Node, keys string, read func(*Type, *yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return fmt.Errorf("must be a list of machine types, each with %s", keys)
	}
	lines := map[string]int{}
	for _, item := range n.Content {
		if last := len(f.Types) - 1; last >= 0 && f.Types[last].Match.any() {
			return yamlfile.At(item, fmt.Errorf("unreachable: type %s above matches every machine; move it to the end", f.Types[last].Name))
		}
		var t Type
		if err := read(&t, item); err != nil {
			return err
		}
		if before := lines[t.Name]; before != 0 {
			return yamlfile.At(item, fmt.Errorf("the name %s is already given in line %d", t.Name, before))
		}
		lines[t.Name] = item.Line
		f.Types = append(f.Types, t)
	}
	return nil
}

func (t *Type) read(n *yaml.Node) error {
	return yamlfile.Mapping(n, yamlfile.Keys{
		{"name", one(&t.Name, typeName)},
		{"match", t.Match.read},
		{"expect", t.Expect.read},
	}, "name", "match", "expect")
}

func (m *Match) read(n *yaml.Node) error {
	switch {
	case n.Value == "any":
		return nil
	case n.Kind != yaml.MappingNode:
		return errors.New("must be any, or a mapping (key: value) of what to match")
	}
	return yamlfile.Mapping(n, yamlfile.Keys{
		{"product", list(&m.Product, ParsePattern)},
		{"vendor", list(&m.Vendor, ParsePattern)},
		{"board", list(&m.Board, ParsePattern)},
		{"gpu", list(&m.GPU, ParsePattern)},
		{"nic", list(&m.NIC, ParsePattern)},
		{"topology", list(&m.Topology, source)},
	})
}

func (e *Expectations) read(n *yaml.Node) error {
	return yamlfile.Mapping(n, yamlfile.Keys{
		{"gpus", groups(&e.GPUs, (*Group).gpuKeys)},
		{"nics", groups(&e.NICs, (*Group).nicKeys)},
		{"level", one(&e.Level, topology.ParseLevel)},
		{"nearest-rate", one(&e.NearestRate, ParseRange)},
		{"driver", one(&e.Driver, versions(driverForm))},
		{"modules", one(&e.Modules, oneOf("open", "closed"))},
		{"mofed", e.readMOFED},
		{"mechanism", one(&e.Mechanism, oneOf("peermem", "dmabuf", "either", "both"))},
		{"iommu", list(&e.IOMMU, oneOf("off", "passthrough", "translated"))},
		{"acs", list(&e.ACS, oneOf("clear", "redirect"))},
		{"ready", one(&e.Ready, oneOf("true", "false"))},
	})
}

func (e *Expectations) readMOFED(n *yaml.Node) error {
	if e.Inbox = n.Value == "inbox"; e.Inbox {
		return nil
	}
	return one(&e.MOFED, versions(mofedForm))(n)
}

// groups reads a number, one group or a list of groups.
func groups(to *[]Group, keys func(*Group) yamlfile.Keys) yamlfile.Reader {
	return func(n *yaml.Node) error {
		if n.Kind == yaml.ScalarNode {
			*to = make([]Group, 1)
			return one(&(*to)[0].Count, ParseRange)(n)
		}
		return yamlfile.Each(n, func(item *yaml.Node) error {
			*to = append(*to, Group{})
			return yamlfile.Mapping(item, keys(&(*to)[len(*to)-1]), "count")
		})
	}
}

func (g *Group) gpuKeys() yamlfile.Keys {
	return yamlfile.Keys{
		{"model", list(&g.Model, ParsePattern)},
		{"count", one(&g.Count, ParseRange)},
		{"pcie", one(&g.FullLink, full)},
	}
}

func (g *Group) nicKeys() yamlfile.Keys {
	return append(g.gpuKeys(), yamlfile.Keys{
		{"active-ports", one(&g.ActivePorts, ParseRange)},
		{"link", one(&g.LinkLayer, oneOf("infiniband", "ethernet"))},
		{"rate", one(&g.Rate, ParseRange)},
		{"firmware", one(&g.Firmware, versions(firmwareForm))},
	}...)
}

// one reads a text that is not empty.
func one[T any](to *T, parse func(string) (T, error)) yamlfile.Reader {
	return func(n *yaml.Node) error {
		text, err := yamlfile.Text(n)
		if err != nil {
			return err
		}
		if strings.TrimSpace(text) == "" {
			return errors.New("must be a text")
		}
		*to, err = parse(text)
		return err
	}
}

// list reads a text or a list of texts.
func list[T any](to *[]T, parse func(string) (T, error)) yamlfile.Reader {
	return func(n *yaml.Node) error {
		return yamlfile.Each(n, func(item *yaml.Node) error {
			*to = append(*to, *new(T))
			return one(&(*to)[len(*to)-1], parse)(item)
		})
	}
}

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

func full(text string) (bool, error) {
	_, err := oneOf("full")(text)
	return err == nil, err
}

func versions(form Form) func(string) (Versions, error) {
	return func(text string) (Versions, error) { return ParseVersions(text, form) }
}

// typeName accepts names of types, which appear in JSON and in logs.
func typeName(text string) (string, error) {
	const most, ends = 63, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	if len(text) > most || strings.Trim(text, ends+"-_.") != "" || strings.Trim(text, "-_.") != text {
		return "", fmt.Errorf("%q: must be up to 63 letters, digits and - . _ between them", text)
	}
	return text, nil
}
