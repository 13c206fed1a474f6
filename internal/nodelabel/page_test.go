package nodelabel

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"gdr-features/source/family"
)

// TestSchedulersPage: the labels in the table of docs/schedulers.md exist, and are of the kind
// that it says.
func TestSchedulersPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/schedulers.md")
	if err != nil {
		t.Fatal(err)
	}
	all, name := All(family.Known()), regexp.MustCompile("`(g(?:dr|pudirect)\\.[a-z.-]+)`")
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || !strings.HasSuffix(cells[2], " |") {
			continue
		}
		kind := strings.TrimSuffix(cells[2], " |")
		for _, m := range name.FindAllStringSubmatch(cells[1], -1) {
			rows++
			if !all[m[1]] {
				t.Errorf("no label %s", m[1])
			}
			if Hardware(m[1]) != (kind == "hardware") || kind != "hardware" && kind != "state" {
				t.Errorf("%s is said to be a label of %q", m[1], kind)
			}
		}
	}
	if rows < 10 {
		t.Errorf("only %d labels", rows)
	}
}
