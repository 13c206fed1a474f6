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

// reader reads the value of a key. The keys that a mapping may have are the fields of a struct
// of readers.
type reader func(*yaml.Node) error

// UnmarshalYAML implements yaml.Unmarshaler.
func (r reader) UnmarshalYAML(n *yaml.Node) error { return r(n) }

// Parse reads a file. The error is a *yamlfile.Error, which names the place, the key and
// what to write.
func Parse(text []byte) (*File, error) {
	f := &File{}
	read := reader(f.read)
	if err := yamlfile.Decode(text, &read); err != nil {
		return nil, err
	}
	if len(f.Types) == 0 {
		return nil, &yamlfile.Error{Line: 1, Column: 1, Reason: "the file is empty; it must have the key types"}
	}
	return f, nil
}

func (f *File) read(n *yaml.Node) error {
	return yamlfile.Into(n, &struct {
		Types reader `yaml:"types"`
	}{f.readTypes}, "types")
}

func (f *File) readTypes(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return errors.New("must be a list of machine types, each with name, match and expect")
	}
	lines := map[string]int{}
	for _, item := range n.Content {
		if last := len(f.Types) - 1; last >= 0 && f.Types[last].Match.any() {
			return yamlfile.At(item, fmt.Errorf("unreachable: type %s above matches every machine; move it to the end", f.Types[last].Name))
		}
		var t Type
		if err := t.read(item); err != nil {
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
	return yamlfile.Into(n, &struct {
		Name   reader `yaml:"name"`
		Match  reader `yaml:"match"`
		Expect reader `yaml:"expect"`
	}{one(&t.Name, typeName), t.Match.read, t.Expect.read}, "name", "match", "expect")
}

func (m *Match) read(n *yaml.Node) error {
	switch {
	case n.Value == "any":
		return nil
	case n.Kind != yaml.MappingNode:
		return errors.New("must be any, or a mapping (key: value) of what to match")
	}
	return yamlfile.Into(n, &struct {
		Product  reader `yaml:"product"`
		Vendor   reader `yaml:"vendor"`
		Board    reader `yaml:"board"`
		GPU      reader `yaml:"gpu"`
		NIC      reader `yaml:"nic"`
		Topology reader `yaml:"topology"`
	}{
		list(&m.Product, ParsePattern), list(&m.Vendor, ParsePattern), list(&m.Board, ParsePattern),
		list(&m.GPU, ParsePattern), list(&m.NIC, ParsePattern), list(&m.Topology, source),
	})
}

func (e *Expectations) read(n *yaml.Node) error {
	return yamlfile.Into(n, &struct {
		GPUs        reader `yaml:"gpus"`
		NICs        reader `yaml:"nics"`
		Level       reader `yaml:"level"`
		NearestRate reader `yaml:"nearest-rate"`
		Driver      reader `yaml:"driver"`
		Modules     reader `yaml:"modules"`
		MOFED       reader `yaml:"mofed"`
		Mechanism   reader `yaml:"mechanism"`
		IOMMU       reader `yaml:"iommu"`
		ACS         reader `yaml:"acs"`
		Ready       reader `yaml:"ready"`
	}{
		GPUs:        groups(&e.GPUs, (*Group).readGPUs),
		NICs:        groups(&e.NICs, (*Group).readNICs),
		Level:       one(&e.Level, topology.ParseLevel),
		NearestRate: optional(&e.NearestRate, ParseRange),
		Driver:      optional(&e.Driver, versions(driverForm)),
		Modules:     one(&e.Modules, oneOf("open", "closed")),
		MOFED:       e.readMOFED,
		Mechanism:   one(&e.Mechanism, oneOf("peermem", "dmabuf", "either", "both")),
		IOMMU:       list(&e.IOMMU, oneOf("off", "passthrough", "translated")),
		ACS:         list(&e.ACS, oneOf("clear", "redirect")),
		Ready:       optional(&e.Ready, boolean),
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
		return each(n, func(item *yaml.Node) error {
			*to = append(*to, Group{})
			return read(&(*to)[len(*to)-1], item)
		})
	}
}

func (g *Group) readGPUs(n *yaml.Node) error {
	return yamlfile.Into(n, &struct {
		Model reader `yaml:"model"`
		Count reader `yaml:"count"`
		PCIe  reader `yaml:"pcie"`
	}{list(&g.Model, ParsePattern), one(&g.Count, ParseRange), one(&g.FullLink, full)}, "count")
}

func (g *Group) readNICs(n *yaml.Node) error {
	return yamlfile.Into(n, &struct {
		Model       reader `yaml:"model"`
		Count       reader `yaml:"count"`
		PCIe        reader `yaml:"pcie"`
		ActivePorts reader `yaml:"active-ports"`
		Link        reader `yaml:"link"`
		Rate        reader `yaml:"rate"`
		Firmware    reader `yaml:"firmware"`
	}{
		list(&g.Model, ParsePattern), one(&g.Count, ParseRange), one(&g.FullLink, full),
		optional(&g.ActivePorts, ParseRange), one(&g.LinkLayer, oneOf("infiniband", "ethernet")),
		optional(&g.Rate, ParseRange), optional(&g.Firmware, versions(firmwareForm)),
	}, "count")
}

// one reads a text as it is written in the file: 24.10 and true are texts too.
func one[T any](to *T, parse func(string) (T, error)) reader {
	return func(n *yaml.Node) error {
		var text string
		if err := yamlfile.Into(n, &text); err != nil {
			return err
		}
		if strings.TrimSpace(text) == "" {
			return errors.New("must be a text")
		}
		var err error
		*to, err = parse(text)
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
		return each(n, func(item *yaml.Node) error {
			*to = append(*to, *new(T))
			return one(&(*to)[len(*to)-1], parse)(item)
		})
	}
}

// each reads the items of a list that is not empty, or the one value in its place.
func each(n *yaml.Node, read reader) error {
	switch {
	case n.Kind != yaml.SequenceNode:
		return read(n)
	case len(n.Content) == 0:
		return errors.New("the list is empty")
	}
	for _, item := range n.Content {
		if err := read(item); err != nil {
			return yamlfile.At(item, err)
		}
	}
	return nil
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

func full(text string) (bool, error) {
	_, err := oneOf("full")(text)
	return err == nil, err
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
