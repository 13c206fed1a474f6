package image_test

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"gdr-features/internal/fleet/image"
	"gdr-features/test/library"
)

func modern() fstest.MapFS {
	return library.Image("56.1", 34, []string{library.RegisterDMABuf}, "mlx5", "bnxt_re")
}

func link(to string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// move makes a name of another one.
func move(files fstest.MapFS, from, to string) {
	files[to] = files[from]
	delete(files, from)
}

const verbs = library.Lib + "/libibverbs.so.1.14.56.1"

// TestFinding: where libibverbs is found, as the loader looks, and where it is not.
func TestFinding(t *testing.T) {
	tests := map[string]struct {
		change    func(files fstest.MapFS)
		variables map[string]string
		path      string // "" for not found
		release   string
		beside    string
	}{
		"in the directory of Debian": {path: "/" + verbs, release: "56.1"},
		"by the cache": {
			change: func(f fstest.MapFS) {
				move(f, verbs, "opt/rdma/libibverbs.so.1.14.56.1")
				f[library.Lib+"/libibverbs.so.1"] = link("missing")
				f["opt/rdma/libibverbs.so.1"] = link("libibverbs.so.1.14.56.1")
				f["etc/ld.so.cache"] = &fstest.MapFile{Data: library.Cache("/usr/lib/libother.so", "/opt/rdma/libibverbs.so.1")}
			},
			path: "/opt/rdma/libibverbs.so.1.14.56.1", release: "56.1",
		},
		"by ld.so.conf alone": {
			change: func(f fstest.MapFS) {
				move(f, verbs, "opt/rdma/libibverbs.so.1")
				delete(f, library.Lib+"/libibverbs.so.1")
				f["etc/ld.so.conf"] = file("# directories\ninclude ld.so.conf.d/*.conf\n")
				f["etc/ld.so.conf.d/rdma.conf"] = file("/opt/rdma # ours\n")
			},
			path: "/opt/rdma/libibverbs.so.1",
		},
		"by LD_LIBRARY_PATH, before Debian's": {
			change:    func(f fstest.MapFS) { f["opt/rdma/libibverbs.so.1"] = f[verbs] },
			variables: map[string]string{image.LibraryPath: ":relative:/opt/rdma"},
			path:      "/opt/rdma/libibverbs.so.1",
		},
		"of another processor, which the loader passes over": {
			change: func(f fstest.MapFS) {
				f["opt/rdma/libibverbs.so.1"] = &fstest.MapFile{Data: library.Library{Machine: 183}.Bytes()}
			},
			variables: map[string]string{image.LibraryPath: "/opt/rdma"},
			path:      "/" + verbs, release: "56.1",
		},
		"a link to the root of the machine": {
			change: func(f fstest.MapFS) {
				move(f, verbs, "host/libibverbs.so.1.14.56.1")
				f[library.Lib+"/libibverbs.so.1"] = link("/../../../../host/libibverbs.so.1.14.56.1")
			},
			path: "/host/libibverbs.so.1.14.56.1", release: "56.1",
		},
		"musl": {
			change: func(f fstest.MapFS) {
				move(f, library.Loader, "lib/ld-musl-x86_64.so.1")
				move(f, verbs, "opt/lib/libibverbs.so.1")
				delete(f, library.Lib+"/libibverbs.so.1")
				f["etc/ld-musl-x86_64.path"] = file("/lib:/opt/lib\n")
			},
			path: "/opt/lib/libibverbs.so.1",
		},
		"none": {change: func(f fstest.MapFS) { delete(f, verbs) }},
		"only where Conda's programs look": {
			change: func(f fstest.MapFS) { move(f, verbs, "opt/conda/lib/libibverbs.so.1") }, beside: "/opt/conda/lib/libibverbs.so.1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := modern()
			if test.change != nil {
				test.change(files)
			}
			i := image.Read(files, test.variables)
			if i.Loader == "" || i.Beside != test.beside || (i.Verbs == nil) != (test.path == "") {
				t.Fatalf("%+v", i)
			}
			if v := i.Verbs; v != nil && (v.Path != test.path || v.Release() != test.release || !v.Exports(image.RegisterDMABuf)) {
				t.Errorf("%+v", v)
			}
			if len(i.Problems) > 0 {
				t.Errorf("problems: %v", i.Problems)
			}
		})
	}
}

