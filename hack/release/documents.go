package main

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// documents are files of the repository that an archive has, and the name of each there.
type documents map[string]string

// pages returns the documents that go with the programs of a node: README.md and what it leads
// to.
func pages() (documents, error) {
	all := documents{"README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md", "SECURITY.md": "SECURITY.md"}
	for _, directory := range []string{"docs", "deploy"} {
		err := filepath.WalkDir(directory, func(name string, d fs.DirEntry, err error) error {
			name = filepath.ToSlash(name)
			if err == nil && !d.IsDir() && path.Ext(name) != ".go" {
				all[name] = name
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// pluginPages are the documents that go with the kubectl plugin.
var pluginPages = documents{
	"cmd/kubectl-gdr/README.md":   "README.md",
	"CHANGELOG.md":                "CHANGELOG.md",
	"deploy/examples/reader.yaml": "reader.yaml",
}

// chartPages are the pages of the Helm chart.
var chartPages = documents{"deploy/helm/gdr-features/README.md": "README.md"}

// link matches a link to another file, in a page of Markdown.
var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)

// entries returns the documents below a directory of an archive. Their links lead to each other,
// and for what the archive lacks to the page of the project.
func (r *release) entries(d documents, below string) ([]entry, error) {
	var all []entry
	for from, to := range d {
		text, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		if path.Ext(from) == ".md" {
			text = r.relink(d, from, text)
		}
		all = append(all, entry{name: path.Join(below, to), mode: 0o644, body: text})
	}
	return all, nil
}

// relink returns a page of the repository with the links that it has in an archive. Blocks of
// code have no links.
func (r *release) relink(d documents, page string, text []byte) []byte {
	var out bytes.Buffer
	code := false
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("```")) {
			code = !code
		}
		if !code {
			line = link.ReplaceAllFunc(line, func(found []byte) []byte { return r.newLink(d, page, found) })
		}
		out.Write(line)
	}
	return out.Bytes()
}

func (r *release) newLink(d documents, page string, found []byte) []byte {
	parts := link.FindSubmatch(found)
	target, section := string(parts[1]), string(parts[2])
	if strings.Contains(target, ":") { // an address
		return found
	}
	target = path.Join(path.Dir(page), target)
	if there := d.place(target); there == "" {
		target = r.url + "/blob/" + r.version + "/" + target
	} else if relative, err := filepath.Rel(path.Dir(d[page]), there); err == nil {
		target = filepath.ToSlash(relative)
	}
	return []byte("](" + target + section + ")")
}

// place returns the name that an archive has for a file or a directory of the repository, "" if
// it has none.
func (d documents) place(name string) string {
	if to, ok := d[name]; ok {
		return to
	}
	for from, to := range d {
		if from == to && strings.HasPrefix(from, name+"/") {
			return name
		}
	}
	return ""
}
