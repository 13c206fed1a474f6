package joblog

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"gdr-features/internal/sanitize"
	"gdr-features/internal/show"
	"gdr-features/tristate"
)

// Text writes a line for each NIC of each rank, the notes, and a last sentence.
func (r *Result) Text(w io.Writer) error {
	if len(r.Ranks) > 0 {
		t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
		fmt.Fprintln(t, "NODE\tRANK\tGPU\tNETWORK\tNIC\tSENT\tRECEIVED\tGPUDIRECT RDMA")
		for _, a := range r.Ranks {
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%d\t%d\t%s\n", orDash(a.Node), a.Rank, orDash(a.GPU), sanitize.Terminal(a.Network), a.nic(), a.Sent, a.Received, r.gdr(&a))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	const most = 16
	for i := range r.Failures[:min(len(r.Failures), most)] {
		fmt.Fprintf(w, "failed: %s\n", r.Failures[i].line())
	}
	if n := len(r.Failures) - most; n > 0 {
		fmt.Fprintf(w, "failed: %d more, see -o json\n", n)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", sanitize.Terminal(note))
	}
	_, err := fmt.Fprintf(w, "GPUDirect RDMA: %s\n", r.sentence())
	return err
}

// line says who printed an error, how often, and what it means.
func (f *Failure) line() string {
	who := cmp.Or(f.Node, "a node")
	if f.Rank >= 0 {
		who += " rank " + strconv.Itoa(int(f.Rank))
	}
	text := sanitize.Terminal(who + ": " + f.Text)
	if f.Count > 1 {
		text += fmt.Sprintf(" (%d times)", f.Count)
	}
	if said := (&row{means: f.Note, code: f.Code}).said(); said != "" {
		text += ": " + said
	}
	return text
}

func (r *Result) sentence() string {
	over := show.Count(r.Channels, "channel") + " over a network"
	switch {
	case r.Failed && r.Direct > 0:
		asked := show.Count(r.Direct, "channel")
		if r.Direct < r.Channels {
			asked = fmt.Sprintf("%d of %s", r.Direct, show.Count(r.Channels, "channel"))
		}
		return "asked for by " + asked + ", and failed: " + r.Failures[0].short()
	case r.Failed && r.Channels == 0:
		return "failed before any channel: " + r.Failures[0].short()
	case r.Channels == 0:
		return "unknown, the log has no channel over a network"
	case r.Used == tristate.True:
		return "used by all channels over a network, " + strconv.Itoa(r.Channels)
	case r.Used == tristate.Unknown && r.Unread > 0:
		return fmt.Sprintf("unknown, %s of %s, and %s cannot be read", asked(r.Direct), over, show.Count(r.Unread, "line"))
	case r.Used == tristate.Unknown && len(r.Failures) > 0:
		return fmt.Sprintf("unknown, %s of %s, and there were errors: %s", asked(r.Direct), over, r.Failures[0].short())
	case r.Used == tristate.Unknown:
		return "unknown, the log has no channel between nodes"
	case r.Direct == 0:
		return "not used by any of " + over
	}
	return fmt.Sprintf("used by %d of %s", r.Direct, over)
}

func asked(n int) string { return "asked for by " + strconv.Itoa(n) }

// short is what failed, without who.
func (f *Failure) short() string { return cmp.Or(f.Note, sanitize.Terminal(f.Text)) }

// nic is the name of the NIC, or its index.
func (r *Rank) nic() string {
	return cmp.Or(sanitize.Terminal(r.NIC), "["+strconv.Itoa(r.Device)+"]")
}

// gdr says which of the channels have GPUDirect RDMA, and through whom.
func (r *Result) gdr(a *Rank) string {
	said := "yes"
	switch {
	case a.Direct == 0:
		said = "no"
	case a.GDR() != tristate.True:
		said = fmt.Sprintf("%d of %d", a.Direct, a.Sent+a.Received)
	}
	if a.Direct > 0 && r.Failed {
		said = strings.Replace("asked for "+said, " yes", "", 1)
	}
	if len(a.Through) > 0 {
		said += ", through the NIC of rank " + list(a.Through)
	}
	return said
}

func list(ranks []int) string {
	words := make([]string, len(ranks))
	for i, rank := range ranks {
		words[i] = strconv.Itoa(rank)
	}
	return few(words)
}

func orDash(s string) string { return cmp.Or(sanitize.Terminal(s), "-") }

type rankJSON struct {
	Rank
	GDR     tristate.State `json:"gdr"`
	Through []int          `json:"through"`
}

// JSON writes the same for programs.
func (r *Result) JSON(w io.Writer) error {
	out := struct {
		Used     tristate.State `json:"used"`
		Ranks    []rankJSON     `json:"ranks"`
		Failures []Failure      `json:"failures"`
		Notes    []string       `json:"notes"`
	}{r.Used, make([]rankJSON, 0, len(r.Ranks)), append([]Failure{}, r.Failures...), append([]string{}, r.Notes...)}
	for _, a := range r.Ranks {
		out.Ranks = append(out.Ranks, rankJSON{a, r.outcome(&a), append([]int{}, a.Through...)})
	}
	return show.JSON(w, out)
}
