package picture

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/internal/report"
	"gdr-features/test/machine"
)

// withPortDown is a machine that is ready, but for the only port of an RDMA device.
func withPortDown(t *testing.T, name, device string) *report.Report {
	t.Helper()
	m, err := machine.Load(filepath.Join("../../../testdata/machines", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := m.Tree(t, m.Ready())
	port := filepath.Join(dir, "sys/class/infiniband", device, "ports/1")
	for file, text := range map[string]string{"state": "1: DOWN\n", "phys_state": "2: Polling\n"} {
		if err := os.WriteFile(filepath.Join(port, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return read(t, dir)
}

// TestDown: a dead port's frame, badge, cells and lines have no color of a level, its machine
// is not all well, and the head of the page says why, with links.
func TestDown(t *testing.T) {
	r := withPortDown(t, "dell-xe9680-h100", "mlx5_3")
	m := newModel(r)
	down := map[string]bool{}
	for _, n := range m.NICs {
		down[n.Name] = n.Down
	}
	if !down["mlx5_3"] || down["mlx5_1"] {
		t.Fatalf("down: %v", down)
	}
	var page bytes.Buffer
	if err := HTML(&page, r, "node7"); err != nil {
		t.Fatal(err)
	}
	list := parsed(t, page.String())
	harmless(t, list)
	count := map[string]int{}
	title := ""
	for _, e := range list {
		switch classes := strings.Fields(e.attrs["class"]); {
		case e.name == "title":
			title = e.text
		case len(classes) > 0 && strings.HasSuffix(e.attrs["class"], " down"):
			count[e.name+" "+classes[0]]++
		case strings.Contains(e.attrs["class"], " down "):
			count[e.name+" "+classes[0]]++
		}
	}
	want := map[string]int{"td level": len(m.GPUs), "dt level": 1, "span level": 1, "li device": 2}
	for what, n := range want {
		if count[what] != n {
			t.Errorf("%d times %s is down, want %d: %v", count[what], what, n, count)
		}
	}
	if frames := count["li switch"] + count["li port"] + count["li bus"]; frames != 1 {
		t.Errorf("%d frames are down: %v", frames, count)
	}
	head, _, _ := strings.Cut(page.String(), "</header>")
	for _, text := range []string{`class="status WARN">READY, WITH WARNINGS<`, `href="#NearPortDown"`, `href="#PortDown"`, "2 warnings (PortDown, NearPortDown)"} {
		if !strings.Contains(head, text) {
			t.Errorf("the head lacks %s:\n%s", text, head)
		}
	}
	if !strings.HasPrefix(title, "node7: GPUDirect RDMA: ready") {
		t.Errorf("the title is %q", title)
	}
	if graph := written(t, Dot, r); !strings.Contains(graph, `[label="PIX down" color="`+lost+`"`) || strings.Count(graph, lost) < len(m.GPUs)+1 {
		t.Errorf("the graph does not show it: %d times", strings.Count(graph, lost))
	}
}

// TestNoneDown: without drivers there is no port, and the levels keep their colors: they are
// what the machine has to offer.
func TestNoneDown(t *testing.T) {
	for _, n := range newModel(named(t, "dell-xe9680-h100", "no-drivers")).NICs {
		if n.Down {
			t.Errorf("%s is down", n.Name)
		}
	}
}
