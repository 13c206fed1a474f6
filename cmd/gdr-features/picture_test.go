package main

import (
	"bytes"
	"image/png"
	"os"
	"strings"
	"testing"
)

// TestReadmePicture: the README shows a screenshot of a suitable size, with an
// alternative text.
func TestReadmePicture(t *testing.T) {
	data, err := os.ReadFile("../../docs/topo.png")
	if err != nil {
		t.Fatalf("%v (go run . -o ../../docs/topo.png in test/browser takes it)", err)
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
