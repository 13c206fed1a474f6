package snapshot

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"gdr-features/internal/sanitize"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/tristate"
)

// Scrub removes from a recording what no command reads and what identifies the
// machine, and says so in the notes. The output of every command stays the same.
func (r *Recording) Scrub() {
	r.withoutLastGIDs()
	questions := slices.SortedFunc(maps.Keys(r.answers), compareQuestions)
	var serials []string // they have no form by which they could be recognized elsewhere
	for _, q := range questions {
		a := r.answers[q]
		a.reduce(q.name)
		if path.Base(q.name) == "vpd" {
			if vpd := pci.ParseVPD(a.data); vpd != nil {
				serials = append(serials, vpd.Fields["SN"])
			}
		}
	}
	s := newScrubber(serials)
	scrubbed := make(map[question]*answer, len(r.answers))
	for _, q := range questions {
		a := r.answers[q]
		s.content(q.name, a)
		a.target = s.name(a.target)
		for i, entry := range a.names {
			a.names[i] = s.name(entry)
		}
		q.name = s.name(q.name)
		scrubbed[q] = a
	}
	r.answers = scrubbed
	r.Notes = append(r.Notes,
		fmt.Sprintf("serial numbers, GUIDs, UUIDs, MACs and addresses of GIDs replaced by numbers: %d", len(s.numbers)),
		fmt.Sprintf("users and host names overwritten: %d", s.users),
		"/proc/kallsyms reduced to the first line and the symbols that matter, without addresses",
		"a configuration of the kernel reduced to the options that matter")
}

const kallsyms = "proc/kallsyms"

// reduce cuts a file of which little is used down to that part.
func (a *answer) reduce(name string) {
	part, ended, size := partOf(name), a.stop == nil, len(a.data)
	switch {
	case size == 0:
	case name == kallsyms:
		a.data = symbolLines(a.data, ended)
	case name == "proc/cpuinfo": // the first CPU is enough
		if i := bytes.Index(a.data, []byte("\n\n")); i >= 0 {
			a.data, a.stop = a.data[:i+1], nil
		}
	case strings.HasPrefix(name, "sys/") && path.Base(name) == pci.ConfigFile:
		if a.data = pci.OnlyServices(a.data); len(a.data) < size {
			a.stop = ErrNotRecorded
		}
	case part == nil:
	case !ended: // too large: its readers use nothing of it
		a.data = bytes.Repeat([]byte("x"), size)
	default:
		a.data = part(a.data)
	}
}

// partOf returns the function that cuts a file down, unless its readers use all of it.
func partOf(name string) func([]byte) []byte {
	switch base := path.Base(name); {
	case base == "vpd": // its identifiers are replaced later on
		return func(vpd []byte) []byte { return vpd }
	case base == "modules.dep":
		return peerLines
	case name == "proc/cmdline":
		return iommuWords
	case name == "proc/config.gz":
		return packedOptionLines
	case strings.HasPrefix(name, "boot/config-"), strings.HasPrefix(name, "lib/modules/") && base == "config":
		return optionLines
	case name == platform.RoutesFile, name == platform.RoutesFileIPv6:
		return func(table []byte) []byte { return platform.WithoutAddresses(name, table) }
	case path.Ext(name) == ".xml":
		return overwriteTopology
	case isInformation(name):
		return informationLines
	}
	return nil
}

// packedOptionLines does to a packed kernel configuration what optionLines does.
func packedOptionLines(packed []byte) []byte {
	config, err := kmod.Unpack(packed)
	if err != nil {
		return packed
	}
	var kept bytes.Buffer
	w := gzip.NewWriter(&kept)
	if _, err := w.Write(optionLines(config)); err != nil || w.Close() != nil {
		return packed
	}
	return kept.Bytes()
}

