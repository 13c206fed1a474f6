package kmod

import (
	"bytes"
	"slices"
)

// Longest lines and most lines of a symbol table that are kept.
const (
	keptLine  = 4 << 10 // as searchSymbols
	keptLines = 1 << 10
)

// DecidingLines gives the lines of a symbol table, or of its beginning, that
// searching it comes to the same with: the first, and those with a symbol looked
// for. Addresses are zero where they were, and all ones where they were not.
// ended tells whether the table ended where the data does.
func DecidingLines(table []byte, ended bool) []byte {
	var kept []byte
	count := 0
	for line := range bytes.Lines(table) {
		if count == 0 && len(line) > keptLine && isSymbolLine(line) {
			line = append(line[:64:64], '\n')
		}
		whole := ended || line[len(line)-1] == '\n'
		switch {
		case len(kept) == 0 && !isSymbolLine(line):
			return line[:min(len(line), 64)] // no table: so is its beginning
		case !whole && len(line) > keptLine: // searching ended here
			return append(kept, bytes.Repeat([]byte("x"), keptLine+1)...)
		case len(kept) > 0 && (!whole || !decides(line)), len(line) > keptLine, count == keptLines:
			continue
		}
		kept = append(kept, hideAddress(line)...)
		count++
	}
	return kept
}

func decides(line []byte) bool {
	return slices.ContainsFunc(wanted[:], func(symbol string) bool { return bytes.Contains(line, []byte(symbol)) })
}

// hideAddress gives a line without what its address tells.
func hideAddress(line []byte) []byte {
	address, _, ok := bytes.Cut(line, []byte{' '})
	if !ok || len(bytes.Trim(address, "0")) == 0 {
		return line
	}
	hidden := slices.Clone(line)
	copy(hidden, bytes.Repeat([]byte("f"), len(address)))
	return hidden
}

// FirstProcessor gives the first block of /proc/cpuinfo: no reader goes further.
func FirstProcessor(cpuinfo []byte) []byte {
	if i := bytes.Index(cpuinfo, []byte("\n\n")); i >= 0 {
		return cpuinfo[:i+1]
	}
	return cpuinfo
}

// DecidingModules gives the lines of a modules.dep about peer memory, and its first.
func DecidingModules(dep []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(dep) {
		switch {
		case bytes.Contains(line, []byte("peer")):
			kept = append(kept, line...)
		case len(kept) == 0:
			kept = append(kept, line[:min(len(line), 256)]...)
		}
	}
	return kept
}

// DecidingWords gives the words of the kernel's command line about the IOMMU, and
// "..." for others: those may be anything, passwords too.
func DecidingWords(cmdline []byte) []byte {
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
