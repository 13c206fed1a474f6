package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// accessible are the machines whose pages are stepped through and read aloud: the
// README's, one with switches below switches, one whose ports are down, one with NICs
// that do not take part, one with a level that is not known.
func accessible(t *testing.T) []shown {
	t.Helper()
	return slices.DeleteFunc(everyMachine(t), func(s shown) bool { return s.name != example && states[s.name] == "" })
}

// focused is the box that has the focus, whether that shows, and which boxes are bright.
type focused struct {
	ID     string
	Ring   bool
	Bright []string
}

const whatIsFocused = `(() => {
  const e = document.activeElement;
  const bright = [...document.querySelectorAll("li[tabindex]")].filter(x => getComputedStyle(x).opacity === "1").map(x => x.id);
  return {id: e.id, ring: parseFloat(getComputedStyle(e).outlineWidth) >= 2, bright: bright.sort()};
})()`

// bright gives, for each box by its id, the ids of those that stay bright with it.
func (w *machine) bright() map[string][]string {
	bright := map[string][]string{}
	for j := range w.NICs {
		id := fmt.Sprintf("n%d", j)
		bright[id] = []string{id}
	}
	for i := range w.GPUs {
		id := fmt.Sprintf("g%d", i)
		bright[id] = []string{id}
		_, nics := w.nearest(i)
		for _, j := range nics {
			other := fmt.Sprintf("n%d", j)
			bright[id] = append(bright[id], other)
			bright[other] = append(bright[other], id)
		}
	}
	for _, list := range bright {
		slices.Sort(list)
	}
	return bright
}

// TestKeyboard: the Tab key reaches every GPU and NIC, shows where it is, and
// leaves bright what is nearest; a click does the same.
func TestKeyboard(t *testing.T) {
	ctx := window(t)
	m := laidOut(t)
	for _, s := range accessible(t) {
		t.Run(s.name, func(t *testing.T) {
			tab, closeTab := chromedp.NewContext(ctx)
			defer closeTab()
			want := read(t, s.topo(t, m, "json"))
			bright := want.bright()
			open(tab, t, s.topo(t, m, "html"), light)
			check := func(f focused) {
				if !f.Ring || !slices.Equal(f.Bright, bright[f.ID]) {
					t.Errorf("with the focus on %s (ring %v) %v are bright, want %v", f.ID, f.Ring, f.Bright, bright[f.ID])
				}
			}
			reached := map[string]bool{}
			const links = 40 // at most, before the last of them
			for range len(bright) + links {
				var f focused
				if err := chromedp.Run(tab, chromedp.KeyEvent(kb.Tab), chromedp.Evaluate(whatIsFocused, &f)); err != nil {
					t.Fatal(err)
				}
				if f.ID == "" { // a link to what a code means
					continue
				}
				check(f)
				if reached[f.ID] = true; len(reached) == len(bright) {
					break
				}
			}
			if len(reached) != len(bright) {
				t.Errorf("reached %d of %d GPUs and NICs", len(reached), len(bright))
			}
			var f focused
			last := fmt.Sprintf("g%d", len(want.GPUs)-1)
			if err := chromedp.Run(tab, chromedp.Click("#"+last, chromedp.ByQuery), chromedp.Evaluate(whatIsFocused, &f)); err != nil {
				t.Fatal(err)
			}
			if check(f); f.ID != last {
				t.Errorf("a click on %s went to %q", last, f.ID)
			}
		})
	}
}

// TestScreenReader: the accessibility tree names headings, every GPU and NIC in the PCI
// tree with what is nearest to it, the tables, their heads and cells.
func TestScreenReader(t *testing.T) {
	ctx := window(t)
	m := laidOut(t)
	for _, s := range accessible(t) {
		t.Run(s.name, func(t *testing.T) {
			tab, closeTab := chromedp.NewContext(ctx)
			defer closeTab()
			open(tab, t, s.topo(t, m, "html"), light)
			var tree accessibilityTree
			err := chromedp.Run(tab, accessibility.Enable(), chromedp.ActionFunc(func(ctx context.Context) error {
				return cdp.Execute(ctx, accessibility.CommandGetFullAXTree, accessibility.GetFullAXTree(), &tree)
			}))
			if err != nil {
				t.Fatal(err)
			}
			names := map[string][]string{}
			for _, n := range tree.Nodes {
				if role := fmt.Sprint(n.Role.Value); !n.Ignored {
					names[role] = append(names[role], fmt.Sprint(n.Name.Value))
				}
			}
			count := func(role, name string, want int) {
				t.Helper()
				got := 0
				for _, n := range names[role] {
					if strings.Contains(n, name) {
						got++
					}
				}
				if got != want {
					t.Errorf("%d of role %s named %q, want %d: %q", got, role, name, want, names[role])
				}
			}
			want := read(t, s.topo(t, m, "json"))
			gpus, nics := want.names()
			count("heading", "GPUDirect RDMA: ", 1)
			for _, heading := range []string{"PCI tree", "Matrix", "Checks", "Devices"} {
				count("heading", heading, 1)
			}
			count("table", "How near each GPU is to each NIC", 1)
			count("table", "What each GPU and NIC is", 1)
			count("table", "What GPUDirect RDMA needs", 1)
			count("region", "Matrix", 1)
			count("rowheader", "GPU", 2*len(gpus))
			for _, name := range nics {
				if !slices.Contains(names["columnheader"], name) || !slices.Contains(names["rowheader"], name) {
					t.Errorf("%s is the head of no column or of no row", name)
				}
			}
			joined := 0 // GPUs and NICs with others nearest to them
			for _, list := range want.bright() {
				if len(list) > 1 {
					joined++
				}
			}
			unknown := 0 // GPUs whose nearest NICs are not known
			for i, g := range want.GPUs {
				if level, _ := want.nearest(i); g.Eligible && level == "" {
					unknown++
				}
			}
			count("StaticText", "Nearest at ", joined+unknown)
			cells := 0
			for _, level := range []string{"PIX", "PXB", "PHB", "NODE", "SYS", "?"} {
				for _, n := range names["cell"] {
					if n == level {
						cells++
					}
				}
			}
			if cells != len(want.Pairs) {
				t.Errorf("%d cells name a level, want %d", cells, len(want.Pairs))
			}
		})
	}
}

// accessibilityTree is what is read of Chromium's answer. Its own type would refuse properties
// that a newer Chromium adds.
type accessibilityTree struct {
	Nodes []struct {
		Ignored bool              `json:"ignored"`
		Role    accessibilityText `json:"role"`
		Name    accessibilityText `json:"name"`
	} `json:"nodes"`
}

type accessibilityText struct {
	Value any `json:"value"`
}
