package main

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGraphviz: Graphviz draws the graph of every machine, with every GPU and NIC, the
// level of every pair in the matrix, and that of a GPU's nearest NICs on the line to it.
func TestGraphviz(t *testing.T) {
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Fatal("no dot: apt-get install graphviz")
	}
	m := laidOut(t)
	for _, s := range everyMachine(t) {
		t.Run(s.name, func(t *testing.T) {
			var words strings.Builder
			draw := exec.CommandContext(t.Context(), dot, "-Tsvg", s.topo(t, m, "dot"))
			draw.Stderr = &words
			out, err := draw.Output()
			if err != nil || words.Len() > 0 {
				t.Fatalf("%v\n%s", err, words.String())
			}
			down := "" // of a near NIC without an active port
			if s.state == "ports-down" {
				down = " down"
			}
			checkGraph(t, out, read(t, s.topo(t, m, "json")), down)
		})
	}
}

// checkGraph compares what Graphviz drew with the machine; down stands behind the level of each
// line.
func checkGraph(t *testing.T, drawn []byte, want *machine, down string) {
	t.Helper()
	var svg struct {
		Groups []struct {
			Title string   `xml:"title"`
			Texts []string `xml:"text"`
		} `xml:"g>g"`
	}
	if err := xml.Unmarshal(drawn, &svg); err != nil {
		t.Fatal(err)
	}
	var matrix []string
	vertex, above := map[string]string{}, map[string]string{} // by the name of a device, and by its vertex
	for _, g := range svg.Groups {
		switch _, to, isLine := strings.Cut(g.Title, "--"); {
		case isLine && len(g.Texts) > 0:
			above[to] = g.Texts[0]
		case isLine:
		case g.Title == "matrix":
			matrix = g.Texts
		case len(g.Texts) > 0:
			vertex[strings.Join(g.Texts, " ")] = g.Title
		}
	}
	at := func(name, address string) string {
		for text, v := range vertex {
			if strings.HasPrefix(text, name+" ") && strings.Contains(text, address) {
				return v
			}
		}
		t.Errorf("%s %s is not drawn", name, address)
		return ""
	}
	gpus, nics := want.names()
	for j, n := range want.NICs {
		at(nics[j], n.Address)
	}
	var cells []string
	if len(want.Pairs) > 0 {
		cells = append([]string{"GPU"}, nics...)
	}
	for i, g := range want.GPUs {
		v := at(gpus[i], g.Address)
		if len(nics) == 0 {
			continue
		}
		cells = append(cells, gpus[i]+" "+strings.TrimPrefix(g.Address, "0000:"))
		cells = append(cells, want.levels()[i]...)
		if level, _ := want.nearest(i); above[v] != level+down {
			t.Errorf("the line to %s says %q, want %q", gpus[i], above[v], level+down)
		}
	}
	if !slices.Equal(matrix, cells) {
		t.Errorf("the matrix is drawn as %q, want %q", matrix, cells)
	}
}

// TestScreenshot: what the README shows is as large as what is taken now.
func TestScreenshot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "topo.png")
	if err := run(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	taken, committed := size(t, file), size(t, filepath.Join(repository, "docs/topo.png"))
	if taken.Width != committed.Width || max(taken.Height, committed.Height)-min(taken.Height, committed.Height) > 100 {
		t.Errorf("%dx%d, and docs/topo.png is %dx%d: go run . -o ../../docs/topo.png", taken.Width, taken.Height, committed.Width, committed.Height)
	}
}

func size(t *testing.T, file string) image.Config {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	config, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return config
}
