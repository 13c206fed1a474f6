package snapshot

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"gdr-features/internal/printable"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
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
		for i, entry := range n.names.value {
			n.names.value[i] = s.name(entry)
		}
		scrubbed[s.name(name)] = n
	}
	t.nodes = scrubbed
	t.Header = append(t.Header,
		fmt.Sprintf("serial numbers, GUIDs, UUIDs and MACs replaced by numbers: %d", len(s.ids.numbers)),
		fmt.Sprintf("users and host names overwritten: %d", s.users),
		"of /proc/kallsyms the first line and those that decide, without addresses")
}

type scrubber struct {
	ids   identifiers
	users int
}

// cut leaves what decides of the files that are long.
func cut(name string, c *content) {
	data, whole := c.whole()
	switch {
	case name == "proc/cmdline" && !c.ended: // no reader looks at what it could not read to its end
		for _, p := range c.parts {
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
	case path.Base(name) == "modules.dep":
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

// numbers are attributes that the kernel writes one number into. Garbage in them must
// not become one: that of an identifier would be.
var numbers = [...]string{
	"numa_node", "numa_balancing", "refcnt", "current_link_width", "max_link_width", "current_link_speed", "max_link_speed",
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

// name scrubs a file's name: udev makes names of MACs and GUIDs. What no reader
// prints as it is, is as they print it: one odd name must not spoil all.
func (s *scrubber) name(name string) string {
	text := []byte(printable.Text(name))
	s.ids.clean(text)
	return string(text)
}

// secrets gives the values in a file that belong to this machine alone: the whole
// of it, or those of its lines "key: value".
func secrets(name string, text []byte) (values [][]byte) {
	if secret(path.Base(name)) {
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

// isBoard accepts a PSID: letters, then ten digits.
func isBoard(text []byte) bool {
	text = bytes.TrimSpace(text)
	if len(text) < 12 || len(text) > 14 {
		return false
	}
	letters, digits := text[:len(text)-10], text[len(text)-10:]
	return len(bytes.Trim(digits, "0123456789")) == 0 && len(bytes.Trim(letters, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")) == 0
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
