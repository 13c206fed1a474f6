package main

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// code matches a block of code.
var code = regexp.MustCompile("(?ms)^ *```.*?^ *```$")

// TestLinks: in every set of documents each link leads to a file of the set, or, by the page of
// the project, to a file of the repository that the set does not have.
func TestLinks(t *testing.T) {
	t.Chdir("../..")
	r := &release{url: "https://example.com/gdr-features", version: "v1.0.0"}
	shipped, err := pages()
	if err != nil {
		t.Fatal(err)
	}
	packaged, err := pages()
	if err != nil {
		t.Fatal(err)
	}
	packaged["CHANGELOG.md"] = "changelog.gz"
	for name, c := range map[string]struct {
		documents    documents
		here, abroad int // at least so many links of each kind
	}{
		"archive": {shipped, 400, 5},
		"package": {packaged, 400, 5},
		"plugin":  {pluginPages, 2, 15},
		"chart":   {chartPages, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			entries, err := r.entries(c.documents, "")
			if err != nil {
				t.Fatal(err)
			}
			names := []string{"."}
			for _, e := range entries {
				for name := e.name; name != "."; name = path.Dir(name) {
					names = append(names, name)
				}
			}
			here, abroad := 0, 0
			for _, e := range entries {
				if path.Ext(e.name) != ".md" && e.name != "changelog.gz" {
					continue
				}
				for _, found := range link.FindAllSubmatch(code.ReplaceAll(e.body, nil), -1) {
					target := string(found[1])
					if file, ok := strings.CutPrefix(target, r.url+"/blob/"+r.version+"/"); ok {
						abroad++
						if _, err := os.Stat(file); err != nil || c.documents.place(file) != "" {
							t.Errorf("%s: %s: error %v, in the archive as %q", e.name, target, err, c.documents.place(file))
						}
					} else if !strings.Contains(target, ":") {
						here++
						if !slices.Contains(names, path.Join(path.Dir(e.name), target)) {
							t.Errorf("%s: %s is not in the archive", e.name, target)
						}
					}
				}
			}
			if here < c.here || abroad < c.abroad {
				t.Errorf("only %d links within, %d to the project", here, abroad)
			}
		})
	}
}

// TestRelink: a link keeps its section, and an address stays as it is.
func TestRelink(t *testing.T) {
	r := &release{url: "https://example.com/p", version: "v1.2.3"}
	d := documents{"README.md": "README.md", "docs/a.md": "docs/a.md", "CHANGELOG.md": "changelog.gz", "x/y/R.md": "R.md"}
	for _, c := range []struct{ page, text, want string }{
		{"README.md", "[a](docs/a.md#b) [d](docs)", "[a](docs/a.md#b) [d](docs)"},
		{"docs/a.md", "[c](../CHANGELOG.md#new)", "[c](../changelog.gz#new)"},
		{"docs/a.md", "[s](#here) [u](https://e.org/a#b)", "[s](#here) [u](https://e.org/a#b)"},
		{"docs/a.md", "```text\n[x](x.md)\n```\n[x](x.md)", "```text\n[x](x.md)\n```\n[x](https://example.com/p/blob/v1.2.3/docs/x.md)"},
		{"docs/a.md", "![p](p.png)", "![p](https://example.com/p/blob/v1.2.3/docs/p.png)"},
		{"x/y/R.md", "[a](../../docs/a.md) [z](../z#s)", "[a](docs/a.md) [z](https://example.com/p/blob/v1.2.3/x/z#s)"},
	} {
		if got := string(r.relink(d, c.page, []byte(c.text))); got != c.want {
			t.Errorf("%s: %s becomes %s, want %s", c.page, c.text, got, c.want)
		}
	}
}
