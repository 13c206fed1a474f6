// Package mutate_test changes judgements, and asks whether tests notice.
package mutate_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSites: each mutant is one place, and code without any is what it was.
func TestSites(t *testing.T) {
	const code = `package p

func f(a, b int, c bool) bool {
	if a < b && c {
		return a == b
	}
	switch {
	case c:
		return true
	}
	return c || a >= b
}
`
	path := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	text, err := mutate("p", path, func(name string) int { names = append(names, name); return 0 })
	if err != nil || string(text) != code {
		t.Errorf("%v\n%s", err, text)
	}
	want := []string{
		"p f: a < b && c => c", "p f: a < b && c => a < b", "p f: a < b => a <= b", "p f: a == b => the opposite",
		"p f: c => true", "p f: c => false", "p f: c || a >= b => a >= b", "p f: c || a >= b => c", "p f: a >= b => a > b",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	id := 0
	text, err = mutate("p", path, func(string) int { id++; return id })
	const first = "if ((((a < b) || mutantOn(3) && a == b)) || mutantOn(1)) && ((c) || mutantOn(2)) {"
	if err != nil || !strings.Contains(string(text), first) {
		t.Errorf("%v\n%s", err, text)
	}
}

// edit is text to insert at an offset of a file.
type edit struct {
	at   int
	text string
}

// file finds the places of one file where a mutant is possible.
type file struct {
	dir, function string
	src           []byte
	base          int // the offset of the file in its file set
	keep          func(name string) (id int)
	times         map[string]int
	before, after []edit
}

// mutate returns the source of a file with all mutants that keep gives an id, each switched by a
// call of mutantOn(id).
func mutate(dir, path string, keep func(name string) (id int)) ([]byte, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, path, src, 0)
	if err != nil {
		return nil, err
	}
	f := &file{dir: dir, src: src, base: set.File(tree.Pos()).Base(), keep: keep, times: map[string]int{}}
	for _, decl := range tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			f.function = d.Name.Name
			f.walk(d)
		case *ast.GenDecl: // functions in tables
			f.function = strings.TrimSuffix(filepath.Base(path), ".go")
			ast.Inspect(d, func(n ast.Node) bool {
				if lit, ok := n.(*ast.FuncLit); ok {
					f.walk(lit)
					return false
				}
				return true
			})
		}
	}
	return f.edited(), nil
}

// edited inserts what was found. Of two expressions that end at the same place the inner one was
// found last, and of two that start there first the outer one.
func (f *file) edited() []byte {
	slices.Reverse(f.after)
	all := slices.Concat(f.after, f.before)
	slices.SortStableFunc(all, func(a, b edit) int { return a.at - b.at })
	var out []byte
	at := 0
	for _, e := range all {
		out = append(append(out, f.src[at:e.at]...), e.text...)
		at = e.at
	}
	return append(out, f.src[at:]...)
}

func (f *file) text(n ast.Node) string {
	return string(f.src[int(n.Pos())-f.base : int(n.End())-f.base])
}

// add puts an expression between two texts, in which %d is the mutant's id.
func (f *file) add(x ast.Expr, old, becomes, before, after string) {
	short := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	name := fmt.Sprintf("%s %s: %s => %s", f.dir, f.function, short(old), short(becomes))
	f.times[name]++
	if n := f.times[name]; n > 1 {
		name += fmt.Sprintf(" (%d)", n)
	}
	id := f.keep(name)
	if id == 0 {
		return
	}
	fill := func(text string) string { return strings.ReplaceAll(text, "%d", fmt.Sprint(id)) }
	f.before = append(f.before, edit{int(x.Pos()) - f.base, fill(before)})
	f.after = append(f.after, edit{int(x.End()) - f.base, fill(after)})
}

// always and never make a condition true or false.
func (f *file) always(x ast.Expr, in string, becomes string) {
	f.add(x, in, becomes, "((", ") || mutantOn(%d))")
}

func (f *file) never(x ast.Expr, in string, becomes string) {
	f.add(x, in, becomes, "((", ") && !mutantOn(%d))")
}

func (f *file) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			f.condition(n.Cond)
		case *ast.SwitchStmt:
			if n.Tag != nil {
				return true
			}
			for _, clause := range n.Body.List {
				for _, cond := range clause.(*ast.CaseClause).List {
					f.condition(cond)
				}
			}
		case *ast.BinaryExpr:
			f.binary(n)
		case *ast.ReturnStmt:
			for _, x := range n.Results {
				f.returned(x)
			}
		case *ast.SelectorExpr:
			f.instead(n)
		}
		return true
	})
}

// condition: what happens anyway, and what never does. The operands of && and || say it of them.
func (f *file) condition(x ast.Expr) {
	if b, ok := x.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
		return
	}
	f.always(x, f.text(x), "true")
	f.never(x, f.text(x), "false")
}

// binary leaves out an operand, or moves a limit by one value.
func (f *file) binary(b *ast.BinaryExpr) {
	x, y := f.text(b.X), f.text(b.Y)
	switch b.Op {
	case token.LAND:
		f.always(b.X, f.text(b), y)
		f.always(b.Y, f.text(b), x)
	case token.LOR:
		f.never(b.X, f.text(b), y)
		f.never(b.Y, f.text(b), x)
	case token.LSS, token.GTR:
		f.add(b, f.text(b), x+" "+b.Op.String()+"= "+y, "((", ") || mutantOn(%d) && "+x+" == "+y+")")
	case token.LEQ, token.GEQ:
		f.add(b, f.text(b), x+" "+b.Op.String()[:1]+" "+y, "((", ") && !(mutantOn(%d) && "+x+" == "+y+"))")
	default: // the others are left as they are
	}
}

// returned turns a comparison round.
func (f *file) returned(x ast.Expr) {
	if b, ok := x.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		f.add(b, f.text(b), "the opposite", "((", ") != mutantOn(%d))")
	}
}

// instead has true for what is unknown, and one of two for both.
func (f *file) instead(s *ast.SelectorExpr) {
	if from, ok := s.X.(*ast.Ident); !ok || from.Name != "tristate" {
		return
	}
	other := map[string]string{"Unknown": "True", "And": "Or", "Or": "And"}[s.Sel.Name]
	if other != "" {
		f.add(s, f.text(s), "tristate."+other, "mutantInstead(%d, ", ", tristate."+other+")")
	}
}
