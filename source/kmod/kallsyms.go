package kmod

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"gdr-features/host"
	"gdr-features/tristate"
)

// Symbols are the functions of the running kernel that tell what it can do.
// False means that the whole table was read and lacks the symbol; Unknown that
// it could not be read, is empty, or was not read because nothing depends on it.
type Symbols struct {
	// PeerMemory: ib_register_peer_memory_client, the PeerDirect API.
	PeerMemory tristate.State
	// PeerMemoryOwner is the module that has it, "ib_core" or "ib_uverbs".
	PeerMemoryOwner string
	// UmemDMABuf: ib_umem_dmabuf_get, DMA-BUF in the RDMA core (Linux 5.12).
	UmemDMABuf tristate.State
	// MLX5DMABuf: mlx5_ib_reg_user_mr_dmabuf, DMA-BUF in mlx5.
	MLX5DMABuf tristate.State
}

const kallsyms = "proc/kallsyms"

// maxKallsyms is ten times the largest table seen (12 MB).
const maxKallsyms = 128 << 20

var errNoTable = errors.New("not a symbol table")

// Symbols that are looked for, by their place in wanted.
const (
	peerMemory = iota
	umemDMABuf
	mlx5DMABuf
)

var wanted = [...]string{
	peerMemory: "ib_register_peer_memory_client",
	umemDMABuf: "ib_umem_dmabuf_get",
	mlx5DMABuf: "mlx5_ib_reg_user_mr_dmabuf",
}

// needed tells which symbols can still decide anything: a registered client
// proves the PeerDirect API, and without the open GPU driver there is no DMA-BUF.
func (s *scanner) needed(want Request) (needed [len(wanted)]bool) {
	needed[peerMemory] = want.AllSymbols || s.st.Peermem != tristate.True
	needed[umemDMABuf] = want.AllSymbols || s.st.Driver.Open != tristate.False
	needed[mlx5DMABuf] = needed[umemDMABuf]
	return needed
}

// symbols searches /proc/kallsyms in one pass, up to the last symbol needed, and
// keeps nothing of it.
func (s *scanner) symbols(needed [len(wanted)]bool) Symbols {
	if needed == [len(wanted)]bool{} {
		return Symbols{}
	}
	file, err := s.fs.Open(kallsyms)
	if err != nil {
		s.unread(err)
		return Symbols{}
	}
	defer file.Close()
	found, end, err := searchSymbols(func(buf []byte) (int, error) {
		n, err := file.Read(buf)
		if n > 0 || errors.Is(err, io.EOF) {
			err = nil // if it failed behind these bytes, the next read fails too
		}
		return n, err
	}, needed)
	state := func(i int) tristate.State {
		switch {
		case !end && !needed[i]: // where the search ended is nothing to tell of
			return tristate.Unknown
		case found[i].yes:
			return tristate.True
		case end:
			return tristate.False
		}
		return tristate.Unknown
	}
	if err != nil {
		s.problem(fmt.Errorf("/%s: %w", kallsyms, err))
	}
	symbols := Symbols{PeerMemory: state(peerMemory), UmemDMABuf: state(umemDMABuf), MLX5DMABuf: state(mlx5DMABuf)}
	if symbols.PeerMemory == tristate.True {
		symbols.PeerMemoryOwner = found[peerMemory].owner
	}
	return symbols
}

// hit tells that a symbol was seen, and the module that has it.
type hit struct {
	yes   bool
	owner string
}

// maxLine is the longest line of a symbol table, without its newline; a symbol of
// Linux has up to 511 bytes.
const maxLine = 4 << 10

// searchSymbols reads a table of lines "address type name[\t[module]]" and looks
// for the wanted ones, until it has those needed. Only when it came to the end
// is what was not found not there. Of the needed it tells the same however many
// bytes a read gives; the others may be found or not.
//
// Every read goes to the same aligned place, with the line that the read before
// left unfinished right in front of it: copying to odd addresses costs twice
// the time.
func searchSymbols(read func([]byte) (int, error), needed [len(wanted)]bool) (found [len(wanted)]hit, end bool, err error) {
	const front, chunk = maxLine, 64 << 10
	buf := make([]byte, front+chunk)
	kept, total := 0, 0
	for {
		n, err := read(buf[front:])
		if err != nil {
			return found, false, err
		}
		text := buf[front-kept : front+n]
		if total == 0 && n > 0 && !isSymbolLine(text) {
			return found, false, errNoTable
		}
		total += n
		if n == 0 { // the end: a last line without newline counts
			searchLines(append(text[:kept:kept], '\n'), &found)
			if total == 0 {
				return found, false, host.ErrEmpty
			}
			return found, true, nil
		}
		whole, fit := wholeLines(text)
		searchLines(text[:whole], &found)
		if enough(&found, needed) {
			return found, false, nil
		}
		if !fit {
			return found, false, errNoTable
		}
		kept = copy(buf[front-(len(text)-whole):], text[whole:])
		if total > maxKallsyms {
			return found, false, host.ErrTooLarge
		}
	}
}

// wholeLines gives the length of the whole lines that text begins with, up to the
// first that is too long; fit is false where there is one, or begins to be.
func wholeLines(text []byte) (length int, fit bool) {
	for {
		rest := text[length:]
		last := bytes.LastIndexByte(rest[:min(len(rest), maxLine+1)], '\n')
		if last < 0 {
			return length, len(rest) <= maxLine
		}
		length += last + 1
	}
}

func enough(found *[len(wanted)]hit, needed [len(wanted)]bool) bool {
	for i := range found {
		if needed[i] && !found[i].yes {
			return false
		}
	}
	return true
}

// isSymbolLine accepts "ffffffff81000000 T name": addresses may be all zero for
// readers without privilege.
func isSymbolLine(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte{'\n'})
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

// searchLines looks at whole lines. It searches for a symbol from its rarest
// letter on, which takes a third of the time: first letters such as "i" are
// everywhere.
func searchLines(text []byte, found *[len(wanted)]hit) {
	for i, symbol := range wanted {
		from := rarest(symbol)
		tail := []byte(symbol[from:])
		for at := from; at < len(text) && !found[i].yes; at++ {
			next := bytes.Index(text[at:], tail)
			if next < 0 {
				break
			}
			at += next
			if start := at - from; string(text[start:at]) == symbol[:from] {
				found[i].note(text, start, at+len(tail))
			}
		}
	}
}

// rarest is where in a symbol its rarest letter is, by how often the kernel's
// symbol tables have each.
func rarest(symbol string) int {
	for _, letter := range "jzqwyvhkgumxlnob" {
		if i := strings.IndexRune(symbol, letter); i >= 0 {
			return i
		}
	}
	return 0
}

// note accepts the symbol itself, a function (t, T) that a compiler may have
// given a suffix (".cold", ".llvm.123"), or the entry of its export, and takes
// down whose it is.
func (h *hit) note(text []byte, start, end int) {
	before, rest := text[:start], text[end:]
	function := bytes.HasSuffix(before, []byte(" t ")) || bytes.HasSuffix(before, []byte(" T "))
	export := bytes.HasSuffix(before, []byte(" __ksymtab_"))
	rest, _, _ = bytes.Cut(rest, []byte{'\n'})
	switch {
	case !function && !export:
		return
	case len(rest) == 0, rest[0] == '\t', rest[0] == ' ', rest[0] == '\r', rest[0] == '.' && function:
	default:
		return
	}
	h.yes = true
	if _, module, ok := bytes.Cut(rest, []byte{'['}); ok {
		owner, _, _ := bytes.Cut(module, []byte{']'})
		h.owner = string(owner)
	}
}
