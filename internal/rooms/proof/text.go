package proof

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
	"gdr-features/tristate"
)

// JSON writes a plan as data.
func (p *Plan) JSON(w io.Writer) error { return show.JSON(w, p) }

// JSON writes a result as data.
func (r *Result) JSON(w io.Writer) error { return show.JSON(w, r) }

// Because adds what the node tells about the lines that are not true.
func (r *Result) Because(node func(l *Line) string) {
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Way != Host && l.State != tristate.True {
			l.Node = node(l)
		}
	}
}

// Text writes a line for each transfer, why those are not true that are not, and a last sentence.
func (r *Result) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(r.Lines) > 0 {
		fmt.Fprintln(t, "GPU\tNIC\tWAY\tSERVER\tCLIENT\tGBIT/S\tOF HOST\tPROVEN")
	}
	for i := range r.Lines {
		l := &r.Lines[i]
		rate, share := "-", "-"
		if l.Gbps > 0 {
			rate = fmt.Sprintf("%.2f", l.Gbps)
		}
		if l.Share > 0 {
			share = fmt.Sprintf("%.0f %%", l.Share*100)
		}
		for _, word := range []string{l.GPU, l.NIC, string(l.Way), l.Server, l.Client} {
			fmt.Fprintf(t, "%s\t", orDash(word))
		}
		fmt.Fprintf(t, "%s\t%s\t%v\n", rate, share, l.State)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for i := range r.Lines {
		l := &r.Lines[i]
		if l.Why != "" {
			fmt.Fprintf(&b, "\n%s: %v: %s\n", sanitize.Terminal(l.Name), l.State, sanitize.Terminal(l.Why))
		}
		if l.Node != "" {
			fmt.Fprintf(&b, "  check: %s\n", sanitize.Terminal(l.Node))
		}
		if l.Code != "" {
			fmt.Fprintf(&b, "  see: gdr-features explain %s\n", l.Code)
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", sanitize.Terminal(note))
	}
	_, err := fmt.Fprintf(w, "%s\nproven: %s\n", b.String(), r.sentence())
	return err
}

func orDash(word string) string { return cmp.Or(sanitize.Terminal(word), "-") }

// sentence is the answer about all GPUs.
func (r *Result) sentence() string {
	count := map[tristate.State]int{}
	all := 0
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Way != Host {
			count[l.State]++
			all++
		}
	}
	of := fmt.Sprintf("(transfers with GPU memory: %d true, %d false, %d unknown)", count[tristate.True], count[tristate.False], count[tristate.Unknown])
	switch {
	case all == 0:
		return "unknown, there is no transfer with GPU memory"
	case r.State == tristate.Unknown && count[tristate.Unknown] == 0:
		return "unknown, not every GPU was measured " + of
	}
	return r.State.String() + " " + of
}
