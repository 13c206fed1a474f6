package snapshot

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"gdr-features/internal/sanitize"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/topology"
)

// Scrub takes out of a tape what no verb needs and what identifies the machine,
// and says in the header what it did. The verbs come to the same with what is left.
func (t *Tape) Scrub() {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := scrubber{ids: identifiers{numbers: map[string]int{}, given: map[string]bool{}}}
	names := slices.Sorted(maps.Keys(t.nodes))
	for _, step := range []func(string, *content){cut, s.find, s.replace, s.clean} {
		for _, name := range names {
			step(name, &t.nodes[name].content)
		}
	}
	scrubbed := make(map[string]*node, len(t.nodes))
	for _, name := range names {
		n := t.nodes[name]
		n.link.value = s.name(n.link.value)
		names := make([]string, len(n.names.value)) // whoever was left behind may still read the old ones
		for i, entry := range n.names.value {
			names[i] = s.name(entry)
		}
		n.names.value = names
		scrubbed[s.name(name)] = n
	}
	t.nodes = scrubbed
	t.Header = append(t.Header,
		fmt.Sprintf("serial numbers, GUIDs, UUIDs and MACs replaced by numbers: %d", len(s.ids.numbers)),
		fmt.Sprintf("users and host names overwritten: %d", s.users),
		"of /proc/kallsyms the first line and those that decide, without addresses")
}

// isTopology tells a topology file of NCCL's by its name.
func isTopology(name string) bool { return path.Ext(name) == ".xml" }

type scrubber struct {
	ids   identifiers
	users int
}

// cut leaves what decides of the files that are long.
func cut(name string, c *content) {
	data, whole := c.whole()
	base := path.Base(name)
	switch {
	case !c.ended && (name == "proc/cmdline" || base == "modules.dep" || isTopology(name)):
		for _, p := range c.parts { // no reader looks at what it could not read to its end
			copy(p.data, bytes.Repeat([]byte("x"), len(p.data)))
		}
	case !whole:
	case name == "proc/kallsyms" && len(data) > 0:
		c.replace(kmod.DecidingLines(data, c.ended && c.fault == ""))
	case name == "proc/cpuinfo":
		if first := kmod.FirstProcessor(data); len(first) < len(data) {
			*c = content{}
			c.store(first, 0)
			c.finish(c.last())
		}
	case !c.ended || len(data) == 0:
	case isTopology(name):
		c.replace(topology.DecidingText(data))
	case base == "modules.dep":
		c.replace(kmod.DecidingModules(data))
	case name == "proc/cmdline":
		c.replace(kmod.DecidingWords(data))
	}
}

// find notes the serial numbers that are to be looked for everywhere.
func (s *scrubber) find(name string, c *content) {
	data, _ := c.whole()
	if path.Base(name) != "vpd" {
		for _, value := range secrets(name, data) {
			s.ids.look(string(value))
		}
	} else if vpd, err := pci.ParseVPD(data); err == nil {
		s.ids.look(vpd.Fields["SN"])
	}
}

// replace overwrites what is known to be an identifier by its place.
func (s *scrubber) replace(name string, c *content) {
	data, whole := c.whole()
	switch base := path.Base(name); {
	case base == "config":
		pci.ScrubConfig(c.from)
	case !whole || len(data) == 0:
	case base == "vpd":
		c.replace(pci.ScrubVPD(data, s.ids.replace, s.ids.clean))
	default:
		s.users += hideUsers(data)
		for _, value := range secrets(name, data) {
			s.ids.rename(value)
		}
	}
}

// numbers are attributes in which the kernel writes a number. Garbage in them must
// not become one: that of an identifier would be.
var numbers = [...]string{
	"numa_node", "numa_balancing", "refcnt", "current_link_width", "max_link_width", "current_link_speed", "max_link_speed",
	"state", "phys_state", "rate",
}

// clean overwrites everything that has the form of an identifier.
func (s *scrubber) clean(name string, c *content) {
	base := path.Base(name)
	if slices.Contains(numbers[:], base) {
		return
	}
	for _, p := range c.parts {
		if base != "config" && base != "vpd" && (base != "board_id" || !isBoard(p.data)) {
			s.ids.clean(p.data)
		}
	}
}

// name scrubs a file's name, part by part: udev makes names of MACs and GUIDs. A part
// that is a number stays one, of a port or a group. What no reader prints as it is,
// is as they print it: one odd name must not spoil all.
func (s *scrubber) name(name string) string {
	parts := strings.Split(sanitize.Terminal(name), "/")
	for i, part := range parts {
		if strings.Trim(part, "0123456789") != "" {
			text := []byte(part)
			s.ids.clean(text)
			parts[i] = string(text)
		}
	}
	return strings.Join(parts, "/")
}

// secrets gives the values in a file that belong to this machine alone: the whole
// of it, or those of its lines "key: value".
func secrets(name string, text []byte) (values [][]byte) {
	switch {
	case isTopology(name):
		return nil
	case secret(path.Base(name)):
		return [][]byte{bytes.TrimSpace(text)}
	}
	for line := range bytes.Lines(text) {
		if i := bytes.IndexAny(line, ":="); i > 0 && secret(string(line[:i])) {
			values = append(values, bytes.TrimSpace(line[i+1:]))
		}
	}
	return values
}

// secret tells by the name of a file or field that its value belongs to this
// machine alone.
func secret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range [...]string{"serial", "uuid", "guid", "asset_tag", "hostname", "node_desc"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return name == "address" || name == "perm_address"
}

// isBoard accepts a PSID, which a kind of board has and no single one: up to 16
// characters, letters and then ten digits or more ("MT_0000000838", "NVD0000000079").
func isBoard(text []byte) bool {
	text = bytes.TrimSpace(text)
	letters := bytes.TrimRight(text, "0123456789")
	return len(text) <= 16 && len(text)-len(letters) >= 10 && len(letters) > 0 && len(bytes.Trim(letters, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")) == 0
}

// from gives the bytes that are known from an offset on.
func (c *content) from(offset int64) []byte {
	for _, p := range c.parts {
		if p.at <= offset && offset < p.end() {
			return p.data[offset-p.at:]
		}
	}
	return nil
}

// replace puts other bytes in the place of a whole file's; what was behind them
// is behind these.
func (c *content) replace(data []byte) {
	before := c.last()
	c.parts = nil
	c.store(data, 0)
	if c.ended && c.end == before {
		c.end = c.last()
	}
	if c.failed == before {
		c.failed = c.last()
	}
}
