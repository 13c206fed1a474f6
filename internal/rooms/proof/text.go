package proof

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"gdr-features/internal/sanitize"
	"gdr-features/tristate"
)

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
		fmt.Fprintln(t, "GPU\tNIC\tWAY\tGPU MEM\tGBIT/S\t%HOST\t%PORT\t%PCIE\tPROVEN")
	}
	var b strings.Builder
	for i := range r.Lines {
		l := &r.Lines[i]
		words := []string{l.GPU, l.NIC, string(l.Way), l.sides(), number("%.2f", l.Gbps)}
		for _, share := range []float64{l.Share, l.OfPort, l.OfPCIe} {
			words = append(words, number("%.0f", share*100))
		}
		for _, word := range words {
			fmt.Fprintf(t, "%s\t", cmp.Or(sanitize.Terminal(word), none))
		}
		fmt.Fprintln(t, l.State)
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
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", sanitize.Terminal(note))
	}
	_, err := fmt.Fprintf(w, "%s\nproven: %s\n", b.String(), r.sentence())
	return err
}

// number writes one that is known.
func number(format string, n float64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

// sides are those with GPU memory, "" where that of one is not known.
func (l *Line) sides() string {
	return map[[2]string]string{{"gpu", "gpu"}: "both", {"gpu", "host"}: "server", {"host", "gpu"}: "client"}[[2]string{l.Server, l.Client}]
}

func (r *Result) sentence() string {
	n := r.count()
	of := fmt.Sprintf("(transfers with GPU memory: %d true, %d false, %d unknown)", n[tristate.True], n[tristate.False], n[tristate.Unknown])
	switch {
	case len(n) == 0:
		return "unknown, there is no transfer with GPU memory"
	case r.State == tristate.Unknown && n[tristate.Unknown] == 0:
		return "unknown, not every GPU was measured " + of
	}
	return r.State.String() + " " + of
}
