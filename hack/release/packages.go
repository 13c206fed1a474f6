package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format

	"gdr-features/hack/release/licenses"
)

// packages writes the packages for Debian and for Red Hat's and SUSE's distributions, as
// deploy/packages/nfpm.yaml describes them.
func (r *release) packages() error {
	for _, b := range bundles {
		if b.product != "gdr-features" {
			continue
		}
		if err := r.stagePackage(b); err != nil {
			return err
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(b, format); err != nil {
				return err
			}
		}
	}
	return nil
}

// usr is the directory that a package installs as /usr.
func (r *release) usr(arch string) string { return filepath.Join(r.stage, "usr-"+arch) }

// stagePackage lays out /usr as distributions want it: with compressed manual pages, and
// the documents in a directory of their own.
func (r *release) stagePackage(b bundle) error {
	entries, err := readTree(r.installed(b.arch), "")
	if err != nil {
		return err
	}
	for i, e := range entries {
		if !strings.HasPrefix(e.name, "share/man/") {
			continue
		}
		entries[i].name += ".gz"
		if e.link != "" {
			entries[i].link += ".gz"
		} else if entries[i].body, err = compress(e.body); err != nil {
			return err
		}
	}
	documents, err := r.documentation(b)
	if err != nil {
		return err
	}
	for _, e := range append(entries, documents...) {
		if err := r.stageEntry(filepath.Join(r.usr(b.arch), e.name), e); err != nil {
			return err
		}
	}
	return nil
}

// documentation returns what is in /usr/share/doc/gdr-features, under the names that
// Debian's policy asks for.
func (r *release) documentation(b bundle) ([]entry, error) {
	const doc, changelog = "share/doc/gdr-features/", "changelog.gz"
	shipped, err := pages()
	if err != nil {
		return nil, err
	}
	shipped["CHANGELOG.md"] = changelog
	entries, err := r.entries(shipped, doc)
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		if e.name != doc+changelog {
			continue
		}
		if entries[i].body, err = compress(e.body); err != nil {
			return nil, err
		}
	}
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	linked, err := r.linked(b)
	if err != nil {
		return nil, err
	}
	return append(entries, entry{
		name: doc + "copyright", mode: 0o644, body: bytes.Join([][]byte{license, licenses.Text(linked)}, []byte("\n")),
	}), nil
}

// stageEntry writes a file or a link.
func (r *release) stageEntry(name string, e entry) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if e.link != "" {
		return os.Symlink(e.link, name)
	}
	if err := os.WriteFile(name, e.body, e.mode); err != nil {
		return err
	}
	return os.Chtimes(name, r.at, r.at)
}

// pack writes a package.
func (r *release) pack(b bundle, format string) error {
	config, err := nfpm.ParseFileWithEnvMapping("deploy/packages/nfpm.yaml", func(name string) string {
		return map[string]string{"VERSION": r.version, "ARCH": b.arch, "USR": r.usr(b.arch), "URL": r.url}[name]
	})
	if err != nil {
		return err
	}
	info, err := config.Get(format)
	if err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	info.MTime = r.at
	for _, c := range info.Contents {
		if c.FileInfo == nil {
			c.FileInfo = &files.ContentFileInfo{}
		}
		c.FileInfo.MTime = r.at
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if err := packager.Package(info, &body); err != nil {
		return err
	}
	return r.write(packager.ConventionalFileName(info), body.Bytes())
}
