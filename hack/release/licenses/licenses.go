// Package licenses collects the licenses of everything that is linked into our programs.
// Apache-2.0, MIT and the BSD licenses ask that whoever passes programs on also passes on
// these texts.
package licenses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licenses that may be linked, by SPDX identifier. All of them allow
// passing programs on under any terms, with the text of the license.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// Module is a Go module, or Go's standard library, that is linked into a program.
type Module struct {
	Path    string // such as github.com/spf13/cobra; std is the standard library
	Version string // such as v1.10.2; of std, such as go1.26.8
	SPDX    []string
	Files   []File
}

// File is a file with a license, or a NOTICE, in a directory from which code is linked, or
// in one above that.
type File struct {
	Name string // in the module, such as LICENSE or third_party/forked/LICENSE
	Text []byte
}

// legal matches the names of files that have to be passed on.
var legal = regexp.MustCompile(`(?i)^(licen[cs]es?|notice|copying|patents)([.-].*)?$`)

// listed is what `go list -json` prints of a package.
type listed struct {
	Dir    string
	Goroot bool `json:"Standard"`
	Module *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path string }
	}
}

// Collect returns the modules linked into any of the packages on any of the platforms
// (OS/ARCH), sorted by path. directory is that of the main module, whose own license is
// not among them.
func Collect(directory string, platforms, packages []string) ([]Module, error) {
	modules := map[string]*Module{}
	for _, platform := range platforms {
		linked, err := list(directory, platform, packages)
		if err != nil {
			return nil, err
		}
		for _, p := range linked {
			if err := add(modules, p); err != nil {
				return nil, err
			}
		}
	}
	var all []Module
	var refused []error
	for _, m := range modules {
		refused = append(refused, m.judge())
		slices.SortFunc(m.Files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Module) int { return cmp.Compare(a.Path, b.Path) })
	return all, errors.Join(refused...)
}

// list returns the packages that are linked on a platform.
func list(directory, platform string, packages []string) ([]listed, error) {
	system, arch, _ := strings.Cut(platform, "/")
	c := exec.Command("go", append([]string{"list", "-deps", "-json=Dir,Standard,Module"}, packages...)...)
	c.Dir, c.Stderr = directory, os.Stderr
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		all = append(all, p)
	}
}

// add adds the module of a package, and the files in the package's directory and those
// above it.
func add(modules map[string]*Module, p listed) error {
	if p.Goroot {
		return addStandard(modules)
	}
	if p.Module == nil || p.Module.Main {
		return nil
	}
	m := modules[p.Module.Path]
	if m == nil {
		m = &Module{Path: p.Module.Path, Version: p.Module.Version}
		modules[m.Path] = m
	}
	for dir := p.Dir; ; dir = filepath.Dir(dir) {
		if err := m.addFiles(p.Module.Dir, dir); err != nil {
			return err
		}
		if dir == p.Module.Dir {
			return nil
		}
	}
}

// addStandard adds Go's standard library.
func addStandard(modules map[string]*Module) error {
	if modules["std"] != nil {
		return nil
	}
	out, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	m := &Module{Path: "std", Version: version}
	modules["std"] = m
	return m.addFiles(root, root)
}

// addFiles adds the legal files of a directory of the module.
func (m *Module) addFiles(root, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !legal.MatchString(e.Name()) {
			continue
		}
		name, err := filepath.Rel(root, filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if slices.ContainsFunc(m.Files, func(f File) bool { return f.Name == name }) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		m.Files = append(m.Files, File{name, text})
	}
	return nil
}

// judge finds out the licenses of the module, and returns an error if there is none, or
// one that is not allowed.
func (m *Module) judge() error {
	var refused []error
	for _, f := range m.Files {
		if isNotice(f.Name) {
			continue // says who wrote what, and grants nothing
		}
		found := licensecheck.Scan(f.Text)
		if found.Percent < 75 {
			refused = append(refused, fmt.Errorf("%s %s: %s is not the text of a known license", m.Path, m.Version, f.Name))
		}
		for _, match := range found.Match {
			if !slices.Contains(m.SPDX, match.ID) {
				m.SPDX = append(m.SPDX, match.ID)
			}
			if !slices.Contains(allowed, match.ID) {
				refused = append(refused, fmt.Errorf("%s %s: %s has the license %s, which is not in the list of allowed ones", m.Path, m.Version, f.Name, match.ID))
			}
		}
	}
	slices.Sort(m.SPDX)
	if len(m.SPDX) == 0 {
		refused = append(refused, fmt.Errorf("%s %s has no license", m.Path, m.Version))
	}
	return errors.Join(refused...)
}

// isNotice reports whether a file has no license in it: a NOTICE, or Go's PATENTS.
func isNotice(name string) bool {
	base := strings.ToLower(filepath.Base(name))
	return strings.HasPrefix(base, "notice") || strings.HasPrefix(base, "patents")
}

// Text returns the file THIRD-PARTY-LICENSES: each module, then each text, once, under the
// names of the files that have it.
func Text(modules []Module) []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "These programs contain the following Go modules and the standard library (std), under these licenses.")
	fmt.Fprintln(&b, "Product names come from pci.ids, https://pci-ids.ucw.cz, Copyright Martin Mares and Albert Pool: BSD-3-Clause.")
	fmt.Fprintln(&b)
	var texts []string // in the order of their first file
	files := map[string][]string{}
	for _, m := range modules {
		fmt.Fprintf(&b, "  %s %s: %s\n", m.Path, m.Version, strings.Join(m.SPDX, ", "))
		for _, f := range m.Files {
			text := string(bytes.TrimSpace(f.Text))
			if files[text] == nil {
				texts = append(texts, text)
			}
			files[text] = append(files[text], fmt.Sprintf("%s %s: %s", m.Path, m.Version, f.Name))
		}
	}
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(files[text], "\n"), text)
	}
	return b.Bytes()
}
