package picture

import (
	_ "embed" // for the page
	"html/template"
	"io"
	"strings"

	"gdr-features/internal/report"
	"gdr-features/internal/view"
	"gdr-features/topology"
)

//go:embed page.html
var page string

// HTML writes one self-contained page: the verdict, the PCI tree as nested boxes,
// the matrix, findings and devices as tables. It has no script, its content security
// policy forbids loading and sending anything, and html/template escapes everything
// that comes from the machine.
func HTML(w io.Writer, r *report.Report) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"levels":  func() any { return levels },
		"meaning": func(l topology.Level) string { return view.Meanings[l] },
		"join":    func(texts []string) string { return strings.Join(texts, " ") },
	}).Parse(page)
	if err != nil {
		return err
	}
	return write(w, t.Execute, newModel(r))
}
