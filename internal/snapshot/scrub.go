package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"gdr-features/internal/sanitize"
	"gdr-features/source/pci"
)

// Scrub takes out of a recording what no command reads and what identifies the
// machine, and says in the notes what it did. Every command says the same on what
// is left.
func (r *Recording) Scrub() {
	questions := slices.SortedFunc(maps.Keys(r.answers), compareQuestions)
	var serials []string // they have no form to know them by where they occur elsewhere
	for _, q := range questions {
		reduce(q.name, &r.answers[q].content)
		if data, whole := r.answers[q].whole(); whole && path.Base(q.name) == "vpd" {
			if vpd, err := pci.ParseVPD(data); err == nil {
				serials = append(serials, vpd.Fields["SN"])
			}
		}
	}
	s := newScrubber(serials)
	scrubbed := make(map[question]*answer, len(r.answers))
	for _, q := range questions {
		a := r.answers[q]
		s.content(q.name, &a.content)
		a.target = s.name(a.target)
		for i, entry := range a.names {
			a.names[i] = s.name(entry)
		}
		q.name = s.name(q.name)
		scrubbed[q] = a
	}
	r.answers = scrubbed
	r.Notes = append(r.Notes,
		fmt.Sprintf("serial numbers, GUIDs, UUIDs and MACs replaced by numbers: %d", len(s.ids.numbers)),
		fmt.Sprintf("users and host names overwritten: %d", s.users),
		"of /proc/kallsyms the first line and those that decide, without addresses")
}

// reduce leaves of the files that hold more than is read of them what is read.
func reduce(name string, c *content) {
	data, whole := c.whole()
	base := path.Base(name)
	isTopology := path.Ext(name) == ".xml"
	ended := errors.Is(c.stop, io.EOF)
	switch {
	case !whole || len(data) == 0:
	case name == "proc/kallsyms":
		c.replace(symbolLines(data, ended))
	case name == "proc/cpuinfo": // the first CPU tells for all
		if i := bytes.Index(data, []byte("\n\n")); i >= 0 {
			*c = content{}
			c.add(data[:i+1], 0, io.EOF)
		}
	case base != "vpd" && base != "modules.dep" && name != "proc/cmdline" && !isTopology:
	case !ended: // nothing is read of a file that is too large
		c.replace(bytes.Repeat([]byte("x"), len(data)))
	case base == "modules.dep":
		c.replace(peerLines(data))
	case name == "proc/cmdline":
		c.replace(iommuWords(data))
	case isTopology:
		overwriteTopology(data)
	}
}

// symbolLines gives the lines of a symbol table, or of its beginning, that searching
// it for symbols of RDMA comes to the same with: the first, and those with such a
// symbol. Addresses are zero where they were, and all ones where they were not.
// ended tells whether the table ended where the data does.
func symbolLines(table []byte, ended bool) []byte {
	const longest = 4 << 10 // a line that kmod takes; it gives up at a longer one
	first := regexp.MustCompile(`^[0-9A-Fa-f]{8,16} `)
	decides := regexp.MustCompile(`( [tT] | __ksymtab_)(ib_register_peer_memory_client|ib_umem_dmabuf_get|\w+_reg_user_mr_dmabuf)([.\s]|$)`)
	if !first.Match(table) { // not a symbol table, nor is its beginning
		return table[:min(len(table), 16)]
	}
	var kept []byte
	seen := map[string]bool{}
	for line := range bytes.Lines(table) {
		text, newline := bytes.CutSuffix(line, []byte("\n"))
		if len(text) > longest {
			return append(kept, bytes.Repeat([]byte("x"), longest+1)...)
		}
		if len(seen) > 0 && (!decides.Match(line) || !newline && !ended) {
			continue
		}
		if address, _, _ := bytes.Cut(line, []byte(" ")); len(bytes.Trim(address, "0")) > 0 {
			copy(address, bytes.Repeat([]byte("f"), len(address)))
		}
		if !seen[string(line)] {
			seen[string(line)] = true
			kept = append(kept, line...)
		}
	}
	return kept
}

