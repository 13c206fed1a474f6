package kmod

import (
	"bytes"
	"slices"
)

// DecidingLines gives the lines of a symbol table, or of its beginning, that
// searching it comes to the same with: the first, and the first with each symbol
// looked for. Addresses are zero where they were, and all ones where they were not.
// ended tells whether the table ended where the data does.
func DecidingLines(table []byte, ended bool) []byte {
	if !isSymbolLine(table) { // no table: so is its beginning
		first, _, _ := bytes.Cut(table, []byte{'\n'})
		return table[:min(len(table), len(first)+1, 64)]
	}
	var kept []byte
	var found [len(wanted)]hit
	for line := range bytes.Lines(table) {
		if _, fit := wholeLines(line); !fit { // searching ended here
			return append(kept, bytes.Repeat([]byte("x"), maxLine+1)...)
		}
		before := found
		if ended || bytes.HasSuffix(line, []byte{'\n'}) {
			searchLines(line, &found)
		}
		if len(kept) == 0 || found != before {
			kept = append(kept, hideAddress(line)...)
		}
	}
	return kept
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

// FirstProcessor gives the first block of /proc/cpuinfo, or of its beginning. No
// reader goes further.
func FirstProcessor(cpuinfo []byte) []byte {
	if i := bytes.Index(cpuinfo, []byte("\n\n")); i >= 0 {
		return cpuinfo[:i+1]
	}
	return cpuinfo
}

// DecidingModules gives the lines of a modules.dep about peer memory, behind the
// beginning of its first: a file without a line is none.
func DecidingModules(dep []byte) []byte {
	first, _, _ := bytes.Cut(dep, []byte{'\n'})
	kept := append(bytes.Clone(first[:min(len(first), 255)]), '\n')
	if bytes.Contains(first, []byte("peer")) {
		kept = nil
	}
	for line := range bytes.Lines(dep) {
		if bytes.Contains(line, []byte("peer")) {
			kept = append(kept, line...)
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
