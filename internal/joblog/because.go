package joblog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/tristate"
)

// Because adds a note for each reason that why returns for ranks without GPUDirect RDMA, in
// front of the others. why returns "" for a rank that it knows nothing about.
func (r *Result) Because(why func(*Rank) string) {
	var reasons []string
	of := map[string][]string{}
	for i := range r.Ranks {
		rank := &r.Ranks[i]
		if rank.GDR() == tristate.True {
			continue
		}
		reason, who := why(rank), cmp.Or(rank.GPU, fmt.Sprintf("rank %d", rank.Rank))
		if reason == "" || slices.Contains(of[reason], who) {
			continue
		}
		if of[reason] == nil {
			reasons = append(reasons, reason)
		}
		of[reason] = append(of[reason], who)
	}
	for i, reason := range reasons {
		reasons[i] = few(of[reason]) + ": " + reason
	}
	r.Notes = append(reasons, r.Notes...)
}

// few joins words, no more than eight of them.
func few(words []string) string {
	const most = 8
	if n := len(words) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), n)
	}
	return strings.Join(words, ", ")
}
