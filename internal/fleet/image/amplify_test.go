package image_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"gdr-features/internal/fleet/image"
	"gdr-features/test/library"
)

// TestAmplified: files in which very many entries share one text, which would be copied for
// each. What is read of each image needs little memory, and says that a file was not read.
func TestAmplified(t *testing.T) {
	const most = 192 << 20 // allocated in all, not at a time
	long := strings.Repeat("x", 4000)
	for name, test := range map[string]struct {
		change func(files fstest.MapFS)
		right  bool // it can be read
	}{
		"an image as they are": {func(fstest.MapFS) {}, true},
		"a million symbols that share a name": {func(files fstest.MapFS) {
			files[verbs].Data = shared(t, files[verbs].Data, elf.SHT_DYNSYM, 24, 1_000_000, long)
		}, false},
		"forty thousand symbols that share a name": {func(files fstest.MapFS) {
			files[verbs].Data = shared(t, files[verbs].Data, elf.SHT_DYNSYM, 24, 40_000, long)
		}, false},
		"a name of a megabyte": {func(files fstest.MapFS) {
			files[verbs].Data = shared(t, files[verbs].Data, elf.SHT_DYNSYM, 24, 100, strings.Repeat("x", 1<<20-100))
		}, false},
		"sixty thousand needed libraries": {func(files fstest.MapFS) {
			files[verbs].Data = shared(t, files[verbs].Data, elf.SHT_DYNAMIC, 16, 60_000, long)
		}, false},
		"twenty thousand sections": {func(files fstest.MapFS) {
			files[verbs].Data = sections(files[verbs].Data, 20_000, long)
		}, false},
		"a cache of 600,000 entries": {func(files fstest.MapFS) {
			files["etc/ld.so.cache"] = &fstest.MapFile{Data: cache(600_000, long)}
		}, true}, // by the directories that are compiled in
		"a cache of 60,000 entries that share a long path": {func(files fstest.MapFS) {
			files["etc/ld.so.cache"] = &fstest.MapFile{Data: cache(60_000, long)}
		}, true},
		"250 needed libraries of a megabyte": {func(files fstest.MapFS) {
			needs := map[string][]string{}
			large := make([]string, 40_000)
			for n := range large {
				large[n] = "function_" + strconv.Itoa(n)
			}
			data := library.Library{Symbols: large}.Bytes()
			for n := range 250 {
				name := "lib" + strconv.Itoa(n) + ".so"
				needs[name] = nil
				files[library.Lib+"/"+name] = &fstest.MapFile{Data: data}
			}
			files[verbs].Data = library.Library{Symbols: []string{library.RegisterDMABuf}, Needs: needs}.Bytes()
		}, true},
	} {
		files := modern()
		test.change(files)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		i := image.Read(files, nil)
		runtime.ReadMemStats(&after)
		used := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d MB, %d problems", name, used>>20, len(i.Problems))
		if used > most {
			t.Errorf("%s: %d MB", name, used>>20)
		}
		if (i.Verbs != nil) != test.right || i.Verbs == nil && len(i.Problems) == 0 {
			t.Errorf("%s: %+v, %v", name, i.Verbs, i.Problems)
		}
	}
}

// head and its sections, of a library that test/library made.
func parts(data []byte) (elf.Header64, []elf.Section64) {
	var head elf.Header64
	_, _ = binary.Decode(data, binary.LittleEndian, &head)
	all := make([]elf.Section64, head.Shnum)
	_, _ = binary.Decode(data[head.Shoff:], binary.LittleEndian, all)
	return head, all
}

// shared puts a table of count equal entries behind a library, all of which name one text.
func shared(t *testing.T, data []byte, kind elf.SectionType, size, count int, text string) []byte {
	t.Helper()
	data = bytes.Clone(data)
	head, all := parts(data)
	for n := range all {
		if elf.SectionType(all[n].Type) != kind {
			continue
		}
		entry := make([]byte, size)
		if kind == elf.SHT_DYNSYM {
			binary.LittleEndian.PutUint32(entry, 1)
			entry[6] = 1 // defined
		} else {
			binary.LittleEndian.PutUint64(entry, uint64(elf.DT_NEEDED))
			binary.LittleEndian.PutUint64(entry[8:], 1)
		}
		texts := &all[all[n].Link]
		texts.Off, texts.Size, texts.Flags = uint64(len(data)), uint64(len(text)+2), 0 // as a debugger's
		data = append(data, "\x00"+text+"\x00"...)
		all[n].Off, all[n].Size, all[n].Flags = uint64(len(data)), uint64(size*count), 0
		data = append(data, bytes.Repeat(entry, count)...)
		_, _ = binary.Encode(data[head.Shoff:], binary.LittleEndian, all)
		return data
	}
	t.Fatal("no such section")
	return nil
}

// sections gives a library many sections that share a name.
func sections(data []byte, count int, name string) []byte {
	data = bytes.Clone(data)
	head, all := parts(data)
	names := &all[head.Shstrndx]
	names.Off, names.Size = uint64(len(data)), uint64(len(name)+2)
	data = append(data, "\x00"+name+"\x00"...)
	for len(all) < count {
		all = append(all, elf.Section64{Name: 1, Type: uint32(elf.SHT_PROGBITS)})
	}
	head.Shoff, head.Shnum = uint64(len(data)), uint16(count)
	_, _ = binary.Encode(data, binary.LittleEndian, head)
	data, _ = binary.Append(data, binary.LittleEndian, all)
	return data
}

// cache is a cache of the loader whose entries share a name and a path.
func cache(count int, path string) []byte {
	data := library.Cache("/" + path + "/lib.so")
	entry := bytes.Clone(data[48:72])
	texts := data[72:]
	move := uint32(24 * (count - 1))
	for _, at := range [...]int{4, 8} {
		binary.LittleEndian.PutUint32(entry[at:], binary.LittleEndian.Uint32(entry[at:])+move)
	}
	binary.LittleEndian.PutUint32(data[20:], uint32(count))
	return append(append(bytes.Clone(data[:48]), bytes.Repeat(entry, count)...), texts...)
}

// TestManyProviders: where the list of drivers is longer than any, which providers it has is not
// known.
func TestManyProviders(t *testing.T) {
	for name, change := range map[string]func(files fstest.MapFS, n string){
		"files of a list": func(files fstest.MapFS, n string) {
			files["etc/libibverbs.d/a"+n+".driver"] = &fstest.MapFile{Data: []byte("driver a" + n + "\n")}
		},
		"providers": func(files fstest.MapFS, n string) {
			files[library.Lib+"/libibverbs/liba"+n+"-rdmav34.so"] = &fstest.MapFile{Data: library.Provider("a"+n, 34, 1, 1)}
		},
	} {
		files := modern()
		if name == "providers" {
			delete(files, "etc/libibverbs.d/mlx5.driver")
		}
		for n := range 5000 {
			change(files, strconv.Itoa(n))
		}
		i := image.Read(files, nil)
		if i.ListErr == nil {
			t.Errorf("%s: %d providers, of which mlx5 is %+v", name, len(i.Providers), i.Provider("mlx5"))
		}
	}
}
