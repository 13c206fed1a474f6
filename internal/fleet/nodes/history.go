package nodes

import (
	"fmt"
	"io"
	"slices"
	"time"

	"gdr-features/internal/journal"
	"gdr-features/internal/show"
)

// History writes the changes of a node, the newest first.
func History(w io.Writer, n *Node, s Style) error {
	return Rows(w, []Column[journal.Change]{
		{Heading: "WHEN", Cell: func(c *journal.Change) string { return ago(s.Now.Sub(c.Time)) }},
		{Heading: "TIME", Cell: func(c *journal.Change) string { return c.Time.UTC().Format(time.RFC3339) }},
		{Heading: "WHAT", Cell: func(c *journal.Change) string { return c.Name }},
		{Heading: "OLD", Cell: func(c *journal.Change) string { return c.Old }},
		{Heading: "NEW", Cell: func(c *journal.Change) string { return c.New }},
	}, n.newest(), s)
}

// HistoryJSON writes the same.
func HistoryJSON(w io.Writer, n *Node) error {
	type change struct {
		Time time.Time `json:"time"`
		Name string    `json:"name"`
		Old  string    `json:"old"`
		New  string    `json:"new"`
	}
	out := struct {
		Node      string   `json:"node"`
		Namespace string   `json:"namespace"`
		Changes   []change `json:"changes"`
	}{n.Name, n.Namespace, []change{}}
	for _, c := range n.newest() {
		out.Changes = append(out.Changes, change{c.Time.UTC(), c.Name, c.Old, c.New})
	}
	return show.JSON(w, out)
}

func (n *Node) newest() []journal.Change {
	all := slices.Clone(n.Changes)
	slices.Reverse(all)
	return all
}

// ago is "2 h ago", in the largest unit of which there are at least two; "now" also for a time
// that a clock ahead of ours has written.
func ago(d time.Duration) string {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		name string
		of   time.Duration
	}{{"d", day}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}} {
		if n := d / unit.of; n >= 2 {
			return fmt.Sprintf("%d %s ago", n, unit.name)
		}
	}
	return "now"
}
