package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// commandsBelow returns the blocks of shell commands below a heading of a Markdown page.
func commandsBelow(t *testing.T, path, heading string) (blocks []string) {
	t.Helper()
	return blocksBelow(t, path, heading, "console")
}

// blocksBelow returns the blocks of a language below a heading of a Markdown page.
func blocksBelow(t *testing.T, path, heading, language string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var block strings.Builder
	below, inside, margin := false, false, ""
	for line := range strings.Lines(string(text)) {
		bare := strings.TrimSpace(line)
		switch {
		case !inside && strings.HasPrefix(line, "#"):
			below = bare == heading
		case below && bare == "```"+language:
			inside = true
			margin, _, _ = strings.Cut(line, "`")
		case inside && bare == "```":
			blocks = append(blocks, block.String())
			block.Reset()
			inside = false
		case inside:
			block.WriteString(strings.TrimPrefix(line, margin))
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no block of %s below %q", path, language, heading)
	}
	return blocks
}

// hasRow reports whether a table has a row of these fields.
func hasRow(table string, fields ...string) bool {
	for line := range strings.Lines(table) {
		if slices.Equal(strings.Fields(line), fields) {
			return true
		}
	}
	return false
}
