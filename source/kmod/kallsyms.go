package kmod

import (
	"bytes"
	"errors"
	"fmt"

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

// wanted are the symbols looked for.
var wanted = [...]string{
	"ib_register_peer_memory_client",
	"ib_umem_dmabuf_get",
	"mlx5_ib_reg_user_mr_dmabuf",
}

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
func searchSymbols(read func([]byte) (int, error)) (found [len(wanted)]hit, err error) {
	matcher := newMatcher()
	buf := make([]byte, 64<<10)
	kept, total := 0, 0
	for {
		n, err := read(buf[kept:])
		if err != nil {
			return found, err
		}
		end := kept + n
		if total == 0 && n > 0 && !isSymbolLine(buf[:end]) {
			return found, errNoTable
		}
		total += n
		whole := bytes.LastIndexByte(buf[:end], '\n') + 1
		if n == 0 { // the end: a last line without newline counts
			matcher.search(append(buf[:end:end], '\n'), &found)
			if total == 0 {
				return found, host.ErrEmpty
			}
			return found, nil
		}
		matcher.search(buf[:whole], &found)
		if found[0].yes && found[1].yes && found[2].yes {
			return found, nil
		}
		kept = copy(buf, buf[whole:end])
		if kept == len(buf) {
			return found, errNoTable // a line of 64 KiB
		}
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
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// matcher finds several words in one pass, skipping most bytes (Wu and Manber,
// "A fast algorithm for multi-pattern searching", 1994): the two bytes at the
// end of a window tell how far the window may move.
type matcher struct {
	window int
	shift  [1 << 12]uint8
}

func newMatcher() *matcher {
	m := &matcher{window: len(wanted[0])}
	for _, w := range wanted {
		m.window = min(m.window, len(w))
	}
	for i := range m.shift {
		m.shift[i] = uint8(m.window - 1) //nolint:gosec // the words are short
	}
	for _, w := range wanted {
		for i := 1; i < m.window; i++ {
			at := &m.shift[block(w[i-1], w[i])]
			*at = min(*at, uint8(m.window-1-i)) //nolint:gosec // the words are short
		}
	}
	return m
}

func block(a, b byte) int { return (int(a)<<5 ^ int(b)) & (1<<12 - 1) }

func (m *matcher) search(text []byte, found *[len(wanted)]hit) {
	for pos := m.window - 1; pos < len(text); {
		if skip := m.shift[block(text[pos-1], text[pos])]; skip > 0 {
			pos += int(skip)
			continue
		}
		start := pos - m.window + 1
		for i, w := range wanted {
			if len(text)-start >= len(w) && string(text[start:start+len(w)]) == w {
				note(text, start, start+len(w), &found[i])
			}
		}
		pos++
	}
}

// note accepts the symbol itself, a function (t, T) that a compiler may have
// given a suffix (".cold", ".llvm.123"), or the entry of its export.
func note(text []byte, start, end int, h *hit) {
	const export = "__ksymtab_"
	after := byte('\n')
	if end < len(text) {
		after = text[end]
	}
	ends := after == '\n' || after == '\t' || after == ' ' || after == '\r'
	before := text[:start]
	switch {
	case bytes.HasSuffix(before, []byte(" t ")), bytes.HasSuffix(before, []byte(" T ")):
		if !ends && after != '.' {
			return
		}
	case bytes.HasSuffix(before, []byte(" "+export)):
		if !ends {
			return
		}
	default:
		return
	}
	h.yes = true
	line, _, _ := bytes.Cut(text[end:], []byte{'\n'})
	if _, module, ok := bytes.Cut(line, []byte{'['}); ok && h.owner == "" {
		name, _, _ := bytes.Cut(module, []byte{']'})
		h.owner = string(name)
	}
}
