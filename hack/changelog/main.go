// Command changelog moves the files of changes/ into CHANGELOG.md: what stands below a heading
// there goes to the end of the newest section's list of that heading. It runs in the root of the
// repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := move("."); err != nil {
		fmt.Fprintln(os.Stderr, "changelog:", err)
		os.Exit(1)
	}
}

// move moves the files of a repository.
func move(root string) error {
	changes, err := read(root)
	if err != nil {
		return err
	}
	path := filepath.Join(root, "CHANGELOG.md")
	text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	if err != nil {
		return err
	}
	now, err := add(string(text), changes)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(now), 0o644); err != nil { //nolint:gosec // everybody may read it
		return err
	}
	for _, c := range changes {
		if err := os.Remove(filepath.Join(root, c.file)); err != nil {
			return err
		}
	}
	return nil
}

// change is a file of changes/.
type change struct {
	file string // changes/smallbar1.md
	text string
}

// read reads the files of changes/ in the order of their names.
func read(root string) (changes []change, err error) {
	files, err := filepath.Glob(filepath.Join(root, "changes", "*.md"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		name := filepath.Base(path)
		if name == "README.md" {
			continue
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		if err != nil {
			return nil, err
		}
		changes = append(changes, change{"changes/" + name, string(text)})
	}
	return changes, nil
}

// title is the text of a heading, "For administrators". A heading of CHANGELOG.md may go on:
// "Before you upgrade: everyone who installed an earlier build".
func title(line string) string {
	t, _, _ := strings.Cut(strings.TrimPrefix(line, "### "), ":")
	return t
}

// add adds the changes to the newest section of a changelog.
func add(text string, changes []change) (string, error) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	ends := ends(lines)
	added := map[int][]string{} // behind which line
	for _, c := range changes {
		end, found := 0, false
		for i, line := range strings.Split(strings.TrimRight(c.text, "\n"), "\n") {
			switch {
			case strings.HasPrefix(line, "### "):
				if end, found = ends[title(line)]; !found {
					return "", fmt.Errorf("%s:%d: the newest section of CHANGELOG.md has no heading %q", c.file, i+1, line)
				}
			case line == "":
			case !found || !strings.HasPrefix(line, "- ") && !strings.HasPrefix(line, "  "):
				return "", fmt.Errorf("%s:%d: this is no list below a heading ###: %s", c.file, i+1, line)
			default:
				// A link is from the directory of its file.
				added[end] = append(added[end], strings.ReplaceAll(line, "](../", "]("))
			}
		}
	}
	var out strings.Builder
	for i, line := range lines {
		fmt.Fprintln(&out, line)
		for _, line := range added[i] {
			fmt.Fprintln(&out, line)
		}
	}
	return out.String(), nil
}

// ends are the last lines with text below each heading of the newest section.
func ends(lines []string) map[string]int {
	ends, at, sections := map[string]int{}, "", 0
	for i, line := range lines {
		if strings.HasPrefix(line, "## ") {
			sections++
		}
		switch {
		case sections > 1:
			return ends
		case strings.HasPrefix(line, "### "):
			at = title(line)
			ends[at] = i
		case at != "" && line != "":
			ends[at] = i
		}
	}
	return ends
}
