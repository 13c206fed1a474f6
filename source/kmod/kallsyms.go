package kmod

import (
	"bufio"
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

// wanted lists the symbols that can still matter. A registered client proves the PeerDirect
// API. If no GPU driver exports DMA-BUF, the symbols for it do not matter.
func (s *scanner) wanted(want Request) []string {
	var names []string
	if want.AllSymbols || s.st.coreAPI(want) == tristate.Unknown || s.anyPair(want, func(g *family.GPU, n *family.NIC) bool {
		return s.st.Peermem[Pair{g.Name, n.Name}].Registered != tristate.True
	}) {
		names = append(names, PeerMemoryAPI)
		for _, g := range want.Present.GPUs {
			if g.Client.Symbol != "" {
				names = append(names, g.Client.Symbol)
			}
		}
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
func searchSymbols(table io.Reader, names []string) (Symbols, error) {
	found, missing := make(Symbols, len(names)), make(map[string]bool, len(names))
	for _, name := range names {
		missing[name] = true
	}
	r := bufio.NewReaderSize(table, 64<<10)
	for total, first := 0, true; len(missing) > 0; {
		line, err := r.ReadSlice('\n')
		total += len(line)
		line = bytes.TrimSuffix(line, []byte{'\n'})
		end := errors.Is(err, io.EOF)
		switch {
		case end && total == 0:
			return found, host.ErrEmpty
		case len(line) > maxLine, first && total > 0 && !isSymbolLine(line):
			return found, errNoTable
		case err != nil && !end:
			return found, err
		case total > maxKallsyms:
			return found, host.ErrTooLarge
		}
		first = false
		name, module := symbolIn(line)
		if missing[string(name)] {
			found[string(name)] = Symbol{tristate.True, owner(module)}
			delete(missing, string(name))
		}
		if end {
			break
		}
	}
	for name := range missing {
		found[name] = Symbol{Found: tristate.False}
	}
	return found, nil
}

// isSymbolLine accepts "ffffffff81000000 T name": addresses may be all zero for
// readers without privilege.
func isSymbolLine(line []byte) bool {
	line, _, _ = bytes.Cut(line, []byte{'\n'})
	address, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok || len(address) < 8 || len(address) > 16 || len(rest) < 3 || rest[1] != ' ' {
		return false
	}
	return strings.Trim(string(address), "0123456789abcdefABCDEF") == ""
}

// symbolIn returns the function that a line of the table is about, and the module that it
// belongs to as "\t[module]". The line must have the function itself (t, T), which a compiler
// may have given a suffix (".cold", ".llvm.123"), or the entry of its export; the name is
// empty for any other.
func symbolIn(line []byte) (name, module []byte) {
	i := bytes.IndexByte(line, ' ')
	if i < 0 || len(line) < i+4 || line[i+2] != ' ' {
		return nil, nil
	}
	kind, symbol, ends := line[i+1], line[i+3:], "\t \r."
	if kind != 't' && kind != 'T' {
		var export bool
		if symbol, export = bytes.CutPrefix(symbol, []byte("__ksymtab_")); !export {
			return nil, nil
		}
		ends = "\t \r"
	}
	if end := bytes.IndexAny(symbol, ends); end >= 0 {
		return symbol[:end], symbol[end:]
	}
	return symbol, nil
}

// owner returns the module in "\t[module]", "" for none.
func owner(module []byte) string {
	_, module, _ = bytes.Cut(module, []byte{'['})
	module, _, _ = bytes.Cut(module, []byte{']'})
	return string(module)
}
