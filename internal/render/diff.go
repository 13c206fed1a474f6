package render

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"gdr-features/internal/report"
	"gdr-features/internal/rooms/diff"
	"gdr-features/internal/show"
)

// Diff writes a line for each change, how many there are, and how much could not be read.
func Diff(w io.Writer, changes []diff.Change, before, after *report.Report) error {
	var t strings.Builder
	for i := range changes {
		c := &changes[i]
		if i == 0 {
			t.WriteString("FACT\tOF\tOLD\tNEW\n")
		}
		fmt.Fprintf(&t, "%s\t%s\t%s\t%s\n", c.Fact, cmp.Or(c.Of, "-"), cmp.Or(c.Old, "-"), nowOf(c))
	}
	end := "alike\n"
	if n := len(changes); n > 0 {
		end = "\n" + show.Count(n, "change") + "\n"
	}
	return write(w, columns(t.String()), end, unread("OLD", before), unread("NEW", after))
}

// nowOf is what is there now, with what the check finds.
func nowOf(c *diff.Change) string {
	if c.Detail == "" {
		return cmp.Or(c.New, "-")
	}
	return c.New + ": " + c.Detail
}

func unread(name string, r *report.Report) string {
	if len(r.Problems) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s could not be read; gdr-features --root %s check says which\n", name, show.Count(len(r.Problems), "fact"), name)
}

// DiffJSON writes the changes.
func DiffJSON(w io.Writer, changes []diff.Change, before, after *report.Report) error {
	type unread struct {
		Old int `json:"old"`
		New int `json:"new"`
	}
	return show.JSON(w, struct {
		Alike   bool          `json:"alike"`
		Changes []diff.Change `json:"changes"`
		// Problems counts the facts that could not be read.
		Problems unread `json:"problems"`
	}{len(changes) == 0, changes, unread{len(before.Problems), len(after.Problems)}})
}
