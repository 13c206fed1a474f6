// Package mechanism is the table of how frameworks register GPU memory with NICs: by a peer
// memory client of the kernel (nvidia-peermem), or by DMA-BUF. A node has one of these ways,
// or both; where framework and node share none, registration fails, or the framework copies
// through host memory. It is pure: rows are data, each cell with its source.
package mechanism

import (
	"slices"
	"strings"

	"gdr-features/internal/version"
	"gdr-features/tristate"
)

// Cell is one way of one framework.
type Cell struct {
	// Can reports whether the framework has this way; Unknown where no source says so, or where
	// builds of one version differ.
	Can tristate.State
	// With is the variable without which it does not use the way, or where Can is Unknown, with
	// which every build uses it. Without is the one with which it does not. "NAME=0" or "NAME=1"
	// each; "" for none.
	With, Without string
	// Forced is a variable before which the others do not count, and Then what the way is with
	// it; "" for none.
	Forced string
	Then   tristate.State
	// Source is where that was read, "repository file@commit"; "" only where Can is Unknown.
	Source string
}

// Row is what holds for some versions of a framework.
type Row struct {
	// Framework is the name, as in --for.
	Framework string
	// From is the first version of the row, and Before the first of the next row; "" for
	// none.
	From, Before string
	// Peermem and DMABuf are the two ways.
	Peermem, DMABuf Cell
	// Through are the frameworks whose ways it uses, where it has none of its own.
	Through []string
	// Note is what else decides, one sentence; "" for nothing.
	Note string
}

// Versions names the versions of a row.
func (r *Row) Versions() string {
	switch {
	case r.From == "" && r.Before == "":
		return "all"
	case r.Before == "":
		return r.From + " and newer"
	case r.From == "":
		return "before " + r.Before
	}
	return r.From + " to before " + r.Before
}

// For returns the rows that may hold for a version of a framework: one, or none for a version
// that the table does not know; for "", which is an unknown version, all of the framework.
func For(framework, version string) (rows []*Row) {
	for i := range Rows {
		r := &Rows[i]
		if r.Framework == framework && (version == "" || r.has(version)) {
			rows = append(rows, r)
		}
	}
	return rows
}

func (r *Row) has(v string) bool {
	return (r.From == "" || version.Compare(v, r.From) >= 0) && (r.Before == "" || version.Compare(v, r.Before) < 0)
}

// Names are those of all frameworks, in the order of the table.
func Names() []string {
	var names []string
	for i := range Rows {
		if !slices.Contains(names, Rows[i].Framework) {
			names = append(names, Rows[i].Framework)
		}
	}
	return names
}

// Variables are the names of those that decide about ways.
func Variables() []string {
	var names []string
	for i := range Rows {
		peermem, dmabuf := &Rows[i].Peermem, &Rows[i].DMABuf
		for _, v := range [...]string{peermem.With, peermem.Without, peermem.Forced, dmabuf.With, dmabuf.Without, dmabuf.Forced} {
			if name, _, _ := strings.Cut(v, "="); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Ways are the two ways, of a framework or of a node.
type Ways struct{ Peermem, DMABuf tristate.State }

// Ways returns which ways a row has with these variables of the environment.
func (r *Row) Ways(variables map[string]string) Ways {
	return Ways{r.Peermem.now(variables), r.DMABuf.now(variables)}
}

// OnlyDMABuf reports whether DMA-BUF is known to be the only way.
func (w Ways) OnlyDMABuf() bool { return w.Peermem == tristate.False && w.DMABuf == tristate.True }

// Shared reports whether a framework has a way that the node has.
func (w Ways) Shared(node Ways) tristate.State {
	return tristate.Or(tristate.And(w.Peermem, node.Peermem), tristate.And(w.DMABuf, node.DMABuf))
}

// now reports whether a way is used with these variables.
func (c *Cell) now(variables map[string]string) tristate.State {
	switch {
	case c.Forced != "" && set(variables, c.Forced):
		return c.Then
	case c.Can == tristate.False, c.Without != "" && set(variables, c.Without):
		return tristate.False
	case c.With != "" && set(variables, c.With):
		return tristate.True
	case c.With != "" && c.Can == tristate.True:
		return tristate.False
	}
	return c.Can
}

// set reports whether a variable has a value, or another word of the same meaning.
func set(variables map[string]string, wanted string) bool {
	name, want, _ := strings.Cut(wanted, "=")
	value := strings.ToLower(strings.TrimSpace(variables[name]))
	words := map[string][]string{"0": {"0", "false", "off", "no", "n"}, "1": {"1", "true", "on", "yes", "y"}}
	return slices.Contains(words[want], value)
}

// Enable returns the variable that makes a framework use a way that the node has, "" where
// there is none.
func (r *Row) Enable(node Ways) string {
	for _, way := range [...]struct {
		cell *Cell
		node tristate.State
	}{{&r.DMABuf, node.DMABuf}, {&r.Peermem, node.Peermem}} {
		if way.node != tristate.True || way.cell.Can == tristate.False {
			continue
		}
		if way.cell.With != "" {
			return way.cell.With
		}
		against := way.cell.Without
		if against == "" && way.cell.Then != tristate.True {
			against = way.cell.Forced
		}
		if name, value, _ := strings.Cut(against, "="); name != "" {
			return name + "=" + map[string]string{"0": "1", "1": "0"}[value]
		}
	}
	return ""
}
