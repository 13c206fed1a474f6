package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focused is the element that has the focus, whether that shows, and which
// devices are bright.
type focused struct {
	ID     string
	Ring   bool
	Bright []string
}

const whoIsFocused = `(() => {
  const e = document.activeElement;
  const bright = [...document.querySelectorAll("svg [tabindex]")].filter(x => getComputedStyle(x).opacity === "1").map(x => x.id);
  return {id: e.id, ring: e.querySelector?.(".box") ? parseFloat(getComputedStyle(e.querySelector(".box")).strokeWidth) >= 2 : false, bright: bright.sort()};
})()`

// TestKeyboard: the Tab key reaches every GPU and NIC once, shows where it is,
// and leaves bright what is nearest; a click does the same.
func TestKeyboard(t *testing.T) {
	ctx := window(t)
	m := laidOut(t)
	for _, s := range shown {
		t.Run(s.machine, func(t *testing.T) {
			tab, closeTab := chromedp.NewContext(ctx)
			defer closeTab()
			file := form(t, m, s.machine, s.state, "html")
			near := nearest(t, form(t, m, s.machine, s.state, "json"))
			open(tab, t, file, "light")
			check := func(f focused) {
				if !f.Ring || !slices.Equal(f.Bright, near[f.ID]) {
					t.Errorf("with the focus on %s (ring %v) %v are bright, want %v", f.ID, f.Ring, f.Bright, near[f.ID])
				}
			}
			reached := map[string]bool{}
			for range s.gpus + s.nics {
				var f focused
				if err := chromedp.Run(tab, chromedp.KeyEvent(kb.Tab), chromedp.Evaluate(whoIsFocused, &f)); err != nil {
					t.Fatal(err)
				}
				check(f)
				reached[f.ID] = true
			}
			if len(reached) != s.gpus+s.nics || len(near) != s.gpus+s.nics {
				t.Errorf("reached %d of %d GPUs and %d NICs", len(reached), s.gpus, s.nics)
			}
			var f focused
			last := fmt.Sprintf("g%d", s.gpus-1)
			if err := chromedp.Run(tab, chromedp.Click("#"+last, chromedp.ByQuery), chromedp.Evaluate(whoIsFocused, &f)); err != nil {
				t.Fatal(err)
			}
			if check(f); f.ID != last {
				t.Errorf("a click on %s went to %q", last, f.ID)
			}
		})
	}
}

// TestScreenReader: the accessibility tree names the picture, every GPU and NIC
// in it, the tables, their heads and cells.
func TestScreenReader(t *testing.T) {
	ctx := window(t)
	m := laidOut(t)
	for _, s := range shown {
		t.Run(s.machine, func(t *testing.T) {
			tab, closeTab := chromedp.NewContext(ctx)
			defer closeTab()
			open(tab, t, form(t, m, s.machine, s.state, "html"), "light")
			var nodes []*accessibility.Node
			err := chromedp.Run(tab, accessibility.Enable(), chromedp.ActionFunc(func(ctx context.Context) (err error) {
				nodes, err = accessibility.GetFullAXTree().Do(ctx)
				return err
			}))
			if err != nil {
				t.Fatal(err)
			}
			names := map[string][]string{}
			for _, n := range nodes {
				if !n.Ignored {
					role := value(n.Role)
					names[role] = append(names[role], value(n.Name))
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
			count("heading", "GPUDirect RDMA: ", 1)
			count("group", "PCI tree of ", 1)
			count("image", "Nearest NICs, at ", s.gpus)
			count("table", "How near each GPU is to each NIC", 1)
			count("table", "What each GPU and NIC is", 1)
			count("table", "What GPUDirect RDMA needs", 1)
			count("rowheader", "GPU", 2*s.gpus)
			count("columnheader", "mlx5_", s.nics)
			cells := 0
			for _, level := range []string{"PIX", "PXB", "PHB", "NODE", "SYS", "?"} {
				for _, n := range names["cell"] {
					if n == level {
						cells++
					}
				}
			}
			if cells != s.gpus*s.nics {
				t.Errorf("%d cells name a level, want %d", cells, s.gpus*s.nics)
			}
			devices := 0
			for _, n := range names["image"] {
				switch {
				case n == "":
					t.Error("an image without a name")
				case strings.Contains(n, "driver"): // the others are switches
					devices++
				}
			}
			if devices != s.gpus+s.nics {
				t.Errorf("%d GPUs and NICs among the images %q", devices, names["image"])
			}
		})
	}
}

func value(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var s string
	_ = json.Unmarshal(v.Value, &s) // what is no string has no name
	return s
}