// optionLines returns the lines of a kernel's configuration about options that matter to a
// family of GPUs, and the end of their menu.
func optionLines(config []byte) []byte {
	var names []string
	for _, gpu := range family.Every().GPUs {
		for _, option := range gpu.KernelOptions {
			names = append(names, option.Name, cmp.Or(option.Always, option.Name))
		}
	}
	decides := regexp.MustCompile(`CONFIG_(` + strings.Join(names, "|") + `)\b|^` + kmod.EndOfDrivers)
	if !regexp.MustCompile(`(^|\n)CONFIG_`).Match(config) { // not a configuration
		return config
	}
	kept := []byte("...\nCONFIG_...\n")
	for line := range bytes.Lines(config) {
		if decides.Match(line) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// isInformation reports whether a file is what a driver says of one of its GPUs.
func isInformation(name string) bool {
	return path.Base(name) == "information" && slices.ContainsFunc(family.Every().GPUs, func(g *family.GPU) bool {
		return g.Information != "" && strings.HasPrefix(name, g.Information+"/")
	})
}

// informationLines returns the lines about a GPU's UUID and device node. The UUID is
// replaced by a number later on, and with it in the list of env --gpus.
func informationLines(text []byte) []byte {
	var kept []byte
	n := platform.ParseInformation(text)
	if n.Model != "" { // it tells virtual GPUs
		kept = fmt.Appendf(kept, "Model: \t\t %s\n", n.Model)
	}
	if n.UUID != "" {
		kept = fmt.Appendf(kept, "GPU UUID: \t %s\n", n.UUID)
	}
	if n.Minor >= 0 {
		kept = fmt.Appendf(kept, "Device Minor: \t %d\n", n.Minor)
	}
	if excluded := [...]string{tristate.Unknown: "?", tristate.True: "Yes"}[n.Excluded]; excluded != "" {
		kept = fmt.Appendf(kept, "GPU Excluded:\t %s\n", excluded)
	}
	return append(kept, '\n') // an empty file would be an error
}

// symbolLines returns those lines of a symbol table, or of its beginning, that kmod
// looks for, and the first one, which shows that it is a table. Addresses that are
// not zero become all ones. ended reports whether the table ends where the data does.
func symbolLines(table []byte, ended bool) []byte {
	names := kmod.SymbolNames(family.Every())
	first := regexp.MustCompile(`^[0-9A-Fa-f]{8,16} `)
	decides := regexp.MustCompile(`( [tT] | __ksymtab_)(` + strings.Join(names, "|") + `)([.\s]|$)`)
	if !first.Match(table) { // not a symbol table
		return table[:min(len(table), 16)]
	}
	var kept []byte
	seen := map[string]bool{}
	for line := range bytes.Lines(table) {
		text, newline := bytes.CutSuffix(line, []byte("\n"))
		if len(text) > kmod.MaxLine { // kmod gives up here
			return append(kept, bytes.Repeat([]byte("x"), kmod.MaxLine+1)...)
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

// peerLines returns the lines of a modules.dep about peer memory.
func peerLines(dep []byte) []byte {
	kept := []byte("...\n") // an empty file would be an error
	for line := range bytes.Lines(dep) {
		if bytes.Contains(line, []byte("peer")) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// iommuWords returns the words of the kernel's command line about the IOMMU, and "..."
// for others, which may be anything, even passwords.
func iommuWords(cmdline []byte) []byte {
	var kept [][]byte
	for word := range bytes.FieldsSeq(cmdline) {
		if !platform.AboutIOMMU(string(word)) {
			word = []byte("...")
		}
		kept = append(kept, word)
	}
	kept = slices.CompactFunc(kept, bytes.Equal)
	return append(bytes.Join(kept, []byte(" ")), '\n')
}

// hideUsers overwrites names of users and hosts, with which kernels and drivers say
// who built them.
func (s *scrubber) hideUsers(text []byte) {
	for _, at := range s.user.FindAllSubmatchIndex(text, -1) {
		for _, name := range [][]byte{text[at[2]:at[3]], text[at[4]:at[5]]} {
			copy(name, strings.Repeat("x", len(name)))
		}
		s.users++
	}
}

// kept are the names of files without identifiers. Most of them hold a number, and
// garbage in its place must not become the number of an identifier. A board_id names
// a type of board, and a resource is where the BARs of a function are.
var kept = [...]string{
	"numa_node", "numa_balancing", "refcnt", "current_link_width", "max_link_width", "current_link_speed", "max_link_speed",
	"state", "phys_state", "rate", "board_id", "config", pci.ResourceFile, "mem_info_vram_total", "mtu",
}

// content overwrites what identifies the machine.
func (s *scrubber) content(name string, a *answer) {
	switch base := path.Base(name); {
	case base == "vpd":
		if len(a.data) > 0 && a.stop == nil {
			a.data = s.vpd(a.data)
		}
	case isGID(name):
		s.gid(a)
	case slices.Contains(kept[:], base), strings.HasSuffix(base, "_resize"):
	default:
		s.hideUsers(a.data)
		s.clean(a.data)
	}
}

// vpd returns vital product data with the product and all fields. Part number,
// engineering change and manufacturer are shared by many boards; any other field may
// identify a single one.
func (s *scrubber) vpd(data []byte) []byte {
	vpd := pci.ParseVPD(data)
	if vpd == nil {
		return []byte{0} // no VPD either
	}
	var fields []byte
	for _, key := range slices.Sorted(maps.Keys(vpd.Fields)) {
		value := []byte(vpd.Fields[key])
		switch {
		case key == "PN" || key == "EC" || key == "MN":
			s.clean(value)
		case bytes.Contains(value, []byte(pci.ManagementMark)):
			value = []byte(pci.ManagementMark)
		default:
			s.rename(value)
		}
		fields = append(append(fields, key[0], key[1], byte(len(value))), value...) //nolint:gosec // as long as it was
	}
	product := []byte(vpd.Product)
	s.clean(product)
	resource := func(tag byte, body []byte) []byte {
		return append([]byte{tag, byte(len(body)), byte(len(body) >> 8)}, body...) //nolint:gosec // at most as long as it was
	}
	return slices.Concat(resource(0x82, product), resource(0x90, fields), []byte{0x78})
}

// name scrubs a file's name, part by part: udev makes names of MACs and GUIDs. A part
// that is a number, of a port or a group, stays. Characters that readers replace are
// replaced: Parse would refuse the whole text for one odd name.
func (s *scrubber) name(name string) string {
	parts := strings.Split(sanitize.Terminal(name), "/")
	for i, part := range parts {
		if strings.Trim(part, "0123456789") != "" {
			text := []byte(part)
			s.clean(text)
			parts[i] = string(text)
		}
	}
	return strings.Join(parts, "/")
}
