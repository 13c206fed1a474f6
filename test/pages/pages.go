// Package pages reads which commands the pages of the repository show. Tests run them.
package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Page is a page of Markdown.
type Page struct {
	Path   string // below the root of the repository, such as "docs/env.md"
	Blocks []Block
	Spans  []string // what stands between backquotes within the text, each in one line
}

// Block is a block of commands, or of something else, between lines of three backquotes. The
// HTML comment before it, <!-- KIND: ARGS -->, says what runs the commands.
type Block struct {
	Below      string // the heading above it, as it is written, such as "## Install"
	Language   string // such as "console" or "yaml"
	Kind, Args string // of the comment; see Kinds
	Text       string
}

// Kinds are the kinds of blocks of commands:
//
//	example: MACHINE STATE  TestPages of cmd/gdr-features compares what they print on a machine of
//	                        testdata in a state of its drivers
//	container: NAME         the same, in a container of cmd/gdr-features/pod_test.go
//	shell: MACHINE STATE    TestPages runs them there as one script, which must succeed
//	cluster                 TestReadme of test/e2e compares what they print, on the nodes that it names
//	make                    .ci/run full runs these targets
//	test: TEST TEST         these tests run them, or commands made from them; after a comma, which
//	                        ones they do not run
//
// A block of another language that has the comment "file: NAME" is a file that the examples of
// its page read.
var Kinds = []string{"example", "container", "shell", "cluster", "make", "test"}

// Tests are the tests that run a block.
func (b Block) Tests() []string {
	if b.Kind != "test" {
		return nil
	}
	names, _, _ := strings.Cut(b.Args, ",")
	return strings.Fields(names)
}

// All reads the pages of the repository in a directory, without CHANGELOG.md: that also names
// what is gone.
func All(root string) ([]Page, error) {
	var all []Page
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (name[0] == '.' || name == "testdata") {
			return fs.SkipDir
		}
		if filepath.Ext(name) != ".md" || name == "CHANGELOG.md" {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		page, err := Read(root, rel)
		all = append(all, page)
		return err
	})
	return all, err
}

// Read reads a page below the root of the repository.
func Read(root, path string) (Page, error) {
	source, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return Page{}, err
	}
	p := Page{Path: path}
	heading := ""
	err = ast.Walk(goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			heading = strings.Repeat("#", n.Level) + " " + string(n.Lines().Value(source))
		case *ast.FencedCodeBlock:
			b := Block{Below: heading, Language: string(n.Language(source)), Text: string(n.Lines().Value(source))}
			b.Kind, b.Args = comment(n.PreviousSibling(), source)
			p.Blocks = append(p.Blocks, b)
		case *ast.CodeBlock: // by indentation alone
			p.Blocks = append(p.Blocks, Block{Below: heading, Text: string(n.Lines().Value(source))})
		case *ast.CodeSpan:
			p.Spans = append(p.Spans, strings.Join(strings.Fields(span(n, source)), " "))
		}
		return ast.WalkContinue, nil
	})
	return p, err
}

// comment returns what an HTML comment says.
func comment(n ast.Node, source []byte) (kind, args string) {
	html, ok := n.(*ast.HTMLBlock)
	if !ok {
		return "", ""
	}
	said := strings.TrimSpace(string(html.Lines().Value(source)))
	said, isComment := strings.CutPrefix(said, "<!--")
	said, ends := strings.CutSuffix(said, "-->")
	if !isComment || !ends {
		return "", ""
	}
	kind, args, _ = strings.Cut(said, ":")
	return strings.TrimSpace(kind), strings.TrimSpace(args)
}

// span returns the text of a code span.
func span(n *ast.CodeSpan, source []byte) string {
	var all strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if part, ok := c.(*ast.Text); ok {
			all.Write(part.Value(source))
		}
	}
	return all.String()
}

// Commands returns the commands that a page shows, in blocks and within the text. Those within
// the text are the spans of which the first word, after variables, is one of the programs.
func (p Page) Commands(programs ...string) (all []string) {
	for _, b := range p.Blocks {
		if b.Language != "console" {
			continue
		}
		for _, command := range b.Commands() {
			if slices.Contains(programs, Program(command)) {
				all = append(all, command)
			}
		}
	}
	for _, s := range p.Spans {
		if slices.Contains(programs, Program(s)) {
			all = append(all, s)
		}
	}
	return all
}

// Commands returns the commands of a block of shell, each in one line: all lines, or those
// after "$ " if it also shows what they print.
func (b Block) Commands() (all []string) {
	lines := strings.Split(strings.ReplaceAll(b.Text, "\\\n", " "), "\n")
	prompt := strings.Contains("\n"+b.Text, "\n$ ")
	for _, line := range lines {
		line, typed := strings.CutPrefix(line, "$ ")
		if line = strings.TrimSpace(line); line != "" && typed == prompt {
			all = append(all, line)
		}
	}
	return all
}

// Program returns the program that a command starts: its first word after variables.
func Program(command string) string {
	for word := range strings.FieldsSeq(command) {
		if name, _, assigned := strings.Cut(word, "="); !assigned || strings.ToUpper(name) != name {
			return word
		}
	}
	return ""
}
