package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// source is a reference to a data source.
type source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type panel struct {
	ID    int    `json:"id"`
	Type  string `json:"type"`
	Title string `json:"title"`
	Grid  struct {
		H, W, X, Y int
	} `json:"gridPos"`
	Source  *source `json:"datasource"`
	Targets []struct {
		RefID  string  `json:"refId"`
		Expr   string  `json:"expr"`
		Source *source `json:"datasource"`
	} `json:"targets"`
}

type dashboard struct {
	UID        string `json:"uid"`
	Schema     int    `json:"schemaVersion"`
	Templating struct {
		List []struct {
			Name   string  `json:"name"`
			Type   string  `json:"type"`
			Source *source `json:"datasource"`
			// The query of a variable is text or an object with text.
			Query      any    `json:"query"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

func load(t *testing.T) (d dashboard) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(read(t, filepath.Join(shipped, "dashboard.json"))))
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if decoder.More() {
		t.Fatal("something follows the dashboard")
	}
	return d
}

// chosen replaces the user's choices.
var chosen = strings.NewReplacer("$cluster", "c1", "$node", "n1", "$__rate_interval", "2m")

// dashboardExprs returns the expressions of all panels and of the variables.
func dashboardExprs(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	d := load(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all[fmt.Sprintf("panel %q, %s", p.Title, target.RefID)] = chosen.Replace(target.Expr)
		}
	}
	if len(all) < 10 {
		t.Fatalf("only %d expressions", len(all))
	}
	for _, v := range d.Templating.List {
		if values, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
			metric, label, _ := strings.Cut(strings.TrimSuffix(values, ")"), ", ")
			all["variable "+v.Name] = fmt.Sprintf("max by (%s) (%s)", label, metric)
		}
	}
	return all
}

// builtIn are the panels that every Grafana has.
var builtIn = []string{"row", "stat", "table", "timeseries", "state-timeline"}

// The dashboard needs no plugin and no data source of a certain name, and its
// panels do not overlap.
func TestDashboard(t *testing.T) {
	d := load(t)
	if d.UID != "gdr-features" || d.Schema != 42 { // the last schema before another API
		t.Errorf("uid %q, schema %d", d.UID, d.Schema)
	}
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name+" "+v.Type)
		if v.Type == "query" && (v.Source == nil || *v.Source != (source{"prometheus", "${datasource}"})) {
			t.Errorf("variable %s: data source %v", v.Name, v.Source)
		}
	}
	if !slices.Equal(names, []string{"datasource datasource", "cluster query", "node query"}) {
		t.Errorf("variables %v", names)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("panel %q: id %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		if !slices.Contains(builtIn, p.Type) {
			t.Errorf("panel %q: type %s", p.Title, p.Type)
		}
		if p.Type != "row" && (len(p.Targets) == 0 || p.Source == nil || *p.Source != (source{"prometheus", "${datasource}"})) {
			t.Errorf("panel %q: %d queries of %v", p.Title, len(p.Targets), p.Source)
		}
		for _, target := range p.Targets {
			if target.Source != nil {
				t.Errorf("panel %q, %s: a data source of its own", p.Title, target.RefID)
			}
		}
		place(t, p, taken)
	}
}

// place puts a panel on the grid of 24 columns.
func place(t *testing.T, p panel, taken map[[2]int]string) {
	t.Helper()
	g := p.Grid
	if g.H <= 0 || g.W <= 0 || g.X < 0 || g.X+g.W > 24 {
		t.Errorf("panel %q: place %+v", p.Title, g)
	}
	for x := g.X; x < g.X+g.W; x++ {
		for y := g.Y; y < g.Y+g.H; y++ {
			if other, ok := taken[[2]int{x, y}]; ok {
				t.Errorf("panel %q lies on %q", p.Title, other)
				return
			}
			taken[[2]int{x, y}] = p.Title
		}
	}
}
