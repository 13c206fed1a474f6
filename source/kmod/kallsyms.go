package kmod

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"gdr-features/internal/host"
	"gdr-features/internal/tri"
)

// Symbols are the functions of the running kernel that tell what it can do.
// False means that the whole table was read and lacks the symbol; Unknown that
// it could not be read, or is empty.
type Symbols struct {
	// PeerMemory: ib_register_peer_memory_client, the PeerDirect API.
	PeerMemory tri.State
	// PeerMemoryOwner is the module that has it, "ib_core" or "ib_uverbs".
	PeerMemoryOwner string
	// UmemDMABuf: ib_umem_dmabuf_get, DMA-BUF in the RDMA core (Linux 5.12).
	UmemDMABuf tri.State
	// MLX5DMABuf: mlx5_ib_reg_user_mr_dmabuf, DMA-BUF in mlx5.
	MLX5DMABuf tri.State
}

const kallsyms = "proc/kallsyms"

// maxKallsyms is ten times the largest table seen (12 MB).
const maxKallsyms = 128 << 20

var errNoTable = errors.New("not a symbol table")

// wanted are the symbols looked for. Each has a letter that is rare in symbol
// tables (one byte in 130) and no digit of an address: the search leaps from one
// such letter to the next.
var wanted = [...]string{
	"ib_register_peer_memory_client",
	"ib_umem_dmabuf_get",
	"mlx5_ib_reg_user_mr_dmabuf",
}

const rare = 'g'

// symbols searches /proc/kallsyms in one pass and keeps nothing of it.
func (s *scanner) symbols() Symbols {
	file, err := s.fs.Open(kallsyms)
	if err != nil {
		s.problem(err)
		return Symbols{}
	}
	defer file.Close()
	found, err := searchSymbols(file.Read)
	state := func(i int) tri.State {
		switch {
		case found[i].yes:
			return tri.True
		case err != nil:
			return tri.Unknown
		}
		return tri.False
	}
	if err != nil {
		s.problem(fmt.Errorf("/%s: %w", kallsyms, err))
	}
	return Symbols{
		PeerMemory: state(0), PeerMemoryOwner: found[0].owner,
		UmemDMABuf: state(1), MLX5DMABuf: state(2),
	}
}

// hit tells that a symbol was seen, and the module that has it.
type hit struct {
	yes   bool
	owner string
}

// searchSymbols reads a table of lines "address type name[\t[module]]" and looks
// for the wanted ones. An error means that what was not found may yet be there.
//
// Every read goes to the same aligned place, with the line that the read before
// left unfinished right in front of it: copying to odd addresses costs twice
// the time.
func searchSymbols(read func([]byte) (int, error)) (found [len(wanted)]hit, err error) {
	const front, chunk = 4 << 10, 64 << 10
	buf := make([]byte, front+chunk)
	kept, total := 0, 0
	for {
		n, err := read(buf[front:])
		if err != nil {
			return found, err
		}
		text := buf[front-kept : front+n]
		if total == 0 && n > 0 && !isSymbolLine(text) {
			return found, errNoTable
		}
		total += n
		if n == 0 { // the end: a last line without newline counts
			searchLines(append(text[:kept:kept], '\n'), &found)
			if total == 0 {
				return found, host.ErrEmpty
			}
			return found, nil
		}
		whole := bytes.LastIndexByte(text, '\n') + 1
		searchLines(text[:whole], &found)
		if found[0].yes && found[1].yes && found[2].yes {
			return found, nil
		}
		if kept = len(text) - whole; kept > front {
			return found, errNoTable // a line of 4 KiB
		}
		copy(buf[front-kept:], text[whole:])
		if total > maxKallsyms {
			return found, host.ErrTooLarge
		}
	}
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

// searchLines looks at whole lines.
func searchLines(text []byte, found *[len(wanted)]hit) {
	for at := 0; ; at++ {
		leap := bytes.IndexByte(text[at:], rare)
		if leap < 0 {
			return
		}
		at += leap
		for i, symbol := range wanted {
			before := strings.IndexByte(symbol, rare)
			start, end := at-before, at-before+len(symbol)
			if start < 0 || end > len(text) || text[at+1] != symbol[before+1] || text[at-1] != symbol[before-1] {
				continue
			}
			if string(text[start:end]) == symbol {
				found[i].note(text, start, end)
			}
		}
	}
}

// note accepts the symbol itself, a function (t, T) that a compiler may have
// given a suffix (".cold", ".llvm.123"), or the entry of its export.
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
	if _, module, ok := bytes.Cut(rest, []byte{'['}); ok && h.owner == "" {
		owner, _, _ := bytes.Cut(module, []byte{']'})
		h.owner = string(owner)
	}
}
