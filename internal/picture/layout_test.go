package picture

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/machine"
	"gdr-features/internal/report"
	"gdr-features/source/pci"
)

// collect reads a machine in a state from a tree on disk, as a command would.
func collect(t testing.TB, m *machine.Machine, s machine.State) *report.Report {
	t.Helper()
	fs, err := host.Open(host.Options{Root: m.Tree(t, s)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	r := report.Collect(t.Context(), fs, report.Options{Detail: pci.Everything})
	return &r
}

// described is a machine from a text, with everything in place.
func described(t testing.TB, text string) *report.Report {
	t.Helper()
	m, err := machine.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return collect(t, m, machine.States()[0])
}

func named(t testing.TB, name, state string) *report.Report {
	t.Helper()
	m, err := machine.Load(filepath.Join("../../testdata/machines", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	s, ok := machine.StateNamed(state)
	if !ok {
		t.Fatalf("no state %s", state)
	}
	return collect(t, m, s)
}

// TestEverywhere draws every machine in several states, and made-up ones.
func TestEverywhere(t *testing.T) {
	for _, m := range machine.All(t, "../../testdata/machines") {
		for _, state := range []string{"ready", "no-drivers", "no-rdma", "ports-down"} {
			t.Run(m.Name+"/"+state, func(t *testing.T) { checkAll(t, named(t, m.Name, state), fullWidth) })
		}
	}
	for name, text := range madeUp() {
		t.Run(name, func(t *testing.T) { checkAll(t, described(t, text), fullWidth) })
	}
	t.Run("thirty deep", func(t *testing.T) { checkAll(t, described(t, deep(30)), 2*fullWidth) })
}

func checkAll(t *testing.T, r *report.Report, widest int) {
	t.Helper()
	checkLayout(t, r, widest)
	checkForms(t, r)
	checkNear(t, r)
}

// madeUp are machines of extreme shapes.
func madeUp() map[string]string {
	return map[string]string{
		"one of each":      "pci0000:00 numa=0\n  0000:00:01.0 port 8086:1\n    0000:01:00.0 gpu 10de:2330\n    0000:01:00.1 ib 15b3:1021 rdma=mlx5_0\n",
		"sixteen of each":  many(16, 16),
		"more than fit":    many(70, 70),
		"seventy GPUs":     many(70, 1),
		"no adapter":       many(3, 0),
		"no bridges":       "pci0000:00\n  0000:00:02.0 gpu 10de:2330\n  0000:00:03.0 ib 15b3:1021 rdma=mlx5_0\n",
		"many functions":   crowded(),
		"long names":       "pci0000:00 numa=0\n  0000:00:01.0 port 8086:1\n    0000:01:00.0 gpu 10de:2bb4\n    0000:01:00.1 ib 15b3:6732 rdma=a_name_that_udev_may_give_to_a_device_and_longer,b\n",
		"two names a port": "pci0000:00 numa=0\n  0000:00:01.0 port 8086:1\n    0000:01:00.0 gpu 10de:2330\n  0000:00:02.0 port 8086:1\n    0000:02:00.0 switch 1:2\n      0000:03:00.0 ib 15b3:1003 rdma=a,b,c,d\n",
		"many NUMA nodes":  manyNodes(),
	}
}

// many puts GPUs and NICs below one switch each.
func many(gpus, nics int) string {
	var text strings.Builder
	text.WriteString("nodes 2\n")
	add := func(i int, what string) {
		fmt.Fprintf(&text, "pci%04x:00 numa=%d\n  %04x:00:01.0 port 8086:1\n    %04x:01:00.0 switch 1000:c030\n      %04x:02:00.0 port 1000:c030\n        %04x:03:00.0 %s\n",
			i, i%2, i, i, i, i, what)
	}
	for i := range gpus {
		add(i, "gpu 10de:2330")
	}
	for i := range nics {
		add(gpus+i, fmt.Sprintf("ib 15b3:1021 rdma=mlx5_%d", i))
	}
	return text.String()
}

// manyNodes is a root bus on which every function claims a node of its own.
func manyNodes() string {
	var text strings.Builder
	text.WriteString("nodes 2\npci0000:00\n")
	for i := range 30 {
		fmt.Fprintf(&text, "  0000:%02x:00.0 gpu 10de:2330 numa=%d\n", i, 100+i)
	}
	return text.String()
}

// deep nests bridges.
func deep(n int) string {
	var text strings.Builder
	text.WriteString("pci0000:00 numa=0\n")
	for i := range n {
		fmt.Fprintf(&text, "%*s0000:%02x:00.0 port 8086:1\n", 2+2*i, "", i)
	}
	fmt.Fprintf(&text, "%*s0000:f0:00.0 gpu 10de:2330\n%*s0000:f1:00.0 ib 15b3:1021 rdma=mlx5_0\n", 2+2*n, "", 2+2*n-6, "")
	return text.String()
}

// crowded is an adapter with 700 virtual functions and as many others around.
func crowded() string {
	var text strings.Builder
	text.WriteString("pci0000:00 numa=0\n  0000:00:01.0 port 8086:1\n    0000:01:00.0 gpu 10de:2330\n  0000:00:02.0 port 8086:1\n    0000:02:00.0 eth 15b3:101d rdma=mlx5_0\n")
	for i := range 700 {
		fmt.Fprintf(&text, "    0000:%02x:%02x.%d eth 15b3:101e physfn=0000:02:00.0 rdma=mlx5_%d\n", 3+i/256, i/8%32, i%8, i+1)
	}
	for i := range 700 {
		fmt.Fprintf(&text, "  0001:%02x:%02x.%d 010802 144d:a80a\n", i/256, i/8%32, i%8)
	}
	return text.String()
}

// checkLayout looks at every rectangle, text and line: nothing overlaps, nothing
// leaves the picture.
func checkLayout(t *testing.T, r *report.Report, widest int) {
	t.Helper()
	m := newModel(r)
	for name, s := range map[string]scene{"tree": drawTree(m), "whole": drawWhole(m)} {
		for _, fault := range faults(s) {
			t.Errorf("%s: %s", name, fault)
		}
		if s.w > widest {
			t.Errorf("%s is %d pixels wide", name, s.w)
		}
	}
}

func (r rect) String() string { return fmt.Sprintf("%s %d,%d %dx%d", r.class, r.x, r.y, r.w, r.h) }

func (r rect) inside(o rect) bool {
	return r.x >= o.x && r.y >= o.y && r.x+r.w <= o.x+o.w && r.y+r.h <= o.y+o.h
}

func (r rect) meets(o rect) bool {
	return r.x < o.x+o.w && o.x < r.x+r.w && r.y < o.y+o.h && o.y < r.y+r.h
}

// faults names what overlaps, or leaves the picture.
func faults(s scene) []string {
	var out []string
	var rects, words, lines []rect
	for _, p := range s.parts {
		rects = append(rects, p.rects...)
		for _, t := range p.texts {
			box := roomOf(t)
			box.class = fmt.Sprintf("text %q", t.s)
			words = append(words, box)
			if t.style.size < 11 {
				out = append(out, fmt.Sprintf("%v is too small to read", box))
			}
		}
		for _, l := range p.paths {
			for i := 1; i < len(l.points); i++ {
				a, b := l.points[i-1], l.points[i]
				lines = append(lines, rect{x: min(a.x, b.x), y: min(a.y, b.y), w: max(a.x, b.x) - min(a.x, b.x), h: max(a.y, b.y) - min(a.y, b.y), class: "line"})
			}
		}
	}
	all := rect{w: s.w, h: s.h}
	for _, list := range [][]rect{rects, words, lines} {
		for _, r := range list {
			if !r.inside(all) {
				out = append(out, fmt.Sprintf("%v leaves the picture of %dx%d", r, s.w, s.h))
			}
		}
	}
	complain := func(a, b rect) { out = append(out, fmt.Sprintf("%v meets %v", a, b)) }
	for i, w := range words {
		for _, o := range words[:i] {
			if w.meets(o) {
				complain(w, o)
			}
		}
		for _, r := range rects {
			if w.meets(r) && !w.inside(r) {
				complain(w, r)
			}
		}
		for _, l := range lines {
			if w.meets(l) || w.meets(rect{x: l.x, y: l.y, w: l.w + 1, h: l.h + 1}) {
				complain(w, l)
			}
		}
	}
	for i, r := range rects {
		for _, o := range rects[:i] {
			if r.meets(o) && !r.inside(o) && !o.inside(r) {
				complain(r, o)
			}
		}
		for _, l := range lines {
			if r.class != "panel" && r.meets(l) {
				complain(r, l)
			}
		}
	}
	return out
}

// TestFaults: the test above sees what it is to see.
func TestFaults(t *testing.T) {
	word := func(x, y int) part {
		return part{texts: []text{{x: x, y: y, style: plain, s: "word"}}}
	}
	box := func(x, y int) part { return part{rects: []rect{{x: x, y: y, w: 60, h: 20, class: "box"}}} }
	line := func(x, y int) part { return part{paths: []path{{points: []point{{x, y}, {x + 50, y}}}}} }
	for name, tc := range map[string]struct {
		parts  []part
		faulty bool
	}{
		"apart":                {[]part{word(0, 20), word(0, 40), box(100, 0), line(0, 60)}, false},
		"a word in a box":      {[]part{box(0, 0), word(5, 15)}, false},
		"a box in a box":       {[]part{{rects: []rect{{w: 90, h: 90}, {x: 5, y: 5, w: 9, h: 9}}}}, false},
		"a word on a word":     {[]part{word(0, 20), word(10, 22)}, true},
		"a word out of a box":  {[]part{box(0, 0), word(40, 15)}, true},
		"two boxes":            {[]part{box(0, 0), box(50, 10)}, true},
		"a line through a box": {[]part{box(20, 0), line(0, 10)}, true},
		"a line to a box":      {[]part{box(50, 0), line(0, 10)}, false},
		"a line on a word":     {[]part{word(0, 20), line(0, 16)}, true},
		"out of the picture":   {[]part{word(180, 20)}, true},
		"above the picture":    {[]part{word(10, 5)}, true},
		"too small":            {[]part{{texts: []text{{x: 5, y: 30, style: style{size: 9}, s: "x"}}}}, true},
	} {
		if got := faults(scene{w: 200, h: 100, parts: tc.parts}); (len(got) > 0) != tc.faulty {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// roomOf is the room a text takes.
func roomOf(t text) rect {
	w := t.style.width(t.s)
	x := t.x
	switch t.align {
	case middle:
		x -= w / 2
	case end:
		x -= w
	case start:
	}
	return rect{x: x, y: t.y - t.style.size, w: w, h: t.style.size + t.style.size/4}
}
