// Package library makes shared libraries of a few hundred bytes for tests, and images of
// containers from them: with the tables that a loader reads and nothing that runs.
package library

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// Library is what a library has.
type Library struct {
	// Machine is what it is made for; EM_X86_64 by default.
	Machine elf.Machine
	// Symbols are its functions, "name@version".
	Symbols []string
	// Defines are versions of symbols beyond those of Symbols.
	Defines []string
	// Needs are the libraries that it needs, with the versions of their symbols.
	Needs map[string][]string
	// Texts are constants.
	Texts []string
	// ABI are the numbers of a provider of libibverbs, and Driver its name there; nil for no
	// provider. InPlace: the pointer to the name stands in its place, as the linker's option
	// pack-relative-relocs leaves it.
	ABI     []uint32
	Driver  string
	InPlace bool
}

// table is a table of strings.
type table struct{ data []byte }

func (t *table) add(text string) uint32 {
	at := uint32(len(t.data))
	t.data = append(append(t.data, text...), 0)
	return at
}

type section struct {
	name       string
	kind       elf.SectionType
	flags      elf.SectionFlag
	data       []byte
	link       int
	info, size uint32
}

// Bytes is the file.
func (l Library) Bytes() []byte {
	if l.Machine == 0 {
		l.Machine = elf.EM_X86_64
	}
	le := binary.LittleEndian
	texts := &table{[]byte{0}}
	versions := slices.Clone(l.Defines)
	for _, s := range l.Symbols {
		if _, v, ok := strings.Cut(s, "@"); ok && !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	symbols, versym := make([]byte, 24), make([]byte, 2)
	for _, s := range l.Symbols {
		name, v, _ := strings.Cut(s, "@")
		symbols = le.AppendUint32(symbols, texts.add(name))
		symbols = append(symbols, 0x12, 0) // a global function
		symbols = le.AppendUint16(symbols, 1)
		symbols = append(symbols, make([]byte, 16)...)
		versym = le.AppendUint16(versym, uint16(slices.Index(versions, v)+2))
	}
	var defs, needs, dynamic []byte
	for i, v := range versions {
		next := uint32(28)
		if i == len(versions)-1 {
			next = 0
		}
		defs = appendAll(defs, uint16(1), uint16(0), uint16(i+2), uint16(1), uint32(0), uint32(20), next, texts.add(v), uint32(0))
	}
	names := slices.Sorted(maps.Keys(l.Needs))
	withVersions := 0
	for i, name := range names {
		of := l.Needs[name]
		at := texts.add(name)
		dynamic = appendAll(dynamic, uint64(elf.DT_NEEDED), uint64(at))
		if len(of) == 0 {
			continue
		}
		withVersions++
		next := uint32(16 + 16*len(of))
		if !slices.ContainsFunc(names[i+1:], func(n string) bool { return len(l.Needs[n]) > 0 }) {
			next = 0
		}
		needs = appendAll(needs, uint16(1), uint16(len(of)), at, uint32(16), next)
		for j, v := range of {
			next := uint32(16)
			if j == len(of)-1 {
				next = 0
			}
			needs = appendAll(needs, uint32(0), uint16(0), uint16(100+j), texts.add(v), next)
		}
	}
	dynamic = appendAll(dynamic, uint64(elf.DT_NULL), uint64(0))
	constants := &table{[]byte{0}}
	driver := constants.add(l.Driver)
	for _, text := range l.Texts {
		constants.add(text)
	}
	alloc := elf.SHF_ALLOC
	sections := []section{
		{},
		{name: ".dynstr", kind: elf.SHT_STRTAB, flags: alloc, data: texts.data},
		{name: ".dynsym", kind: elf.SHT_DYNSYM, flags: alloc, data: symbols, link: 1, info: 1, size: 24},
		{name: ".gnu.version", kind: elf.SHT_GNU_VERSYM, flags: alloc, data: versym, link: 2, size: 2},
		{name: ".dynamic", kind: elf.SHT_DYNAMIC, flags: alloc, data: dynamic, link: 1, size: 16},
		{name: ".rodata", kind: elf.SHT_PROGBITS, flags: alloc, data: constants.data},
	}
	if len(versions) > 0 {
		sections = append(sections, section{name: ".gnu.version_d", kind: elf.SHT_GNU_VERDEF, flags: alloc, data: defs, link: 1, info: uint32(len(versions))})
	}
	if withVersions > 0 {
		sections = append(sections, section{name: ".gnu.version_r", kind: elf.SHT_GNU_VERNEED, flags: alloc, data: needs, link: 1, info: uint32(withVersions)})
	}
	if l.ABI != nil {
		sections = append(sections,
			section{name: ".data.rel.ro", kind: elf.SHT_PROGBITS, flags: alloc | elf.SHF_WRITE, data: appendAll(make([]byte, 8), uint64(0), l.ABI[0], l.ABI[1], uint64(0))},
			section{name: ".rela.dyn", kind: elf.SHT_RELA, flags: alloc, data: make([]byte, 24), size: 24}) //nolint:misspell // as ELF names it
	}
	sections = append(sections, section{name: ".shstrtab", kind: elf.SHT_STRTAB})
	return l.file(sections, driver)
}

// file lays the sections out, each at the address that is its place in the file.
func (l Library) file(sections []section, driver uint32) []byte {
	names := &table{[]byte{0}}
	at := make([]uint32, len(sections))
	for i := range sections {
		at[i] = names.add(sections[i].name)
	}
	sections[len(sections)-1].data = names.data
	out, offsets := make([]byte, 64), make([]uint64, len(sections))
	place := map[string]uint64{}
	for i := range sections {
		out = append(out, make([]byte, (8-len(out)%8)%8)...)
		offsets[i] = uint64(len(out))
		place[sections[i].name] = offsets[i]
		out = append(out, sections[i].data...)
	}
	le := binary.LittleEndian
	if l.ABI != nil {
		pointer := place[".data.rel.ro"] + 8
		name := place[".rodata"] + uint64(driver)
		if l.InPlace {
			le.PutUint64(out[pointer:], name)
		} else {
			copy(out[place[".rela.dyn"]:], appendAll(nil, pointer, uint64(8), name))
		}
	}
	out = append(out, make([]byte, (8-len(out)%8)%8)...)
	table := uint64(len(out))
	for i, s := range sections {
		addr := offsets[i]
		if s.flags&elf.SHF_ALLOC == 0 {
			addr = 0
		}
		out = appendAll(out, at[i], uint32(s.kind), uint64(s.flags), addr, offsets[i], uint64(len(s.data)), uint32(s.link), s.info, uint64(8), uint64(s.size))
	}
	head := []byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	head = appendAll(head, uint16(elf.ET_DYN), uint16(l.Machine), uint32(1), uint64(0), uint64(0), table, uint32(0), uint16(64), uint16(56), uint16(0), uint16(64), uint16(len(sections)), uint16(len(sections)-1))
	copy(out, head)
	return out
}

func appendAll(to []byte, values ...any) []byte {
	var b bytes.Buffer
	for _, v := range values {
		_ = binary.Write(&b, binary.LittleEndian, v) // a buffer takes everything
	}
	return append(to, b.Bytes()...)
}
