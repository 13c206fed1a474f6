package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// loaders are the dynamic loaders of the machines that GPUs are in, each with the directory
// that Debian has for libraries of that machine.
var loaders = [...]struct {
	path, triple string
	machine      elf.Machine
}{
	{"lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu", elf.EM_X86_64},
	{"lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu", elf.EM_AARCH64},
	{"lib/ld-musl-x86_64.so.1", "", elf.EM_X86_64},
	{"lib/ld-musl-aarch64.so.1", "", elf.EM_AARCH64},
	{"lib64/ld64.so.2", "powerpc64le-linux-gnu", elf.EM_PPC64},
}

// Files of the loader.
const (
	cacheFile = "etc/ld.so.cache"
	confFile  = "etc/ld.so.conf"
	musl      = "ld-musl-"
)

// loader finds libraries as the dynamic loader does: in LD_LIBRARY_PATH, the cache, and the
// directories that are compiled in (ld.so(8)). The run paths of programs are not known. The
// directories of ld.so.conf come last: they are those of which ldconfig makes the cache, as
// container runtimes do when they have mounted the GPU driver's libraries.
type loader struct {
	*tree
	path     string
	machine  elf.Machine
	first    []string // directories before the cache
	cache    map[string][]string
	last     []string
	found    map[string]*Library
	problems []error
}

func newLoader(t *tree, variables map[string]string) *loader {
	l := &loader{tree: t, found: map[string]*Library{}}
	triple := ""
	for _, known := range loaders {
		if _, err := t.resolve(known.path); err == nil {
			l.path, l.machine, triple = "/"+known.path, known.machine, known.triple
			break
		}
	}
	if l.path == "" {
		return l
	}
	for dir := range strings.FieldsFuncSeq(variables[LibraryPath], func(r rune) bool { return r == ':' || r == ';' }) {
		if strings.HasPrefix(dir, "/") && len(l.first) < mostDirectories {
			l.first = append(l.first, dir[1:])
		}
	}
	if strings.Contains(l.path, musl) {
		l.last = l.muslPath()
		return l
	}
	data, err := t.read(cacheFile, 16<<20)
	if err == nil {
		l.cache, err = parseCache(data)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.problem(cacheFile, err)
	}
	if triple != "" {
		l.last = []string{"lib/" + triple, "usr/lib/" + triple}
	}
	l.last = append(l.last, "lib64", "usr/lib64", "lib", "usr/lib")
	l.last = append(l.last, l.conf(confFile, 0)...)
	return l
}

// mostDirectories is how many directories of one kind are looked at.
const mostDirectories = 256

func (l *loader) problem(name string, err error) {
	if p := (*fs.PathError)(nil); !errors.As(err, &p) {
		err = &fs.PathError{Op: "read", Path: "/" + name, Err: err}
	}
	if len(l.problems) < mostLinks {
		l.problems = append(l.problems, err)
	}
}

// muslPath are the directories of musl's loader (ldso/dynlink.c).
func (l *loader) muslPath() []string {
	name := "etc/" + strings.TrimSuffix(path.Base(l.path), ".so.1") + ".path"
	if data, err := l.read(name, 1<<16); err == nil {
		var dirs []string
		for dir := range strings.FieldsFuncSeq(string(data), func(r rune) bool { return r == ':' || r == '\n' }) {
			dirs = append(dirs, strings.TrimPrefix(dir, "/"))
		}
		return dirs[:min(len(dirs), mostDirectories)]
	}
	return []string{"lib", "usr/local/lib", "usr/lib"}
}

// conf reads the directories of a file in the form of ld.so.conf, which may include others.
func (l *loader) conf(name string, depth int) (dirs []string) {
	data, err := l.read(name, 1<<16)
	if err != nil || depth > 8 {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		switch words := strings.Fields(line); {
		case len(words) == 2 && words[0] == "include":
			pattern := words[1]
			if !strings.HasPrefix(pattern, "/") {
				pattern = path.Dir(name) + "/" + pattern
			}
			for _, file := range l.match(path.Split(strings.TrimPrefix(pattern, "/"))) {
				dirs = append(dirs, l.conf(file, depth+1)...)
			}
		case len(words) > 0 && strings.HasPrefix(words[0], "/"):
			dirs = append(dirs, words[0][1:])
		}
		if len(dirs) > mostDirectories {
			return dirs[:mostDirectories]
		}
	}
	return dirs
}

