package findings

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWords: the table of words has those that the texts of this package use, and no others.
func TestWords(t *testing.T) {
	used := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range wordsIn(parsed) {
			used[word] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(words))); diff != "" {
		t.Errorf("used and known words (-used +known):\n%s", diff)
	}
	const other = "{} {noSuchWord} {"
	if got := fill(nil, other); got != other {
		t.Errorf("got %q: braces that hold no word stay", got)
	}
}

// wordsIn lists the words in braces of a file's texts, without the keys of tables.
func wordsIn(file *ast.File) (all []string) {
	keys := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			keys[n.Key] = true
		case *ast.BasicLit:
			if n.Kind == token.STRING && !keys[n] {
				all = append(all, inBraces.FindAllString(n.Value, -1)...)
			}
		}
		return true
	})
	return all
}
