//go:build userspace

// Package userspace judges what is read of images by the real user space of Debian's releases,
// and by their own loaders. build.sh lays it out.
package userspace

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/fleet/image"
	"gdr-features/test/machine"
)

// suites are what rdma-core has in each.
var suites = []struct {
	name, release, suffix string
	dmabuf, dataDirect    bool
	ionic                 bool
	ucx, libfabric        string
}{
	{"bullseye", "33.2", "-rdmav33.so", false, false, false, "1.10.1~rc1+really.1.10.0", "1.11.0"},
	{"bookworm", "44.0", "-rdmav34.so", true, false, false, "1.13.1", "1.17.0"},
	{"trixie", "56.1", "-rdmav34.so", true, true, false, "1.18.1+ds", "2.1.0"},
	{"sid", "", "", true, true, true, "", ""}, // moves on
}

const (
	lib       = "usr/lib/x86_64-linux-gnu"
	providers = lib + "/libibverbs"
)

func read(t *testing.T, dir string) *image.Image {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return image.Read(root.FS(), nil)
}

// TestSuites: each release is read as it is, and its own loader takes what we say it takes.
func TestSuites(t *testing.T) {
	for _, s := range suites {
		t.Run(s.name, func(t *testing.T) {
			dir := filepath.Join(".bin", s.name)
			i := read(t, dir)
			if i.Verbs == nil || len(i.Problems) > 0 {
				t.Fatalf("%+v", i)
			}
			mlx5 := i.Provider("mlx5")
			if mlx5 == nil || mlx5.Library == nil || mlx5.Listed == "" || mlx5.ABI == nil || *mlx5.ABI != (image.Range{Min: 1, Max: 1}) {
				t.Fatalf("mlx5: %+v", mlx5)
			}
			if s.release != "" && (i.Verbs.Release() != s.release || i.Suffix != s.suffix) {
				t.Errorf("%s %s", i.Verbs.Release(), i.Suffix)
			}
			dataDirect := mlx5.Library.Exports("mlx5dv_reg_dmabuf_mr@MLX5_1.25") && mlx5.Library.Exports("mlx5dv_get_data_direct_sysfs_path@MLX5_1.25")
			if i.Verbs.Exports(image.RegisterDMABuf) != s.dmabuf || dataDirect != s.dataDirect || (i.Provider("ionic") != nil) != s.ionic {
				t.Errorf("DMA-BUF %v, data-direct %v, ionic %v", i.Verbs.Exports(image.RegisterDMABuf), dataDirect, i.Provider("ionic"))
			}
			for _, name := range []string{"bnxt_re", "ionic"} {
				if p := i.Provider(name); p != nil && (p.ABI == nil || *p.ABI != image.Range{Min: 1, Max: 1}) {
					t.Errorf("%s: %+v", name, p.ABI)
				}
			}
			if mlx4 := i.Provider("mlx4"); mlx4 == nil || mlx4.ABI == nil || *mlx4.ABI != (image.Range{Min: 2, Max: 4}) {
				t.Errorf("mlx4: %+v", mlx4)
			}
			for _, want := range []image.Package{{Name: "ucx", Version: s.ucx}, {Name: "libfabric", Version: s.libfabric}} {
				if s.ucx != "" && !slices.ContainsFunc(i.Frameworks, func(p image.Package) bool { return p.Name == want.Name && p.Version == want.Version }) {
					t.Errorf("no %+v in %+v", want, i.Frameworks)
				}
			}
			var libraries []*image.Library
			for _, p := range i.Providers {
				if p.Library == nil || p.Listed == "" || p.Err != nil {
					t.Errorf("%+v", p)
					continue
				}
				libraries = append(libraries, p.Library)
			}
			for _, l := range append(libraries, i.Verbs, i.Fabric) {
				agrees(t, dir, l)
			}
		})
	}
}

// agrees compares what a library lacks with what the image's own loader says.
func agrees(t *testing.T, dir string, l *image.Library) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "chroot", dir, "/lib64/ld-linux-x86-64.so.2", "--list", l.Path)
	out, err := c.CombinedOutput()
	said := string(out)
	refused := err != nil || strings.Contains(said, "not found")
	if refused == (len(l.Lacks) == 0) {
		t.Errorf("%s: the loader says %v %s; lacks %q", l.Path, err, said, l.Lacks)
	}
	// The loader ends at the first library that is missing.
	named := func(lack string) bool {
		what, _, _ := strings.Cut(lack, " of ")
		return strings.Contains(said, what)
	}
	if refused && !slices.ContainsFunc(l.Lacks, named) {
		t.Errorf("%s: none of %q is what the loader misses: %s", l.Path, l.Lacks, said)
	}
}

// TestCache: libraries are found where ldconfig has written them, also without any other
// directory.
func TestCache(t *testing.T) {
	for _, s := range suites {
		c := exec.CommandContext(t.Context(), "ldconfig", "-p", "-C", filepath.Join(".bin", s.name, "etc/ld.so.cache"))
		c.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/sbin:/usr/sbin")
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		_, path, ok := strings.Cut(string(out), "libibverbs.so.1 (libc6,x86-64) => ")
		if path, _, _ = strings.Cut(path, "\n"); !ok {
			t.Fatalf("%s: no libibverbs in\n%s", s.name, out)
		}
		found, err := filepath.EvalSymlinks(filepath.Join(".bin", s.name, path))
		if i := read(t, filepath.Join(".bin", s.name)); err != nil || !strings.HasSuffix(found, filepath.Base(i.Verbs.Path)) {
			t.Errorf("%s: %s, and we found %s (%v)", s.name, found, i.Verbs.Path, err)
		}
	}
}

