package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
)

var (
	errMachine    = errors.New("made for another kind of processor")
	errCompressed = errors.New("a compressed section")
)

// What reading one library may cost: package elf copies the name of each section and symbol,
// and many may share one text. The libraries that are looked for have less than a tenth.
const (
	mostSections = 256
	mostNames    = 16 << 10 // bytes of the names of sections, and of a list of needs or versions
	mostSection  = 1 << 20  // bytes of any other section, and of the names of all symbols
	mostText     = 4096     // bytes of one name
)

// elf opens a library. The caller closes the file. The error is errMachine where the loader
// passes it over.
func (l *loader) elf(name string) (*file, *elf.File, error) {
	f, err := l.open(name)
	if err != nil {
		return nil, nil, err
	}
	var e *elf.File
	if err = l.modestHead(f); err == nil {
		if e, err = elf.NewFile(f); err == nil {
			err = modest(e)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, e, nil
}

// modestHead returns an error for a file with more sections, or longer names of them, than
// package elf should read, or for another kind of processor. All kinds that are looked for
// have 64 bits and are little-endian.
func (l *loader) modestHead(f *file) error {
	var head elf.Header64
	if err := binary.Read(io.NewSectionReader(f, 0, 1<<10), binary.LittleEndian, &head); err != nil {
		return err
	}
	switch {
	case string(head.Ident[:4]) != elf.ELFMAG:
		return nil // package elf says so
	case head.Ident[elf.EI_CLASS] != byte(elf.ELFCLASS64), head.Ident[elf.EI_DATA] != byte(elf.ELFDATA2LSB), elf.Machine(head.Machine) != l.machine:
		return errMachine
	case head.Shnum > mostSections, head.Phnum > mostSections, head.Shnum == 0 && head.Shoff != 0:
		return errLarge
	case head.Shnum > 0:
		var names elf.Section64
		at := int64(head.Shoff) + int64(head.Shstrndx)*int64(head.Shentsize) //nolint:gosec // a negative place cannot be read
		if err := binary.Read(io.NewSectionReader(f, at, 1<<10), binary.LittleEndian, &names); err != nil {
			return err
		}
		if names.Size > mostNames {
			return errLarge
		}
	}
	return nil
}

// load reads a library.
func (l *loader) load(name, file string) (*Library, error) {
	f, e, err := l.elf(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lib := libraryAt(name, f.path)
	symbols, err := e.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, err
	}
	lib.exports = map[string]bool{}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			lib.exports[s.Name+"@"+s.Version] = true
		}
	}
	versions, _ := e.DynamicVersions() // an error: it has none
	for _, v := range versions {
		lib.defines = append(lib.defines, v.Name)
	}
	if lib.needs, err = e.ImportedLibraries(); err != nil || len(lib.needs) > mostDirectories {
		lib.needs = nil
	}
	lib.versions, _ = e.DynamicVersionNeeds() // an error: it needs none
	return lib, nil
}

// libraryAt is a library of which nothing is read.
func libraryAt(name, file string) *Library {
	_, version, _ := strings.Cut(path.Base(file), name+".")
	return &Library{Name: name, Path: file, Version: version}
}

// modest returns an error for a file whose tables are larger than those of any library that
// is looked for. Package elf reads these whole, and unpacks them.
func modest(e *elf.File) error {
	for _, s := range e.Sections {
		most := uint64(mostSection)
		switch s.Type {
		case elf.SHT_DYNSYM, elf.SHT_GNU_VERSYM:
			// as large as any
		case elf.SHT_DYNAMIC, elf.SHT_GNU_VERDEF, elf.SHT_GNU_VERNEED:
			most = mostNames
		default:
			continue
		}
		if s.Size > most {
			return errLarge
		}
		if s.Type == elf.SHT_GNU_VERSYM { // numbers
			continue
		}
		if int(s.Link) >= len(e.Sections) {
			return errLarge
		}
		texts := e.Sections[s.Link]
		if s.Flags&elf.SHF_COMPRESSED != 0 || texts.Flags&elf.SHF_COMPRESSED != 0 {
			return errCompressed
		}
		if texts.Size > mostSection {
			return errLarge
		}
		if err := modestTexts(s, texts); err != nil {
			return err
		}
	}
	return nil
}

