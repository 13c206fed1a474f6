// Package image reads which RDMA libraries the file tree of a container has, as the dynamic
// loader and libibverbs would find them. Nothing of it is run, and no link leads out of the
// tree. It also works on trees of other machines, and on macOS and Windows.
package image

import (
	"debug/elf"
	"io/fs"
	"slices"
	"strings"
)

// Names of libraries, as programs ask the loader for them.
const (
	Libibverbs = "libibverbs.so.1"
	Libfabric  = "libfabric.so.1"
)

// RegisterDMABuf is the function with which programs register GPU memory by DMA-BUF, with the
// version by which they ask for it (rdma-core 34 and newer, libibverbs/libibverbs.map.in).
const RegisterDMABuf = "ibv_reg_dmabuf_mr@IBVERBS_1.12"

// LibraryPath is the variable with directories in which the loader looks first.
const LibraryPath = "LD_LIBRARY_PATH"

// Variables are the names of those that Read looks at.
func Variables() []string {
	return append(driverVariables[:], LibraryPath, netPlugin, virtualEnv, condaPrefix, pythonPath)
}

// Image is what the file tree of a container has.
type Image struct {
	// Loader is the dynamic loader, "" where there is none: then no program that needs
	// libraries can run here.
	Loader string
	// Verbs is libibverbs, nil where the loader does not find it. Beside is where one is
	// outside of the loader's directories, "" for nowhere known: only a program whose own
	// run path names that directory finds it.
	Verbs  *Library
	Beside string
	// Fabric is libfabric, and Plugin NCCL's network plugin; nil where the loader does not
	// find them.
	Fabric, Plugin *Library
	// ConfigDir holds the list of drivers, and ProviderDir the providers, as libibverbs has
	// them compiled in. Suffix is the end of a provider's file name, "-rdmav34.so". All are
	// "" without libibverbs.
	ConfigDir, ProviderDir, Suffix string
	// ListErr is why the list of drivers cannot be read, or a part of it.
	ListErr error
	// Providers are those that are listed, and those that have a file, by name.
	Providers []Provider
	// Frameworks are those that were found, with their versions; one may be there more than
	// once.
	Frameworks []Package
	// Problems are what could not be read, an error each.
	Problems []error
}

// Library is a shared library.
type Library struct {
	// Name is what was asked for, and Path the file, absolute and without links.
	Name, Path string
	// Version is what follows the soname in the name of the file, "14.44.0" of
	// libibverbs.so.1.14.44.0; "" for unknown.
	Version string
	// Lacks are libraries, and versions of their symbols, that it needs and that are not
	// here: the loader refuses it. "GLIBC_2.38 of libc.so.6".
	Lacks []string

	exports  map[string]bool // "symbol@version"
	defines  []string        // versions of symbols
	needs    []string        // libraries, and versions of their symbols
	versions []elf.DynamicVersionNeed
}

// Exports reports whether the library has a function, "name@version".
func (l *Library) Exports(symbol string) bool { return l.exports[symbol] }

// Release is the version of rdma-core that a library of it comes from, "44.0" of
// libibverbs.so.1.14.44.0 (rdma-core, buildlib/rdma_functions.cmake); "" for unknown.
func (l *Library) Release() string {
	parts := strings.Split(l.Version, ".")
	if len(parts) < 3 {
		return ""
	}
	return strings.Join(parts[1:], ".")
}

// Provider is the part of libibverbs that drives the NICs of one family.
type Provider struct {
	// Name is the one in the list of drivers and in file names, "mlx5".
	Name string
	// Listed is the file that lists it, or the variable; "" where none does.
	Listed string
	// Library is what libibverbs opens, nil where there is none, and Other a file of it
	// that libibverbs does not open: of another private ABI. "" for none.
	Library *Library
	Other   string
	// ABI is which versions of the kernel driver's interface it takes; nil for unknown.
	ABI *Range
	// Err is why the file that libibverbs opens cannot be read.
	Err error
}

// Range are numbers from Min to Max.
type Range struct{ Min, Max uint32 }

// Has reports whether a number is one of them.
func (r *Range) Has(n int) bool { return int(r.Min) <= n && n <= int(r.Max) }

// Package is a framework with its version, "" for unknown, and the file that says so.
type Package struct{ Name, Version, File string }

// Provider returns the provider of a name, nil for none.
func (i *Image) Provider(name string) *Provider {
	if at := slices.IndexFunc(i.Providers, func(p Provider) bool { return p.Name == name }); at >= 0 {
		return &i.Providers[at]
	}
	return nil
}

// Read reads a file tree. variables are those of the environment of the program that is to
// run there. It never fails: what cannot be read is among the problems.
func Read(tree fs.FS, variables map[string]string) *Image {
	i := &Image{}
	l := newLoader(newTree(tree), variables)
	defer func() { i.Problems = l.problems }()
	if i.Loader = l.path; i.Loader == "" {
		return i
	}
	if i.Verbs = l.checked(Libibverbs); i.Verbs == nil {
		i.Beside = l.beside(Libibverbs)
	} else {
		l.verbs(i, variables)
	}
	if i.Fabric = l.checked(Libfabric); i.Fabric == nil {
		i.Fabric = l.present(Libfabric)
	}
	i.Plugin = l.plugin(variables)
	i.Frameworks = l.frameworks(variables)
	return i
}
