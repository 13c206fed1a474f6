package image

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// netPlugin names NCCL's network plugin.
const netPlugin = "NCCL_NET_PLUGIN"

// software are the frameworks that are looked for: the libraries by which they are found, the
// packages of Debian and Ubuntu, and those of Python, which tell their versions.
var software = [...]struct {
	name              string
	libraries         []string
	packages, modules []string
}{
	{"nccl", []string{"libnccl.so.2"}, []string{"libnccl2"}, []string{"nvidia_nccl_cu11", "nvidia_nccl_cu12", "nvidia_nccl_cu13"}},
	{"rccl", []string{"librccl.so.1"}, []string{"rccl", "librccl1"}, nil},
	{"ucx", []string{"libucp.so.0"}, []string{"ucx", "libucx0"}, []string{"libucx_cu12", "libucx_cu13"}},
	{"nvshmem", []string{"libnvshmem_host.so.3"}, []string{"libnvshmem3_cuda_12", "libnvshmem3_cuda_13"}, []string{"nvidia_nvshmem_cu12", "nvidia_nvshmem_cu13"}},
	{"mooncake", nil, nil, []string{"mooncake_transfer_engine", "mooncake_transfer_engine_cuda13"}},
	{"libfabric", []string{Libfabric}, []string{"libfabric1", "libfabric1_aws"}, nil},
	{"aws-ofi-nccl", []string{"libnccl-net-ofi.so", "libnccl-net-aws-ofi.so"}, []string{"libnccl_ofi", "aws_ofi_nccl"}, nil},
	{"nixl", nil, nil, []string{"nixl", "nixl_cu12", "nixl_cu13"}},
	{"deepep", nil, nil, []string{"deep_ep"}},
	{"vllm", nil, nil, []string{"vllm"}},
	{"sglang", nil, nil, []string{"sglang"}},
}

// plugin finds NCCL's network plugin: by NCCL_NET_PLUGIN, else libnccl-net.so and the name
// that the EFA installer gives it (NVIDIA/nccl src/plugin/plugin_open.cc; aws/aws-ofi-nccl
// configure.ac).
func (l *loader) plugin(variables map[string]string) *Library {
	names := []string{"libnccl-net.so", "libnccl-net-ofi.so", "libnccl-net-aws-ofi.so"}
	if name := variables[netPlugin]; name != "" && !strings.ContainsAny(name, "/,") {
		names = append([]string{"libnccl-net-" + name + ".so", name}, names...)
	}
	return l.present(names...)
}

// present finds the first library by its name, without reading it: those of frameworks are
// large.
func (l *loader) present(names ...string) *Library {
	for _, name := range names {
		for _, file := range l.candidates(name) {
			if at, err := l.resolve(file); err == nil {
				return libraryAt(name, "/"+at)
			}
		}
	}
	return nil
}

// frameworks lists the frameworks, each version once.
func (l *loader) frameworks(variables map[string]string) (all []Package) {
	debian, python := l.debian(), l.python(variables)
	for _, s := range software {
		of := slices.Concat(debian[s.name], python[s.name])
		for _, name := range s.libraries {
			if lib := l.present(name); lib != nil {
				of = append(of, Package{s.name, versionOf(s.name, lib), lib.Path})
			}
		}
		first := len(all)
		for _, p := range of {
			same := func(q Package) bool { return q.Version == p.Version || p.Version == "" }
			if !slices.ContainsFunc(all[first:], same) {
				all = append(all, p)
			}
		}
	}
	return all
}

// versionOf is the version of a framework that the name of its library's file has: NVIDIA's
// libraries follow the number of the soname with the rest ("libnccl.so.2.27.3").
func versionOf(framework string, lib *Library) string {
	if lib.Version == "" || framework != "nccl" && framework != "nvshmem" {
		return ""
	}
	_, version, _ := strings.Cut(path.Base(lib.Path), ".so.")
	return version
}

// debian reads the versions of packages from dpkg's status.
func (l *loader) debian() map[string][]Package {
	found := map[string][]Package{}
	for _, file := range append([]string{"var/lib/dpkg/status"}, l.match("var/lib/dpkg/status.d/", "*")...) {
		f, err := l.open(file)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				l.problem(file, err)
			}
			continue
		}
		// A full desktop's file has 8 MB.
		lines := bufio.NewScanner(io.NewSectionReader(f, 0, 16<<20))
		name := ""
		for lines.Scan() {
			key, value, _ := strings.Cut(lines.Text(), ": ")
			switch key {
			case "":
				name = ""
			case "Package":
				name = value
			case "Version":
				for _, s := range software {
					if slices.Contains(s.packages, strings.ReplaceAll(name, "-", "_")) {
						found[s.name] = append(found[s.name], Package{s.name, upstream(value), "/" + file})
					}
				}
			}
		}
		_ = f.Close()
	}
	return found
}

// upstream is the upstream part of a version of Debian's: without epoch and revision.
func upstream(version string) string {
	if _, after, ok := strings.Cut(version, ":"); ok {
		version = after
	}
	if at := strings.LastIndexByte(version, '-'); at > 0 {
		version = version[:at]
	}
	return version
}

// python reads the versions of Python's packages from the names of their directories,
// NAME-VERSION.dist-info (packaging.python.org, recording installed projects).
func (l *loader) python(variables map[string]string) map[string][]Package {
	found := map[string][]Package{}
	for _, dir := range l.sitePackages(variables) {
		for _, entry := range l.match(dir, "*-*.dist-info") {
			name, version, _ := strings.Cut(strings.TrimSuffix(path.Base(entry), ".dist-info"), "-")
			for _, s := range software {
				if slices.Contains(s.modules, strings.ToLower(name)) {
					found[s.name] = append(found[s.name], Package{s.name, version, "/" + entry})
				}
			}
		}
	}
	return found
}

// Variables that say where Python's packages are.
const (
	virtualEnv  = "VIRTUAL_ENV"
	condaPrefix = "CONDA_PREFIX"
	pythonPath  = "PYTHONPATH"
)

// sitePackages are the directories that Python looks for packages in, as far as they are
// usual: those of the distribution, of /usr/local, Conda, and virtual environments.
func (l *loader) sitePackages(variables map[string]string) (dirs []string) {
	prefixes := []string{"usr", "usr/local", "opt/conda", "opt/venv", "opt/miniconda3", "root/miniconda3"}
	prefixes = append(prefixes, l.match("opt/", "*")...)
	for _, v := range [...]string{virtualEnv, condaPrefix} {
		if dir := variables[v]; strings.HasPrefix(dir, "/") {
			prefixes = append(prefixes, dir[1:])
		}
	}
	for _, prefix := range prefixes[:min(len(prefixes), mostDirectories)] {
		for _, lib := range l.match(prefix+"/lib/", "python3*") {
			dirs = append(dirs, lib+"/site-packages", lib+"/dist-packages")
		}
	}
	for dir := range strings.SplitSeq(variables[pythonPath], ":") {
		if strings.HasPrefix(dir, "/") {
			dirs = append(dirs, dir[1:])
		}
	}
	return l.distinct(dirs, mostDirectories)
}
