package joblog

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/tristate"
)

// Because adds a note for each reason that why returns for ranks without GPUDirect RDMA, in
// front of the others. why returns "" for a rank that it knows nothing about.
func (r *Result) Because(why func(*Rank) string) {
	var order []string
	of := map[string][]string{}
	for i := range r.Ranks {
		rank := &r.Ranks[i]
		if rank.GDR() == tristate.True {
			continue
		}
		reason := why(rank)
		if reason == "" {
			continue
		}
		if of[reason] == nil {
			order = append(order, reason)
		}
		who := rank.GPU
		if who == "" {
			who = fmt.Sprintf("rank %d", rank.Rank)
		}
		if !slices.Contains(of[reason], who) {
			of[reason] = append(of[reason], who)
		}
	}
	notes := make([]string, 0, len(order)+len(r.Notes))
	for _, reason := range order {
		notes = append(notes, few(of[reason])+": "+reason)
	}
	r.Notes = append(notes, r.Notes...)
}

// few joins words, no more than eight of them.
func few(words []string) string {
	const most = 8
	if n := len(words) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), n)
	}
	return strings.Join(words, ", ")
}