// peerLines gives the lines of a modules.dep about peer memory.
func peerLines(dep []byte) []byte {
	kept := []byte("...\n") // a file without a line is none
	for line := range bytes.Lines(dep) {
		if bytes.Contains(line, []byte("peer")) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// iommuWords gives the words of the kernel's command line about the IOMMU, and
// "..." for others: those may be anything, passwords too.
func iommuWords(cmdline []byte) []byte {
	var kept [][]byte
	for word := range bytes.FieldsSeq(cmdline) {
		if key, _, _ := bytes.Cut(word, []byte("=")); !bytes.Contains(key, []byte("iommu")) {
			word = []byte("...")
		}
		kept = append(kept, word)
	}
	kept = slices.CompactFunc(kept, bytes.Equal)
	return append(bytes.Join(kept, []byte(" ")), '\n')
}

type scrubber struct {
	ids   *identifiers
	user  *regexp.Regexp // "(user@host)"
	users int            // that were found
}

func newScrubber(serials []string) *scrubber {
	return &scrubber{ids: newIdentifiers(serials), user: regexp.MustCompile(`\(([!-'*-?A-~]+)@([!-'*-~]+)\)`)}
}

// hideUsers overwrites names of users and hosts, by which kernels and drivers tell
// who built them.
func (s *scrubber) hideUsers(text []byte) {
	for _, at := range s.user.FindAllSubmatchIndex(text, -1) {
		for _, name := range [][]byte{text[at[2]:at[3]], text[at[4]:at[5]]} {
			copy(name, bytes.Repeat([]byte("x"), len(name)))
		}
		s.users++
	}
}

// numbers are attributes in which the kernel writes a number. Garbage in them must
// not become one: that of an identifier would be. board_id names a kind of board.
var numbers = [...]string{
	"numa_node", "numa_balancing", "refcnt", "current_link_width", "max_link_width", "current_link_speed", "max_link_speed",
	"state", "phys_state", "rate", "board_id", "config",
}

// content overwrites what identifies the machine.
func (s *scrubber) content(name string, c *content) {
	data, whole := c.whole()
	switch base := path.Base(name); {
	case base == "vpd":
		if whole && len(data) > 0 && errors.Is(c.stop, io.EOF) {
			c.replace(s.vpd(data))
		}
	case slices.Contains(numbers[:], base):
	default:
		for _, p := range c.parts {
			s.hideUsers(p.data)
			s.ids.clean(p.data)
		}
	}
}

// vpd gives vital product data with the product and all fields. Part number,
// engineering change and manufacturer are those of many boards; any other field may
// identify the single one.
func (s *scrubber) vpd(data []byte) []byte {
	const management = "SW_MNG" // by which a NIC that manages NVLink switches is known
	vpd, err := pci.ParseVPD(data)
	if err != nil {
		return []byte{0} // no VPD either
	}
	var fields []byte
	for _, key := range slices.Sorted(maps.Keys(vpd.Fields)) {
		value := []byte(vpd.Fields[key])
		switch {
		case key == "PN" || key == "EC" || key == "MN":
			s.ids.clean(value)
		case bytes.Contains(value, []byte(management)):
			value = []byte(management)
		default:
			s.ids.rename(value)
		}
		fields = append(append(fields, key[0], key[1], byte(len(value))), value...) //nolint:gosec // as long as it was
	}
	product := []byte(vpd.Product)
	s.ids.clean(product)
	resource := func(tag byte, body []byte) []byte {
		return append([]byte{tag, byte(len(body)), byte(len(body) >> 8)}, body...) //nolint:gosec // at most as long as it was
	}
	return slices.Concat(resource(0x82, product), resource(0x90, fields), []byte{0x78})
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
