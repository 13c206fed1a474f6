package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Machines that are looked at: the README's with 8 GPUs and 12 NICs, one with
// switches below switches and a cause why it is not ready, one without switches
// whose ports are down, one with adapters that do not count, one with a level
// that is not known.
var shown = []struct {
	machine, state string
	gpus, nics     int
}{
	{example, "ready", 8, 12},
	{"dgx-a100-nps4", "closed-no-peermem", 8, 11},
	{"rhel-gb200-cdmm-off-and-on", "ports-down", 4, 8},
	{"b200-nvlink-management", "ports-down", 4, 8},
	{"numa-unknown", "kallsyms-empty", 1, 2},
}

//go:embed measure.js
var measure string

// measured is what measure.js gives.
type measured struct {
	Texts, Rects, Scripts int
	Faults                []string
	Least, Smallest       float64
	Dark                  bool
}

// window starts a browser for a test.
func window(t *testing.T) context.Context {
	t.Helper()
	ctx, stop, err := start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func laidOut(t *testing.T) *machines {
	t.Helper()
	m, err := newMachines(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func form(t *testing.T, m *machines, machine, state, form string) string {
	t.Helper()
	file, err := m.topo(t.Context(), machine, state, form)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// listener collects what a page must not do: requests, words on the console.
type listener struct {
	mu     sync.Mutex
	events []string
}

func listen(ctx context.Context, file string) *listener {
	l := &listener{}
	note := func(format string, args ...any) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.events = append(l.events, fmt.Sprintf(format, args...))
	}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if e.Request.URL != "file://"+file {
				note("requested %s", e.Request.URL)
			}
		case *runtime.EventConsoleAPICalled:
			note("console: %s", e.Type)
		case *runtime.EventExceptionThrown:
			note("exception: %s", e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			note("log: %s", e.Entry.Text)
		}
	})
	return l
}

func (l *listener) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// open shows a file in a color scheme.
func open(ctx context.Context, t *testing.T, file, scheme string) {
	t.Helper()
	if err := chromedp.Run(ctx, network.Enable(), log.Enable(), seen(scheme, 900, 1), chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
}

// TestShown measures pages and pictures in both color schemes: all text can be
// read, nothing overlaps, nothing is wider than the window, nothing is loaded.
func TestShown(t *testing.T) {
	ctx := window(t)
	m := laidOut(t)
	for _, s := range shown {
		for _, kind := range []string{"html", "svg"} {
			file := form(t, m, s.machine, s.state, kind)
			for _, scheme := range []string{"light", "dark"} {
				t.Run(s.machine+"/"+kind+"/"+scheme, func(t *testing.T) {
					tab, closeTab := chromedp.NewContext(ctx)
					defer closeTab()
					events := listen(tab, file)
					open(tab, t, file, scheme)
					var got measured
					if err := chromedp.Run(tab, chromedp.Evaluate(measure, &got)); err != nil {
						t.Fatal(err)
					}
					for _, fault := range got.Faults {
						t.Error(fault)
					}
					if got.Texts < 5*(s.gpus+s.nics) || got.Rects < 2*(s.gpus+s.nics) || got.Scripts != 0 || got.Dark != (scheme == "dark") {
						t.Errorf("%+v", got)
					}
					if heard := events.heard(); len(heard) > 0 {
						t.Error(heard)
					}
					t.Logf("%d texts, the smallest %v pixels, the least contrast %.1f", got.Texts, got.Smallest, got.Least)
				})
			}
		}
	}
}

// TestMeasureSees: a page with every fault is found out.
func TestMeasureSees(t *testing.T) {
	ctx := window(t)
	file := filepath.Join(t.TempDir(), "faulty.html")
	const faulty = `<!DOCTYPE html><title>x</title><body style="background:#fff"><p style="font-size:9px">small</p><p style="color:#999">pale</p>
<div class="scroll" style="overflow:auto;width:100px"><div style="width:300px">wide</div></div><div style="width:2000px">page</div>
<svg width="300" height="100"><rect class="box" x="0" y="0" width="50" height="30" fill="#eee"/><rect x="40" y="10" width="50" height="30" fill="#eee"/>
<text x="5" y="70">over</text><text x="9" y="72">lapping</text><text x="30" y="25" font-size="12">out of its box</text></svg></body>`
	if err := os.WriteFile(file, []byte(faulty), 0o600); err != nil {
		t.Fatal(err)
	}
	open(ctx, t, file, "light")
	var got measured
	if err := chromedp.Run(ctx, chromedp.Evaluate(measure, &got)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"small" at`, `"pale" at`, "DIV of 100", "the page is 20", "rectangles", `"lapping" at`, "crosses a box"} {
		if !slices.ContainsFunc(got.Faults, func(fault string) bool { return strings.Contains(fault, want) }) {
			t.Errorf("%s is not among %q", want, got.Faults)
		}
	}
}

// pairs is what topo -o json tells of a machine.
type pairs struct {
	GPUs []struct {
		Address  string
		Eligible bool
	}
	NICs []struct {
		Address, RDMA string
		Eligible      bool
	}
	Pairs []struct{ GPU, NIC, RDMA, Level string }
}

// nearest finds, for each GPU by its id in the page, the ids of those that must
// stay bright with it.
func nearest(t *testing.T, file string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var p pairs
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	order := []string{"PIX", "PXB", "PHB", "NODE", "SYS"}
	near := map[string][]string{}
	for i := range p.GPUs {
		id, best := fmt.Sprintf("g%d", i), len(order)
		for j := range p.NICs {
			if p.NICs[j].Eligible {
				if at := slices.Index(order, p.Pairs[i*len(p.NICs)+j].Level); at >= 0 {
					best = min(best, at)
				}
			}
		}
		near[id] = []string{id}
		for j := range p.NICs {
			if p.NICs[j].Eligible && p.Pairs[i*len(p.NICs)+j].Level == order[best] {
				near[id] = append(near[id], fmt.Sprintf("n%d", j))
			}
		}
		slices.Sort(near[id])
	}
	for id, list := range near {
		for _, other := range list {
			if other[0] == 'n' && !slices.Contains(near[other], id) {
				near[other] = append(near[other], id)
			}
		}
	}
	for j := range p.NICs {
		id := fmt.Sprintf("n%d", j)
		near[id] = append(near[id], id)
		slices.Sort(near[id])
	}
	return near
}

// TestGraphviz: the real dot takes the text of every machine.
func TestGraphviz(t *testing.T) {
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Fatal("no dot: apt-get install graphviz")
	}
	files, err := filepath.Glob(filepath.Join(repository, "testdata/golden/*/topo.dot"))
	if err != nil || len(files) < 14 {
		t.Fatalf("files: %d, %v", len(files), err)
	}
	for _, file := range files {
		var words strings.Builder
		draw := exec.CommandContext(t.Context(), dot, "-Tsvg", file)
		draw.Stderr = &words
		out, err := draw.Output()
		if err != nil || words.Len() > 0 || !strings.Contains(string(out), "</svg>") {
			t.Errorf("%s: %v\n%s", file, err, words.String())
		}
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
		t.Errorf("%dx%d, and docs/topo.png is %dx%d: make screenshot", taken.Width, taken.Height, committed.Width, committed.Height)
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
