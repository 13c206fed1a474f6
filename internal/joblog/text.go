package joblog

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
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
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%d\t%d\t%s\n", orDash(a.Node), a.Rank, orDash(a.GPU), sanitize.Terminal(a.Network), a.nic(), a.Sent, a.Received, a.gdr())
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", sanitize.Terminal(note))
	}
	_, err := fmt.Fprintf(w, "GPUDirect RDMA: %s\n", r.sentence())
	return err
}

func (r *Result) sentence() string {
	switch {
	case r.Channels == 0:
		return "unknown, the log has no channel over a network"
	case r.Used == tristate.Unknown:
		return "unknown, the log has no channel between nodes"
	case r.Used == tristate.True:
		return "used by all channels over a network, " + strconv.Itoa(r.Channels)
	case r.Direct == 0:
		return "not used by any of " + show.Count(r.Channels, "channel") + " over a network"
	}
	return fmt.Sprintf("used by %d of %s over a network", r.Direct, show.Count(r.Channels, "channel"))
}

// nic is the name of the NIC, or its index.
func (r *Rank) nic() string {
	return cmp.Or(sanitize.Terminal(r.NIC), "["+strconv.Itoa(r.Device)+"]")
}

// gdr says which of the channels have GPUDirect RDMA, and through whom.
func (r *Rank) gdr() string {
	said := "yes"
	switch {
	case r.Direct == 0:
		said = "no"
	case r.GDR() != tristate.True:
		said = fmt.Sprintf("%d of %d", r.Direct, r.Sent+r.Received)
	}
	if len(r.Through) > 0 {
		said += ", through the NIC of rank " + list(r.Through)
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
		Used  tristate.State `json:"used"`
		Ranks []rankJSON     `json:"ranks"`
		Notes []string       `json:"notes"`
	}{r.Used, make([]rankJSON, 0, len(r.Ranks)), append([]string{}, r.Notes...)}
	for _, a := range r.Ranks {
		out.Ranks = append(out.Ranks, rankJSON{a, a.GDR(), append([]int{}, a.Through...)})
	}
	return show.JSON(w, out)
}
