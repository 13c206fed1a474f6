package main

import (
	"os"
	"strings"
	"testing"
)

const changelog = `# Changelog

## Unreleased: v2

### Before you upgrade: everyone

- **One.** Two
  lines.

### For programs

- A.

## v1

### For programs

- Old.
`

func TestAdd(t *testing.T) {
	got, err := add(changelog, []change{
		{"changes/a.md", "### For programs\n\n- B ([x](../docs/x.md)).\n\n### Before you upgrade\n\n- **Three.**\n  More.\n"},
		{"changes/b.md", "### For programs\n\n- C.\n"},
	})
	want := strings.Replace(changelog, "- A.\n", "- A.\n- B ([x](docs/x.md)).\n- C.\n", 1)
	want = strings.Replace(want, "  lines.\n", "  lines.\n- **Three.**\n  More.\n", 1)
	if err != nil || got != want {
		t.Errorf("error %v, %s", err, got)
	}
	for text, message := range map[string]string{
		"- D.\n":                         "changes/a.md:1: this is no list below a heading ###: - D.",
		"### For programs\n\nSome text.": "changes/a.md:3: this is no list below a heading ###: Some text.",
		"### For nobody\n\n- E.\n":       `changes/a.md:1: the newest section of CHANGELOG.md has no heading "### For nobody"`,
	} {
		if _, err := add(changelog, []change{{"changes/a.md", text}}); err == nil || err.Error() != message {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

// The files that are there can be moved, and then are.
func TestChanges(t *testing.T) {
	const root = "../.."
	changes, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(root + "/CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := add(string(text), changes); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/changes", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"CHANGELOG.md": changelog, "changes/README.md": "#\n", "changes/x.md": "### For programs\n\n- X.\n"} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := move(dir); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir + "/changes")
	if now, readErr := os.ReadFile(dir + "/CHANGELOG.md"); err != nil || readErr != nil || len(left) != 1 || !strings.Contains(string(now), "- A.\n- X.\n") {
		t.Errorf("left %v, error %v, %s", left, err, now)
	}
}