// match lists the files of a directory whose names have a pattern.
func (l *loader) match(dir, pattern string) (files []string) {
	names, err := l.names(dir)
	if err != nil {
		l.problem(dir, err)
	}
	for _, name := range names {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			files = append(files, strings.TrimSuffix(dir, "/")+"/"+name)
		}
	}
	return files
}

// checked finds a library by its soname, and what it needs that is not here; nil for none.
func (l *loader) checked(name string) *Library {
	lib, _ := l.library(name) // the error is among the problems
	if lib != nil {
		l.check(lib)
	}
	return lib
}

// library finds a library by its soname, nil for none. The error is that of the first file
// that cannot be read.
func (l *loader) library(name string) (*Library, error) {
	if lib, ok := l.found[name]; ok {
		return lib, nil
	}
	var first error
	for _, file := range l.candidates(name) {
		lib, err := l.load(name, file)
		if err == nil {
			l.found[name] = lib
			return lib, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errMachine) {
			l.problem(file, err)
			if first == nil {
				first = err
			}
		}
	}
	if first == nil {
		l.found[name] = nil
	}
	return nil, first
}

func (l *loader) candidates(name string) []string {
	var files []string
	for _, dir := range l.first {
		files = append(files, dir+"/"+name)
	}
	for _, file := range l.cache[name] {
		files = append(files, strings.TrimPrefix(file, "/"))
	}
	for _, dir := range l.last {
		files = append(files, dir+"/"+name)
	}
	return slices.Compact(files)
}

// beside are directories that are usual for libraries and that only programs with a run path
// look into: those of Conda.
var elsewhere = [...]string{"opt/conda/lib", "opt/miniconda3/lib", "root/miniconda3/lib", "usr/local/lib", "opt/mellanox/rdma/lib"}

// beside returns where a library is outside of the loader's directories; "" for nowhere known.
func (l *loader) beside(name string) string {
	for _, dir := range elsewhere {
		if lib, err := l.load(name, dir+"/"+name); err == nil {
			return lib.Path
		}
	}
	return ""
}

// Forms of /etc/ld.so.cache (glibc sysdeps/generic/dl-cache.h): cacheMagic begins the form of
// glibc 2.2 and newer, which may stand behind the older one.
const (
	cacheMagic    = "glibc-ld.so.cache1.1"
	oldCacheMagic = "ld.so-1.7.0"

	cacheHead, cacheEntry       = 48, 24
	oldCacheHead, oldCacheEntry = 16, 12
)

var errCache = errors.New("not a cache of the loader")

// What a cache may have: many entries may share one text. A full desktop's has a tenth.
const (
	mostCached      = 1 << 16
	mostCachedBytes = 8 << 20
)

// parseCache returns the paths of each library in the loader's cache, in its order. Those for
// processors of some kind only are left out. The loaders that are looked for are little-endian.
func parseCache(data []byte) (map[string][]string, error) {
	if bytes.HasPrefix(data, []byte(oldCacheMagic)) {
		if len(data) < oldCacheHead {
			return nil, errCache
		}
		end := oldCacheHead + uint64(binary.LittleEndian.Uint32(data[12:]))*oldCacheEntry
		end = (end + 7) &^ 7
		if end > uint64(len(data)) {
			return nil, errCache
		}
		data = data[end:]
	}
	if len(data) < cacheHead || !bytes.HasPrefix(data, []byte(cacheMagic)) {
		return nil, errCache
	}
	order, entries := binary.LittleEndian, data[cacheHead:]
	count := uint64(order.Uint32(data[len(cacheMagic):]))
	if count*cacheEntry > uint64(len(entries)) {
		return nil, errCache
	}
	if count > mostCached {
		return nil, errLarge
	}
	paths, size := map[string][]string{}, 0
	for n := range count {
		entry := entries[n*cacheEntry:]
		name, path := text(data, order.Uint32(entry[4:])), text(data, order.Uint32(entry[8:]))
		if hardware := order.Uint64(entry[16:]); hardware == 0 && name != "" && path != "" {
			paths[name] = append(paths[name], path)
		}
		if size += len(name) + len(path); size > mostCachedBytes {
			return nil, errLarge
		}
	}
	return paths, nil
}

// text is the one that begins at an offset and ends with a zero; "" where there is none.
func text(data []byte, offset uint32) string {
	if uint64(offset) >= uint64(len(data)) {
		return ""
	}
	const longest = 4096
	data = data[offset:]
	text, _, ended := bytes.Cut(data[:min(len(data), longest)], []byte{0})
	if !ended {
		return ""
	}
	return string(text)
}
