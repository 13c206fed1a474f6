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
// Symbol, Unknown, stands for those that were not looked for, and for all of a table
// that cannot be read or is empty.
type Symbols map[string]Symbol

const kallsyms = "proc/kallsyms"

// maxKallsyms is ten times the largest table seen (12 MB).
const maxKallsyms = 128 << 20

var errNoTable = errors.New("not a symbol table")

// SymbolNames lists the symbols that matter to the families of a table.
func SymbolNames(present family.Table) []string {
	names := []string{PeerMemoryAPI, UmemDMABuf}
	for _, g := range present.GPUs {
		names = append(names, g.Client.Symbol)
	}
	for _, n := range present.NICs {
		names = append(names, n.DMABuf)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// symbols looks for some symbols in /proc/kallsyms.
func (s *scanner) symbols(names []string) Symbols {
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

// MaxLine is the longest line of a symbol table that is read, without its newline; a symbol
// of Linux has up to 511 bytes.
const MaxLine = 64<<10 - 1

// searchSymbols reads a table of lines "address type name[\t[module]]" up to the last
// of some symbols. A symbol is known to be missing only when the table was read to
// its end; what was found before an error stays found.
func searchSymbols(table io.Reader, names []string) (Symbols, error) {
	found := make(Symbols, len(names))
	buf := make([]byte, MaxLine+1)
	for kept, total, end := 0, 0, false; !end; {
		n, err := table.Read(buf[kept:])
		end = errors.Is(err, io.EOF)
		text := buf[:kept+n]
		if total == 0 && len(text) > 0 && !isSymbolLine(text) {
			return found, errNoTable
		}
		total += n
		lines := text
		if !end {
			lines = text[:bytes.LastIndexByte(text, '\n')+1]
		}
		for _, name := range names {
			if found[name].Found != tristate.True {
				if owner, ok := find(lines, name); ok {
					found[name] = Symbol{tristate.True, owner}
				}
			}
		}
		switch {
		case len(found) == len(names):
			return found, nil
		case len(lines) == 0 && len(text) == len(buf):
			return found, errNoTable
		case end && total == 0:
			return found, host.ErrEmpty
		case err != nil && !end: // what came with the error counts
			return found, err
		case n == 0 && !end:
			return found, io.ErrNoProgress
		case total > maxKallsyms:
			return found, host.ErrTooLarge
		}
		kept = copy(buf, text[len(lines):])
	}
	for _, name := range names {
		if found[name].Found != tristate.True {
			found[name] = Symbol{Found: tristate.False}
		}
	}
	return found, nil
}

// find looks for a symbol in lines of the table and returns the module that it belongs
// to. There are 200,000 lines, so it does not look at each, but at every occurrence of
// the symbol's rarest letter, which takes half the time.
func find(lines []byte, name string) (owner string, ok bool) {
	rare := rarest(name)
	for next := rare; next < len(lines); next++ {
		i := bytes.IndexByte(lines[next:], name[rare])
		if i < 0 {
			break
		}
		next += i
		at := next - rare
		if len(lines)-at < len(name) || string(lines[at:at+len(name)]) != name {
			continue
		}
		start := bytes.LastIndexByte(lines[:at], '\n') + 1
		line, _, _ := bytes.Cut(lines[start:], []byte{'\n'})
		if owner, ok := ownerIn(line, name); ok {
			return owner, true
		}
	}
	return "", false
}

// rarest is where in a symbol its rarest letter is, by how often the kernel's symbol
// tables have each.
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
	return ok && len(address) >= 8 && len(address) <= 16 && len(rest) >= 3 && rest[1] == ' ' &&
		len(bytes.Trim(address, "0123456789abcdefABCDEF")) == 0
}

// ownerIn returns the module that a symbol belongs to by a line of the table. ok is false
// where the line is about another one: it must have the symbol itself, a function (t, T)
// that a compiler may have given a suffix (".cold", ".llvm.123"), or the entry of its
// export.
func ownerIn(line []byte, name string) (owner string, ok bool) {
	i := bytes.IndexByte(line, ' ')
	if i < 0 || len(line) < i+4 || line[i+2] != ' ' {
		return "", false
	}
	kind, symbol := line[i+1], line[i+3:]
	function := kind == 't' || kind == 'T'
	if entry, export := bytes.CutPrefix(symbol, []byte("__ksymtab_")); export {
		symbol, function = entry, false
	} else if !function {
		return "", false
	}
	rest, ok := bytes.CutPrefix(symbol, []byte(name))
	if !ok || len(rest) > 0 && !bytes.ContainsRune([]byte("\t \r"), rune(rest[0])) && (rest[0] != '.' || !function) {
		return "", false
	}
	_, module, _ := bytes.Cut(rest, []byte{'['})
	module, _, _ = bytes.Cut(module, []byte{']'})
	return string(module), true
}