// modestTexts returns an error where one text of a table of names is longer than any name, or
// the names of its symbols are together: many symbols may share one text.
func modestTexts(of, table *elf.Section) error {
	texts, err := table.Data()
	if err != nil {
		return err
	}
	for text := range bytes.SplitSeq(texts, []byte{0}) {
		if len(text) > mostText {
			return errLarge
		}
	}
	if of.Type != elf.SHT_DYNSYM {
		return nil
	}
	symbols, err := of.Data()
	if err != nil {
		return err
	}
	size := 0
	for ; len(symbols) >= elf.Sym64Size; symbols = symbols[elf.Sym64Size:] {
		if at := binary.LittleEndian.Uint32(symbols); int(at) < len(texts) {
			size += bytes.IndexByte(texts[at:], 0)
		}
		if size > mostSection {
			return errLarge
		}
	}
	return nil
}

// check finds out what a library needs that is not here, of the libraries that it names
// itself. Those that they need are the image's own affair.
func (l *loader) check(lib *Library) {
	for _, name := range lib.needs {
		if strings.HasPrefix(name, "ld-") {
			continue
		}
		has, err := l.library(name)
		switch {
		case err != nil:
			continue // one that cannot be read is there
		case has == nil:
			lib.Lacks = append(lib.Lacks, name)
			continue
		case len(has.defines) == 0:
			continue // the loader takes one without any version, with a warning
		}
		for _, v := range lib.versions {
			if v.Name != name {
				continue
			}
			for _, need := range v.Needs {
				if need.Flags&elf.VER_FLG_WEAK == 0 && !slices.Contains(has.defines, need.Dep) {
					lib.Lacks = append(lib.Lacks, need.Dep+" of "+name)
				}
			}
		}
	}
}

// section returns the content of a section that is in memory when the library is loaded; nil
// where it has none of this name, or one that is too large.
func section(e *elf.File, name string) []byte {
	s := e.Section(name)
	if s == nil || s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_COMPRESSED != 0 || s.Size > mostSection {
		return nil
	}
	data, _ := s.Data() // none where it cannot be read
	return data
}

// abiOf reads which versions of the kernel driver's interface a provider takes. They stand
// behind its name in struct verbs_device_ops, at a multiple of eight bytes: a pointer to the
// name, and the least and the greatest version of 32 bits each (rdma-core libibverbs/driver.h).
// The pointer is made by the loader: its value is in a relocation, or in its place. Nil where
// there is no such structure, or several that differ.
func abiOf(e *elf.File, name string) *Range {
	names := addresses(e, name)
	if len(names) == 0 {
		return nil
	}
	relocated := map[uint64]uint64{}
	table := section(e, ".rela.dyn")
	for ; len(table) >= 24; table = table[24:] {
		relocated[e.ByteOrder.Uint64(table)] = e.ByteOrder.Uint64(table[16:])
	}
	var found *Range
	for _, s := range [...]string{".data.rel.ro", ".data"} {
		data, header := section(e, s), e.Section(s)
		for at := 0; at+16 <= len(data); at += 8 {
			to := e.ByteOrder.Uint64(data[at:])
			if addend, ok := relocated[header.Addr+uint64(at)]; ok {
				to = addend
			}
			r := Range{e.ByteOrder.Uint32(data[at+8:]), e.ByteOrder.Uint32(data[at+12:])}
			if !slices.Contains(names, to) || r.Min > r.Max || r.Max == 0 || r.Max > 1000 {
				continue
			}
			if found != nil && *found != r {
				return nil
			}
			found = &r
		}
	}
	return found
}

// addresses are those at which a text stands among the constants of a library.
func addresses(e *elf.File, name string) (all []uint64) {
	want := append([]byte(name), 0)
	for _, s := range [...]string{".rodata", ".rodata.str1.1", ".rodata.str1.8"} {
		data := section(e, s)
		for at := 0; ; {
			next := bytes.Index(data[at:], want)
			if next < 0 {
				break
			}
			if at += next; at == 0 || data[at-1] == 0 {
				all = append(all, e.Section(s).Addr+uint64(at))
			}
			at++
		}
	}
	return all
}