// TestProviders: which provider libibverbs opens, and what it takes of the kernel.
func TestProviders(t *testing.T) {
	files := modern()
	dir := library.Lib + "/libibverbs/"
	delete(files, "etc/libibverbs.d/bnxt_re.driver")
	files["etc/libibverbs.d/mlx4.driver"] = file("driver mlx4")
	files[dir+"libmlx4-rdmav33.so"] = &fstest.MapFile{Data: library.Provider("mlx4", 33, 3, 4)}
	files["etc/libibverbs.d/ionic.driver"] = file("# AMD's\n  driver /opt/amd/libionic\n")
	files["opt/amd/libionic-rdmav34.so"] = &fstest.MapFile{Data: library.Library{
		Driver: "libionic", ABI: []uint32{4, 4}, InPlace: true,
		Needs: map[string][]string{"libc.so.6": {"GLIBC_2.38"}, "libibverbs.so.1": {"IBVERBS_PRIVATE_34"}, "libnl-3.so.200": nil},
	}.Bytes()}
	i := image.Read(files, nil)
	for name, want := range map[string]image.Provider{
		"mlx5":     {Listed: "/etc/libibverbs.d/mlx5.driver", ABI: &image.Range{Min: 1, Max: 1}},
		"bnxt_re":  {ABI: &image.Range{Min: 1, Max: 1}},
		"mlx4":     {Listed: "/etc/libibverbs.d/mlx4.driver", Other: "/" + dir + "libmlx4-rdmav33.so"},
		"libionic": {Listed: "/etc/libibverbs.d/ionic.driver", ABI: &image.Range{Min: 4, Max: 4}},
	} {
		p := i.Provider(name)
		if p == nil || p.Listed != want.Listed || p.Other != want.Other || (p.Library != nil) != (want.ABI != nil) || p.ABI != nil && *p.ABI != *want.ABI {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if p := i.Provider("libionic"); p != nil && p.Library != nil && !slices.Equal(p.Library.Lacks, []string{"GLIBC_2.38 of libc.so.6", "libnl-3.so.200"}) {
		t.Errorf("libionic lacks %q", p.Library.Lacks)
	}
	if p := i.Provider("efa"); p != nil {
		t.Errorf("efa: %+v", p)
	}
	delete(files, "etc/libibverbs.d/mlx5.driver")
	if p := image.Read(files, map[string]string{"RDMAV_DRIVERS": "mlx5;bnxt_re"}).Provider("mlx5"); p == nil || p.Listed != "RDMAV_DRIVERS" || p.Library == nil {
		t.Errorf("mlx5 by a variable: %+v", p)
	}
}

// TestFrameworks: each place that tells a version.
func TestFrameworks(t *testing.T) {
	files := modern()
	maps.Copy(files, fstest.MapFS{
		library.Lib + "/libnccl.so.2":                                               link("libnccl.so.2.27.3"),
		library.Lib + "/libnccl.so.2.27.3":                                          file("not read"),
		"opt/hpcx/ucx/lib/libucp.so.0":                                              file("not read"),
		"usr/local/lib/python3.12/dist-packages/nixl_cu12-1.3.2.dist-info/RECORD":   file(""),
		"opt/venv/lib/python3.11/site-packages/nvidia_nccl_cu12-2.26.2.dist-info/R": file(""),
		"work/env/lib/python3.11/site-packages/deep_ep-1.2.1+abc.dist-info/R":       file(""),
		"var/lib/dpkg/status":                                                       file("Package: libfabric1\nStatus: install ok installed\nVersion: 1:2.1.0-1.1\n\nPackage: libnccl2\nVersion: 2.27.3-1+cuda12.9\n"),
	})
	i := image.Read(files, map[string]string{"VIRTUAL_ENV": "/work/env", image.LibraryPath: "/opt/hpcx/ucx/lib"})
	var got []string
	for _, p := range i.Frameworks {
		got = append(got, p.Name+" "+p.Version)
		if _, err := fs.Stat(files, strings.TrimPrefix(p.File, "/")); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if want := []string{"nccl 2.27.3", "nccl 2.26.2", "ucx ", "libfabric 2.1.0", "nixl 1.3.2", "deepep 1.2.1+abc"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNoLoader: the image of a static program.
func TestNoLoader(t *testing.T) {
	files := modern()
	delete(files, library.Loader)
	if i := image.Read(files, nil); i.Loader != "" || i.Verbs != nil {
		t.Errorf("%+v", i)
	}
}

// FuzzLibrary: an ELF file of any content.
func FuzzLibrary(f *testing.F) {
	f.Add(library.Library{Symbols: []string{library.RegisterDMABuf}, Needs: map[string][]string{"libc.so.6": {"GLIBC_2.38"}}}.Bytes())
	f.Add(library.Provider("mlx5", 34, 1, 1, "mlx5dv_reg_dmabuf_mr@MLX5_1.25"))
	f.Add([]byte("\x7fELF"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		files := modern()
		files[verbs].Data = data
		i := image.Read(files, nil)
		_ = i.Verbs != nil && i.Verbs.Release() == ""
		files = modern()
		files[library.Lib+"/libibverbs/libmlx5-rdmav34.so"].Data = data
		files[library.CLibrary].Data = data
		image.Read(files, nil)
	})
}
