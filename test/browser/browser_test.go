package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
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

// states are other states than "ready" that machines are looked at in: a cause why one
// is not ready, ports that are down, a fact that cannot be read.
var states = map[string]string{
	"dgx-a100-nps4":              "closed-no-peermem",
	"rhel-gb200-cdmm-off-and-on": "ports-down",
	"b200-nvlink-management":     "ports-down",
	"numa-unknown":               "kallsyms-empty",
}

// shown is a machine in a state.
type shown struct{ name, description, state string }

// everyMachine are those of the tests, and the largest that is shown in full.
func everyMachine(t *testing.T) []shown {
	t.Helper()
	files, err := filepath.Glob(description("*"))
	if err != nil || len(files) < 25 {
		t.Fatalf("%d machines, %v", len(files), err)
	}
	list := []shown{{"largest", largest(t), "ready"}}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		list = append(list, shown{name, file, cmp.Or(states[name], "ready")})
	}
	return list
}

// largest describes a machine of 64 GPUs and 64 NICs, each four in a tree of switches of
// their own, with long names.
func largest(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("nodes 2\n")
	line := func(indent, domain, bus, device int, what string) {
		fmt.Fprintf(&text, "%*s%04x:%02x:%02x.0 %s\n", indent, "", domain, bus, device, what)
	}
	for i := range 16 {
		fmt.Fprintf(&text, "pci%04x:00 numa=%d\n", i, i/8)
		line(2, i, 0, 1, "port 8086:352a")
		line(4, i, 1, 0, "switch 1000:c030")
		for j := range 4 {
			bus := 16 + 8*j
			line(6, i, 2, j, "port 1000:c030")
			line(8, i, bus, 0, "switch 1000:c030")
			line(10, i, bus+1, 0, "port 1000:c030")
			line(12, i, bus+2, 0, "gpu 10de:2330")
			line(10, i, bus+1, 1, "port 1000:c030")
			line(12, i, bus+3, 0, fmt.Sprintf("ib 15b3:1021 rdma=rocep%ds%df0np0", i, j))
		}
	}
	file := filepath.Join(t.TempDir(), "largest.txt")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

//go:embed measure.js
var measure string

// measured is what measure.js gives.
type measured struct {
	Texts, Scripts   int
	Faults, Scrolled []string
	GPUs, NICs       []string // names in boxes, sorted
	Heads            []string // names above the matrix
	Levels           [][]string
	Least, Smallest  float64
	Dark             bool
}

// window starts a browser for a test.
func window(t *testing.T) context.Context {
	t.Helper()
	ctx, stop, err := start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
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

func (s shown) topo(t *testing.T, m *machines, format string) string {
	t.Helper()
	file, err := m.topo(t.Context(), s.description, s.state, format)
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

// open shows a file in a view.
func open(ctx context.Context, t *testing.T, file string, v view) {
	t.Helper()
	if err := chromedp.Run(ctx, network.Enable(), log.Enable(), v.set(), chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
}

// TestShown measures the page of every machine in every view: all text can be read,
// nothing overlaps or is cut off, nothing is loaded, and the boxes and the matrix hold
// what topo -o json says. Only tables that are wider than the window scroll.
func TestShown(t *testing.T) {
	ctx := window(t)
	m := laidOut(t)
	for _, s := range everyMachine(t) {
		t.Run(s.name, func(t *testing.T) {
			file, want := s.topo(t, m, "html"), read(t, s.topo(t, m, "json"))
			tab, closeTab := chromedp.NewContext(ctx)
			defer closeTab()
			events := listen(tab, file)
			views := []view{light, dark, phone}
			if s.name != "largest" && s.name != "aws-p5-h100" { // 64 columns, and 32, are too many for a sheet
				views = append(views, paper)
			}
			for _, v := range views {
				open(tab, t, file, v)
				var got measured
				if err := chromedp.Run(tab, chromedp.Evaluate(measure, &got)); err != nil {
					t.Fatal(err)
				}
				for _, fault := range got.Faults {
					t.Errorf("%s: %s", v.name, fault)
				}
				if len(got.Scrolled) > 0 && v.width == light.width && s.name != "largest" {
					t.Errorf("%s: tables scroll: %v", v.name, got.Scrolled)
				}
				if got.Scripts != 0 || got.Dark != (v == dark || v == phone) {
					t.Errorf("%s: %d scripts, dark: %v", v.name, got.Scripts, got.Dark)
				}
				if heard := events.heard(); len(heard) > 0 {
					t.Errorf("%s: %v", v.name, heard)
				}
				want.check(t, got)
			}
		})
	}
}

// check compares a page with the machine.
func (w *machine) check(t *testing.T, got measured) {
	t.Helper()
	gpus, nics := w.names()
	heads := nics
	if len(gpus) == 0 || len(nics) == 0 {
		heads = nil
	}
	if !slices.Equal(got.Heads, heads) {
		t.Errorf("the matrix has the columns %v, want %v", got.Heads, heads)
	}
	if levels := w.levels(); !slices.EqualFunc(got.Levels, levels, slices.Equal) {
		t.Errorf("the matrix is %v, want %v", got.Levels, levels)
	}
	slices.Sort(gpus)
	slices.Sort(nics)
	if !slices.Equal(got.GPUs, gpus) || !slices.Equal(got.NICs, nics) {
		t.Errorf("boxes for %v and %v, want %v and %v", got.GPUs, got.NICs, gpus, nics)
	}
}

// TestMeasureSees: every kind of fault in a page is found.
func TestMeasureSees(t *testing.T) {
	ctx := window(t)
	file := filepath.Join(t.TempDir(), "faulty.html")
	const faulty = `<!DOCTYPE html><title>x</title><style>.device{width:50px;height:30px;position:absolute;top:300px}</style>
<body style="background:#fff"><p style="font-size:9px">small</p><p style="color:#999">pale</p>
<p style="overflow:hidden;width:100px;white-space:nowrap">a text that is cut off somewhere</p>
<div class="scroll" tabindex="0" aria-label="wide" style="overflow:auto;width:100px"><div style="width:300px">wide</div></div>
<div style="width:2000px;text-align:right">page</div><p>over</p><p style="margin-top:-30px">lapping</p>
<div class="device" style="left:0">a</div><div class="device" style="left:40px;top:310px">b</div>
<div class="device" style="left:200px;white-space:nowrap">out of its box</div></body>`
	if err := os.WriteFile(file, []byte(faulty), 0o600); err != nil {
		t.Fatal(err)
	}
	open(ctx, t, file, light)
	var got measured
	if err := chromedp.Run(ctx, chromedp.Evaluate(measure, &got)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"small" at`, `"pale" at`, "P of 100 pixels cuts off", `"page" at`, "the page is 20", "boxes DIV device", `"lapping" at`, `"out of its box" at`,
	} {
		if !slices.ContainsFunc(got.Faults, func(fault string) bool { return strings.Contains(fault, want) }) {
			t.Errorf("%s is not among %q", want, got.Faults)
		}
	}
	if !slices.Equal(got.Scrolled, []string{"wide"}) {
		t.Errorf("scrolled: %q", got.Scrolled)
	}
}

// machine is what topo -o json tells.
type machine struct {
	GPUs []struct {
		Address  string
		Eligible bool
	}
	NICs []struct {
		Address, RDMA, Role string
		Eligible            bool
	}
	Pairs []struct{ GPU, NIC, RDMA, Level string }
}

func read(t *testing.T, file string) *machine {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var m machine
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return &m
}

// names are those of the GPUs and of the NICs in their order.
func (w *machine) names() (gpus, nics []string) {
	for i := range w.GPUs {
		gpus = append(gpus, fmt.Sprintf("GPU%d", i))
	}
	for _, n := range w.NICs {
		nics = append(nics, cmp.Or(n.RDMA, strings.TrimPrefix(n.Address, "0000:")))
	}
	return gpus, nics
}

// levels has a row a GPU, a column a NIC.
func (w *machine) levels() [][]string {
	var rows [][]string
	for i, p := range w.Pairs {
		if i%len(w.NICs) == 0 {
			rows = append(rows, nil)
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], cmp.Or(p.Level, "?"))
	}
	return rows
}

// nearest returns the level of a GPU with its near NICs, "" for an unknown one, and the
// indexes of those: the eligible ones at its nearest level, without those that have a role
// if there are others.
func (w *machine) nearest(gpu int) (level string, nics []int) {
	if !w.GPUs[gpu].Eligible {
		return "", nil
	}
	for _, role := range []bool{false, true} {
		for _, level := range []string{"PIX", "PXB", "PHB", "NODE", "SYS"} {
			for j, l := range w.levels()[gpu] {
				if n := w.NICs[j]; n.Eligible && l == level && (n.Role != "") == role {
					nics = append(nics, j)
				}
			}
			if len(nics) > 0 {
				return level, nics
			}
		}
	}
	return "", nil
}
