package kmod

import (
	"slices"
	"strings"

	"gdr-features/host"
	"gdr-features/tristate"
)

// Cache saves repeated scans from reading /proc/kallsyms, the most expensive file
// of all, which changes only with the modules that are loaded. The zero value
// remembers nothing. One Scan at a time may use it.
type Cache struct {
	key   string // the modules that were loaded, and the symbols looked for; "" without a table
	table Symbols

	options map[string]tristate.State // of the kernel's configuration, nil before it was read
	config  string                    // the file it was read from
}

// maxModules is many times the largest list seen (60 KB).
const maxModules = 4 << 20

// symbols returns what the symbol table says: what is remembered if the same modules
// are loaded as then.
func (m *Cache) symbols(s *scanner) Symbols {
	names := SymbolNames(s.here)
	if m == nil {
		return s.symbols(names)
	}
	list, err := s.machine.Bytes("proc/modules", maxModules)
	if err != nil && !host.Absent(err) { // a kernel without modules has no list
		return s.symbols(names)
	}
	modules := []string{"ib_core", "ib_uverbs"}
	for _, n := range s.here.NICs {
		if n.DMABuf != "" {
			modules = append(modules, n.Module)
		}
	}
	for _, module := range modules {
		source, _ := s.machine.Line("sys/module/" + module + "/srcversion") // built in, or built without
		list = append(list, source+"\n"...)
	}
	key := loaded(string(list) + strings.Join(names, "\n"))
	if key == m.key {
		s.files.note(kallsyms) // by an earlier scan
		return m.table
	}
	m.table, m.key = s.symbols(names), key
	if slices.ContainsFunc(names, func(name string) bool { return m.table[name].Found == tristate.Unknown }) {
		m.key = "" // it was not read to its end
	}
	return m.table
}

// loaded returns of each line of /proc/modules the name, size, state and address,
// and not how often it is used and by whom. The address is zero for readers without
// privilege; to them the source versions show another build.
func loaded(list string) string {
	var kept strings.Builder
	for line := range strings.Lines(list) {
		for i, field := range strings.Fields(line) {
			if i != 2 && i != 3 {
				kept.WriteString(field + " ")
			}
		}
		kept.WriteString("\n")
	}
	return kept.String()
}