// mixed returns a copy of one suite with files of another.
func mixed(t *testing.T, suite, other string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", filepath.Join(".bin", suite)+"/.", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for to, from := range files {
		data, err := os.ReadFile(filepath.Join(".bin", other, from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, to)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestMixtures: providers of another release in an image, as somebody mounts those of the node.
func TestMixtures(t *testing.T) {
	for _, test := range []struct {
		name, suite, other string
		files              map[string]string
		remove             string
		code               string // "" for ready
	}{
		{"all of one", "trixie", "trixie", nil, "", ""},
		{"an older provider of the same private ABI", "trixie", "bookworm", map[string]string{providers + "/libmlx5-rdmav34.so": lib + "/libmlx5.so.1"}, "", ""},
		{"a newer provider of the same private ABI", "bookworm", "trixie", map[string]string{providers + "/libmlx5-rdmav34.so": lib + "/libmlx5.so.1"}, "", "ProviderMismatch"},
		{"a provider of a newer private ABI", "bullseye", "bookworm", map[string]string{providers + "/libmlx5-rdmav34.so": lib + "/libmlx5.so.1"}, providers + "/libmlx5-rdmav33.so", "ProviderMismatch"},
		{"the same under the name that is looked for", "bullseye", "bookworm", map[string]string{providers + "/libmlx5-rdmav33.so": lib + "/libmlx5.so.1"}, "", "ProviderMismatch"},
		{"no providers", "bookworm", "", nil, providers, "NoVerbsProvider"},
		{"no list", "bookworm", "", nil, "etc/libibverbs.d", "ProviderNotListed"},
		{"no libibverbs", "sid", "", nil, lib + "/libibverbs.so.1", "NoLibibverbs"},
		{"libibverbs of a newer release", "bookworm", "sid", map[string]string{lib + "/libibverbs.so.1": lib + "/libibverbs.so.1"}, "", "LibraryRefused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := mixed(t, test.suite, test.other, test.files)
			if test.remove != "" {
				if err := os.RemoveAll(filepath.Join(dir, test.remove)); err != nil {
					t.Fatal(err)
				}
			}
			for to := range test.files {
				i := read(t, dir)
				for _, l := range []*image.Library{i.Verbs, library(i.Provider("mlx5"))} {
					if l != nil && l.Path == "/"+to {
						agrees(t, dir, l)
					}
				}
			}
			said, status := check(t, node(t, true), dir, "nccl")
			if want := map[bool]int{true: 0, false: 2}[test.code == ""]; status != want || test.code != "" && !strings.Contains(said, test.code+": ") {
				t.Errorf("status %d, want %d by %s\n%s", status, want, test.code, said)
			}
		})
	}
}

func library(p *image.Provider) *image.Library {
	if p == nil {
		return nil
	}
	return p.Library
}

// node writes a machine with peermem, or with DMA-BUF alone.
func node(t *testing.T, peermem bool) string {
	t.Helper()
	m, err := machine.Load("../../testdata/machines/dell-xe9680-h100.txt")
	if err != nil {
		t.Fatal(err)
	}
	state := "dmabuf-only"
	if peermem {
		state = "ready"
	}
	s, ok := machine.StateNamed(state)
	if !ok {
		t.Fatal(state)
	}
	return m.Tree(t, s)
}

// check runs the program on a node and an image.
func check(t *testing.T, root, dir, framework string) (said string, status int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "../../bin/gdr-features", "--root", root, "check", "--pod", "--image", dir, "--for", framework)
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// TestOnNodes: the same image is right on one node and wrong on another.
func TestOnNodes(t *testing.T) {
	peermem, dmabuf := node(t, true), node(t, false)
	for _, s := range suites {
		for root, want := range map[string]int{peermem: 0, dmabuf: map[bool]int{true: 0, false: 2}[s.dmabuf]} {
			said, status := check(t, root, filepath.Join(".bin", s.name), "nccl")
			// No NCCL is in the image: what is not known of it is unknown on the node with one way.
			if root == dmabuf && s.dmabuf && status == 3 && strings.Contains(said, "nccl of unknown version") {
				continue
			}
			if status != want || want == 2 && !strings.Contains(said, "LibibverbsTooOld: ") {
				t.Errorf("%s: status %d, want %d\n%s", s.name, status, want, said)
			}
		}
		if said, status := check(t, dmabuf, filepath.Join(".bin", s.name), "ucx"); s.dmabuf && (status == 0) != (s.name != "bookworm") {
			t.Errorf("%s: UCX: status %d\n%s", s.name, status, said)
		}
	}
}

// TestEscape: the real tree of an image with links out of it.
func TestEscape(t *testing.T) {
	dir := mixed(t, "trixie", "", nil)
	if err := os.Remove(filepath.Join(dir, lib, "libibverbs.so.1")); err != nil {
		t.Fatal(err)
	}
	outside, err := filepath.Abs(filepath.Join(".bin/trixie", lib, "libibverbs.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, lib, "libibverbs.so.1")); err != nil {
		t.Fatal(err)
	}
	if i := read(t, dir); i.Verbs != nil {
		t.Errorf("found outside of the image: %s", i.Verbs.Path)
	}
	if _, err := fs.Stat(os.DirFS(dir), lib+"/libibverbs.so.1"); err != nil {
		t.Errorf("the link leads nowhere outside either: %v", err)
	}
}
