package picture

import (
	_ "embed" // for the graph
	"io"
	"strings"
	"text/template"

	"gdr-features/internal/report"
)

//go:embed graph.dot
var graph string

// Dot writes the PCI tree and the matrix as text for Graphviz: a cluster for each NUMA
// node, and the lines between a GPU and its nearest NICs colored and named by level.
func Dot(w io.Writer, r *report.Report) error {
	t, err := template.New("graph").Funcs(template.FuncMap{"quote": quoteDot, "light": light, "join": strings.Join}).Parse(graph)
	if err != nil {
		return err
	}
	return write(w, t.Execute, newModel(r))
}

// quoteDot makes a string of DOT, in which \n, \l, \N and others are escapes.
func quoteDot(lines ...string) string {
	text := strings.TrimRight(strings.Join(lines, "\n"), "\n")
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}
