package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gdr-features/hack/release/licenses"
)

// bundle is an archive of programs for one platform.
type bundle struct {
	product  string // what the archive is named after
	os, arch string
	programs []string
}

var (
	nodePrograms    = []string{"gdr-features", "gdr-features-agent", "kubectl-gdr"}
	imagePrograms   = []string{"gdr-features", "gdr-features-agent"} // as the Dockerfile says
	kubectlPrograms = []string{"kubectl-gdr"}
)

// bundles are the archives of programs, a row for each. hack/build-all.sh builds for the
// same platforms.
var bundles = []bundle{
	{"gdr-features", "linux", "amd64", nodePrograms},
	{"gdr-features", "linux", "arm64", nodePrograms},
	{"kubectl-gdr", "linux", "amd64", kubectlPrograms},
	{"kubectl-gdr", "linux", "arm64", kubectlPrograms},
	{"kubectl-gdr", "darwin", "amd64", kubectlPrograms},
	{"kubectl-gdr", "darwin", "arm64", kubectlPrograms},
	{"kubectl-gdr", "windows", "amd64", kubectlPrograms},
	{"kubectl-gdr", "windows", "arm64", kubectlPrograms},
}

// thirdParty is the name of the file with the licenses of what is linked.
const thirdParty = "THIRD-PARTY-LICENSES"

// platform is such as linux-amd64.
func (b bundle) platform() string { return b.os + "-" + b.arch }

// name of the archive without suffix, and of the directory in it.
func (b bundle) name(version string) string {
	return b.product + "-" + version + "-" + b.platform()
}

// file is the name of the archive: Windows has no tar for everybody.
func (b bundle) file(version string) string {
	if b.os == "windows" {
		return b.name(version) + ".zip"
	}
	return b.name(version) + ".tar.gz"
}

// executable is the file name of a program.
func (b bundle) executable(program string) string {
	if b.os == "windows" {
		return program + ".exe"
	}
	return program
}

// ldflags are the linker's flags for all programs, as the Makefile has them.
func (r *release) ldflags() string { return "-s -w -X main.version=" + r.version }

// built is the directory of the programs of a platform.
func (r *release) built(platform string) string { return filepath.Join(r.stage, "built", platform) }

// installed is the directory in which everything for a Linux machine lies as in /usr.
func (r *release) installed(arch string) string { return filepath.Join(r.stage, "installed", arch) }

// build builds the programs for all platforms, and installs those for Linux.
func (r *release) build() error {
	if err := show("hack/build-all.sh", r.ldflags(), filepath.Join(r.stage, "built")); err != nil {
		return err
	}
	// Completion comes from a program that this machine can run.
	own := filepath.Join(r.stage, "own")
	if _, err := output("go", "build", "-trimpath", "-o", own, "./cmd/gdr-features"); err != nil {
		return err
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if _, err := output("hack/install.sh", r.installed(arch), r.built("linux-"+arch), own); err != nil {
			return err
		}
	}
	return nil
}

// archives writes the archives of programs. Those for Linux nodes have the layout of /usr.
func (r *release) archives() error {
	for _, b := range bundles {
		name := b.name(r.version)
		directory := r.built(b.platform())
		if b.product == "gdr-features" {
			directory = r.installed(b.arch)
		}
		entries, err := readTree(directory, name)
		if err != nil {
			return err
		}
		shipped, err := pages()
		if err != nil {
			return err
		}
		if b.product == "kubectl-gdr" {
			entries, shipped = keep(entries, "kubectl"), pluginPages
		}
		documents, err := r.entries(shipped, name)
		if err != nil {
			return err
		}
		license, err := os.ReadFile("LICENSE")
		if err != nil {
			return err
		}
		linked, err := r.linked(b)
		if err != nil {
			return err
		}
		entries = append(entries, documents...)
		entries = append(entries,
			entry{name: name + "/LICENSE", mode: 0o644, body: license},
			entry{name: name + "/" + thirdParty, mode: 0o644, body: licenses.Text(linked)})
		pack := tarGzip
		if b.os == "windows" {
			pack = zipped
		}
		body, err := pack(entries, r.at)
		if err != nil {
			return err
		}
		if err := r.write(b.file(r.version), body); err != nil {
			return err
		}
	}
	return nil
}

// keep returns the entries whose file names begin with a prefix.
func keep(entries []entry, prefix string) []entry {
	var kept []entry
	for _, e := range entries {
		if strings.HasPrefix(filepath.Base(e.name), prefix) {
			kept = append(kept, e)
		}
	}
	return kept
}

// linked returns the modules in the programs of an archive, with their licenses.
func (r *release) linked(b bundle) ([]licenses.Module, error) {
	packages := make([]string, len(b.programs))
	for i, program := range b.programs {
		packages[i] = "./cmd/" + program
	}
	modules, err := licenses.Collect(".", []string{b.os + "/" + b.arch}, packages)
	if err != nil {
		return nil, fmt.Errorf("licenses of %s: %w", b.name(r.version), err)
	}
	return modules, nil
}
