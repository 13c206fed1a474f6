package kmod

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gdr-features/host"
	"gdr-features/source/family"
	"gdr-features/tristate"
)

// Functions of the RDMA core that tell what it can do, whatever the NIC.
const (
	PeerMemoryAPI = "ib_register_peer_memory_client" // PeerDirect
	UmemDMABuf    = "ib_umem_dmabuf_get"             // DMA-BUF (Linux 5.12)
)

// Symbol is a function of the running kernel.
type Symbol struct {
	// Found is False where the whole table was read and lacks the function.
	Found tristate.State
	// Owner is the module that has it, "" for the kernel itself.
	Owner string
}

// Symbols are functions of the running kernel by name, from /proc/kallsyms. The zero
// Symbol, Unknown, stands for those that were not looked for, because nothing
// depends on them, and for all of a table that cannot be read or is empty.
type Symbols map[string]Symbol

const kallsyms = "proc/kallsyms"

// maxKallsyms is ten times the largest table seen (12 MB).
const maxKallsyms = 128 << 20

var errNoTable = errors.New("not a symbol table")

// wanted lists the symbols that can still decide anything: a registered client
// proves the PeerDirect API, and without a GPU driver that exports it there is no DMA-BUF.
func (s *scanner) wanted(want Request) []string {
	var names []string
	if want.AllSymbols || s.anyPair(want, func(g *family.GPU, n *family.NIC) bool {
		return s.st.Peermem[Pair{g.Name, n.Name}].Registered != tristate.True
	}) {
		names = append(names, PeerMemoryAPI)
	}
	if want.AllSymbols || s.anyPair(want, func(g *family.GPU, _ *family.NIC) bool {
		return g.OpenFrom == 0 || s.st.Drivers[g.Name].Open != tristate.False
	}) {
		names = append(names, UmemDMABuf)
		for _, n := range want.Present.NICs {
			if n.DMABuf != "" {
				names = append(names, n.DMABuf)
			}
		}
	}
	return names
}

// anyPair reports whether something holds for some family of GPUs and of NICs.
func (s *scanner) anyPair(want Request, holds func(*family.GPU, *family.NIC) bool) bool {
	return slices.ContainsFunc(want.Present.GPUs, func(g *family.GPU) bool {
		return slices.ContainsFunc(want.Present.NICs, func(n *family.NIC) bool { return holds(g, n) })
	})
}

// symbols looks for some symbols in /proc/kallsyms.
func (s *scanner) symbols(names []string) Symbols {
	if len(names) == 0 {
		return nil
	}
	file, err := s.fs.Open(kallsyms)
	if err != nil {
		s.unread(err)
		return nil
	}
	defer file.Close()
	found, err := searchSymbols(file, names)
	if err != nil {
		s.problem(fmt.Errorf("/%s: %w", kallsyms, err))
	}
	return found
}

// maxLine is the longest line of a symbol table, without its newline; a symbol of
// Linux has up to 511 bytes.
const maxLine = 4 << 10

// searchSymbols reads a table of lines "address type name[\t[module]]" up to the last
// of some symbols. A symbol is known to be missing only when the table was read to
// its end; what was found before an error stays found.
//
// There are 200,000 lines, so only the few pieces of the table that may hold a
// symbol are read line by line.
func searchSymbols(table io.Reader, names []string) (Symbols, error) {
	found := make(Symbols, len(names))
	buf := make([]byte, 64<<10)
	tails := make([][]byte, len(names))
	for i, name := range names {
		tails[i] = []byte(name[rarest(name):])
	}
	for kept, total, end := 0, 0, false; !end; {
		n, err := table.Read(buf[kept:])
		end = errors.Is(err, io.EOF)
		rest := buf[:kept+n]
		if total == 0 && len(rest) > 0 && !isSymbolLine(rest) {
			return found, errNoTable
		}
		total += n
		last := bytes.LastIndexByte(rest, '\n') + 1
		if holds := func(tail []byte) bool { return bytes.Contains(rest[:last], tail) }; !end && !slices.ContainsFunc(tails, holds) && !longLine(rest[:last]) {
			rest = rest[last:]
		}
		for len(rest) > 0 {
			line, after, whole := bytes.Cut(rest, []byte{'\n'})
			if len(line) > maxLine {
				return found, errNoTable
			}
			if !whole && !end {
				break
			}
			if name, owner, ok := symbolIn(line, names); ok && found[name].Found != tristate.True {
				found[name] = Symbol{tristate.True, owner}
			}
			rest = after
		}
		switch {
		case len(found) == len(names):
			return found, nil
		case end && total == 0:
			return found, host.ErrEmpty
		case err != nil && !end: // what came with the error counts
			return found, err
		case n == 0 && !end:
			return found, io.ErrNoProgress
		case total > maxKallsyms:
			return found, host.ErrTooLarge
		}
		kept = copy(buf, rest)
	}
	for _, name := range names {
		if found[name].Found != tristate.True {
			found[name] = Symbol{Found: tristate.False}
		}
	}
	return found, nil
}

// longLine reports whether some line of a text is longer than maxLine.
func longLine(text []byte) bool {
	for len(text) > maxLine {
		last := bytes.LastIndexByte(text[:maxLine+1], '\n')
		if last < 0 {
			return true
		}
		text = text[last+1:]
	}
	return false
}

// rarest is where in a symbol its rarest letter is, by how often the kernel's symbol
// tables have each. Searching from there on takes a third of the time.
func rarest(symbol string) int {
	for _, letter := range "jzqwyvhkgumxlnob" {
		if i := strings.IndexRune(symbol, letter); i >= 0 {
			return i
		}
	}
	return 0
}

// isSymbolLine accepts "ffffffff81000000 T name": addresses may be all zero for
// readers without privilege.
func isSymbolLine(line []byte) bool {
	line, _, _ = bytes.Cut(line, []byte{'\n'})
	address, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok || len(address) < 8 || len(address) > 16 || len(rest) < 3 || rest[1] != ' ' {
		return false
	}
	for _, c := range address {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// symbolIn tells which of some names a line of the table has, and the module that it
// belongs to: the symbol itself, a function (t, T) that a compiler may have given a
// suffix (".cold", ".llvm.123"), or the entry of its export.
func symbolIn(line []byte, names []string) (name, owner string, ok bool) {
	i := bytes.IndexByte(line, ' ')
	if i < 0 || len(line) < i+4 || line[i+2] != ' ' {
		return "", "", false
	}
	kind, symbol := line[i+1], line[i+3:]
	function := kind == 't' || kind == 'T'
	if !function {
		var export bool
		if symbol, export = bytes.CutPrefix(symbol, []byte("__ksymtab_")); !export {
			return "", "", false
		}
	}
	for _, name := range names {
		if len(symbol) < len(name) || string(symbol[:len(name)]) != name {
			continue
		}
		rest := symbol[len(name):]
		if len(rest) > 0 && !bytes.ContainsRune([]byte("\t \r"), rune(rest[0])) && (rest[0] != '.' || !function) {
			continue
		}
		_, module, _ := bytes.Cut(rest, []byte{'['})
		module, _, _ = bytes.Cut(module, []byte{']'})
		return name, string(module), true
	}
	return "", "", false
}
