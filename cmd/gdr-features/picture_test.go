package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/machine"
)

// drawn are the machines whose pictures are kept as golden files: they are
// large, and the tests of internal/picture look at all of them.
var drawn = map[string][]string{
	"topo.svg":  {"broadcom-nested", "gb300-datadirect", "vfs-with-pf", "nic-only"},
	"topo.html": {"bluefield3-l40s"},
}

// TestGoldenPictures compares the pictures of topo; the text for Graphviz of
// every machine.
func TestGoldenPictures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(machinesDir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no machines")
	}
	for _, file := range files {
		m, err := machine.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(m.Name, func(t *testing.T) {
			dir := m.Tree(t, machine.States()[0])
			for _, name := range []string{"topo.dot", "topo.svg", "topo.html"} {
				if machines := drawn[name]; machines != nil && !slices.Contains(machines, m.Name) {
					continue
				}
				var out, errs bytes.Buffer
				form := strings.TrimPrefix(name, "topo.")
				if status := run(t.Context(), []string{"--root", dir, "topo", "-o", form}, streams{out: &out, err: &errs}); status != 0 || errs.Len() > 0 {
					t.Errorf("%s: status %d, %s", form, status, errs.String())
				}
				golden(t, filepath.Join(goldenDir, m.Name, name), out.Bytes())
			}
		})
	}
}

// TestReadmePicture: the README shows a screenshot, of a size for a page, with
// words for those who do not see it.
func TestReadmePicture(t *testing.T) {
	data, err := os.ReadFile("../../docs/topo.png")
	if err != nil {
		t.Fatalf("%v (make screenshot takes it)", err)
	}
	config, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil || config.Width < 1265 || config.Height < 600 || config.Height > config.Width || len(data) > 200<<10 {
		t.Errorf("%d bytes, %dx%d, %v", len(data), config.Width, config.Height, err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(readme), "](docs/topo.png)")
	if alt := before[strings.LastIndex(before, "![")+2:]; !found || len(alt) < 60 || strings.Contains(alt, "\n") {
		t.Errorf("docs/topo.png is not shown with words: %q", alt)
	}
}
