package library

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// Lib is where Debian has the libraries of an image.
const Lib = "usr/lib/x86_64-linux-gnu"

// RegisterDMABuf is the function of rdma-core 34 and newer.
const RegisterDMABuf = "ibv_reg_dmabuf_mr@IBVERBS_1.12"

// Loader and C library of an image.
const (
	Loader   = "lib64/ld-linux-x86-64.so.2"
	CLibrary = Lib + "/libc.so.6"
)

// Image returns the files of an image with libibverbs of a release of rdma-core and providers
// of a private ABI, as Debian has them.
func Image(release string, abi int, symbols []string, providers ...string) fstest.MapFS {
	private := "IBVERBS_PRIVATE_" + strconv.Itoa(abi)
	suffix := "-rdmav" + strconv.Itoa(abi) + ".so"
	files := fstest.MapFS{
		Loader:   {Data: Library{Defines: []string{"GLIBC_2.2.5"}}.Bytes()},
		CLibrary: {Data: Library{Symbols: []string{"malloc@GLIBC_2.2.5"}, Defines: []string{"GLIBC_2.34"}}.Bytes()},
		Lib + "/libibverbs.so.1.14." + release: {Data: Library{
			Symbols: append([]string{"ibv_open_device@IBVERBS_1.1"}, symbols...), Defines: []string{private},
			Needs: map[string][]string{"libc.so.6": {"GLIBC_2.34"}},
			Texts: []string{"lib%s" + suffix, "/etc/libibverbs.d", "/" + Lib + "/libibverbs/lib%s" + suffix},
		}.Bytes()},
		Lib + "/libibverbs.so.1": {Data: []byte("libibverbs.so.1.14." + release), Mode: os.ModeSymlink | 0o777},
	}
	for _, name := range providers {
		files[Lib+"/libibverbs/lib"+name+suffix] = &fstest.MapFile{Data: Provider(name, abi, 1, 1)}
		files["etc/libibverbs.d/"+name+".driver"] = &fstest.MapFile{Data: []byte("driver " + name + "\n")}
	}
	return files
}

// Provider is a provider of a private ABI that takes some versions of the kernel's.
func Provider(name string, private int, least, most uint32, symbols ...string) []byte {
	return Library{
		Symbols: symbols, Driver: name, ABI: []uint32{least, most},
		Needs: map[string][]string{"libibverbs.so.1": {"IBVERBS_1.1", "IBVERBS_PRIVATE_" + strconv.Itoa(private)}, "libc.so.6": {"GLIBC_2.2.5"}},
	}.Bytes()
}

// Write writes the files of an image below a directory.
func Write(t testing.TB, dir string, files fstest.MapFS) {
	t.Helper()
	for name, file := range files {
		to := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(to), 0o755)
		if err == nil && file.Mode&os.ModeSymlink != 0 {
			err = os.Symlink(string(file.Data), to)
		} else if err == nil {
			err = os.WriteFile(to, file.Data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Cache is /etc/ld.so.cache with some paths, in the form of glibc 2.2 and newer.
func Cache(paths ...string) []byte {
	const head, entry = 48, 24
	texts := &table{}
	start := head + entry*len(paths)
	data := append([]byte("glibc-ld.so.cache1.1"), appendAll(nil, uint32(len(paths)), uint32(0), uint8(2), [3]byte{}, uint32(0), [12]byte{})...)
	for _, p := range paths {
		name := p[strings.LastIndexByte(p, '/')+1:]
		key, value := uint32(start)+texts.add(name), uint32(start)+texts.add(p)
		data = append(data, appendAll(nil, uint32(0x0303), key, value, uint32(0), uint64(0))...)
	}
	return append(data, texts.data...)
}
