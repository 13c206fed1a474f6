package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"path"
	"slices"
	"strings"
)

var (
	errMachine    = errors.New("made for another kind of processor")
	errCompressed = errors.New("a compressed section")
)

// mostSection is the size of the largest section that is read. The tables of rdma-core's
// libraries have less than a twentieth of it.
const mostSection = 1 << 20

// elf opens a library. The caller closes the file.
func (l *loader) elf(name string) (*file, *elf.File, error) {
	f, err := l.open(name)
	if err != nil {
		return nil, nil, err
	}
	e, err := elf.NewFile(f)
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, e, nil
}

// load reads a library. The error is errMachine where the loader passes it over.
func (l *loader) load(name, file string) (*Library, error) {
	f, e, err := l.elf(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if e.Machine != l.machine {
		return nil, errMachine
	}
	if err := modest(e); err != nil {
		return nil, err
	}
	lib := libraryAt(name, f.path)
	symbols, err := e.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, err
	}
	lib.exports = map[string]bool{}
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF {
			continue
		}
		lib.exports[s.Name] = true
		if s.Version != "" {
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
		switch s.Type {
		case elf.SHT_DYNSYM, elf.SHT_STRTAB, elf.SHT_DYNAMIC, elf.SHT_GNU_VERDEF, elf.SHT_GNU_VERNEED, elf.SHT_GNU_VERSYM:
			if s.Flags&elf.SHF_ALLOC == 0 {
				continue // of debuggers
			}
			if s.Flags&elf.SHF_COMPRESSED != 0 {
				return errCompressed
			}
			if s.Size > mostSection {
				return errLarge
			}
		default:
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
	if e.Class != elf.ELFCLASS64 {
		return nil
	}
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
