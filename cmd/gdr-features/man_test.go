package main

import (
	"os"
	"path/filepath"
	"testing"

	"gdr-features/hack/manpage"
)

const manDir = "../../man"

// TestMan compares the manual pages with the commands they are made from.
func TestMan(t *testing.T) {
	for _, name := range []string{"NODE_NAME", "POD_NAMESPACE"} { // defaults come from there
		t.Setenv(name, "")
	}
	pages := manpage.Pages(new(app).command())
	there, err := filepath.Glob(filepath.Join(manDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range there {
		if _, ok := pages[filepath.Base(file)]; ok {
			continue
		}
		if !update {
			t.Errorf("%s belongs to no command (make golden removes it)", file)
		} else if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range pages {
		golden(t, filepath.Join(manDir, name), []byte(text))
	}
}
