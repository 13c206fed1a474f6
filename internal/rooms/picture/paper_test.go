package picture

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"html"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPut: values are escaped in text and in attributes, and a value is no markup.
func TestPut(t *testing.T) {
	page := paper{text: new(strings.Builder), escape: html.EscapeString}
	page.put(`<p class="%s">%s</p>`, `"> onload="x`, "<b>%s</b> & 'c'")
	page.putIf("<br/>%s", "")
	page.putIf("%s", "+")
	if got, want := page.text.String(), `<p class="&#34;&gt; onload=&#34;x">&lt;b&gt;%s&lt;/b&gt; &amp; &#39;c&#39;</p>+`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	graph := paper{text: new(strings.Builder), escape: escapeDot}
	graph.put(`label="%s"`, "a\"]; b\\\nc")
	if got, want := graph.text.String(), `label="a\"]; b\\\nc"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestCalls reads the package's own source: outside paper.go no string becomes markup and
// nothing is written but by put, which gets constant markup and a value for each %s in it.
func TestCalls(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	puts := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			at := set.Position(call.Pos())
			switch f := call.Fun.(type) {
			case *ast.Ident:
				if f.Name == "markup" && name != "paper.go" {
					t.Errorf("%v: text becomes markup", at)
				}
			case *ast.SelectorExpr:
				if strings.HasPrefix(f.Sel.Name, "Write") && name != "paper.go" {
					t.Errorf("%v: something is written past put", at)
				}
				if f.Sel.Name == "put" || f.Sel.Name == "putIf" {
					puts++
					checkPut(t, at, call)
				}
			}
			return true
		})
	}
	if puts < 50 {
		t.Errorf("%d calls of put", puts)
	}
}

// checkPut: the markup is a constant of the source, with as many %s as there are values.
func checkPut(t *testing.T, at token.Position, call *ast.CallExpr) {
	t.Helper()
	if id, ok := call.Args[0].(*ast.Ident); ok && slices.Contains([]string{"head", "dark", "boxes", "tables", "m"}, id.Name) {
		return // parts of the style, and what putIf hands on
	}
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, types.ExprString(call.Args[0]))
	if err != nil || value.Value == nil {
		t.Errorf("%v: not a constant", at)
		return
	}
	if places := strings.Count(constant.StringVal(value.Value), "%s"); places != len(call.Args)-1 {
		t.Errorf("%v: %d values for %d places", at, len(call.Args)-1, places)
	}
}
