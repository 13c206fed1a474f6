package kmod

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

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
	lines := bufio.NewReaderSize(table, MaxLine+1)
	for total, end := 0, false; !end && len(found) < len(names); {
		line, err := lines.ReadSlice('\n')
		end = errors.Is(err, io.EOF)
		switch {
		case total == 0 && len(line) > 0 && !isSymbolLine(line), errors.Is(err, bufio.ErrBufferFull):
			return found, errNoTable
		case end && total+len(line) == 0:
			return found, host.ErrEmpty
		case err != nil && !end: // there may be more of the line
			return found, err
		}
		symbol, rest := symbolIn(bytes.TrimSuffix(line, []byte{'\n'}))
		if i := slices.IndexFunc(names, func(name string) bool { return name == string(symbol) }); i >= 0 {
			if _, before := found[names[i]]; !before { // the first owner counts
				found[names[i]] = Symbol{tristate.True, ownerIn(rest)}
			}
		}
		if total += len(line); total > maxKallsyms {
			return found, host.ErrTooLarge
		}
	}
	for _, name := range names {
		if found[name].Found != tristate.True {
			found[name] = Symbol{Found: tristate.False}
		}
	}
	return found, nil
}

// isSymbolLine accepts "ffffffff81000000 T name": addresses may be all zero for
// readers without privilege.
func isSymbolLine(line []byte) bool {
	line, _, _ = bytes.Cut(line, []byte{'\n'})
	address, rest, ok := bytes.Cut(line, []byte{' '})
	return ok && len(address) >= 8 && len(address) <= 16 && len(rest) >= 3 && rest[1] == ' ' &&
		len(bytes.Trim(address, "0123456789abcdefABCDEF")) == 0
}

// symbolIn returns the symbol that a line of the table is about, and what follows it: a function
// (t, T), without the suffix that a compiler may have given it (".cold", ".llvm.123"), or the
// function whose export the line is the entry of. It returns none for other lines.
func symbolIn(line []byte) (symbol, rest []byte) {
	i := bytes.IndexByte(line, ' ')
	if i < 0 || len(line) < i+4 || line[i+2] != ' ' {
		return nil, nil
	}
	ends := "\t \r"
	symbol, export := bytes.CutPrefix(line[i+3:], []byte("__ksymtab_"))
	if kind := line[i+1]; !export {
		if kind != 't' && kind != 'T' {
			return nil, nil
		}
		ends = "\t \r."
	}
	if end := bytes.IndexAny(symbol, ends); end >= 0 {
		return symbol[:end], symbol[end:]
	}
	return symbol, nil
}

// ownerIn returns the module in what follows a symbol, "\t[ib_uverbs]"; "" for the kernel itself.
func ownerIn(rest []byte) string {
	_, module, _ := bytes.Cut(rest, []byte{'['})
	module, _, _ = bytes.Cut(module, []byte{']'})
	return string(module)
}
