package joblog

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Failure is an error that a rank's network printed.
type Failure struct {
	// Node and Rank are of the process that printed it: "", -1 where the log does not tell.
	Node string    `json:"node"`
	Rank maybeRank `json:"rank"`
	// Text is the first such line, Count how many there are.
	Text  string `json:"text"`
	Count int    `json:"count"`
	// Note says what it means, Code which page of explain what to do; "" where neither is known.
	Note string `json:"note"`
	Code string `json:"code"`
	// Sure: channels that asked for GPUDirect RDMA were not used. Otherwise that is not known.
	Sure bool `json:"-"`
}

// maybeRank is a rank, -1 for unknown, which is "" in JSON.
type maybeRank int

// MarshalJSON implements json.Marshaler.
func (r maybeRank) MarshalJSON() ([]byte, error) {
	if r < 0 {
		return []byte(`""`), nil
	}
	return []byte(strconv.Itoa(int(r))), nil
}

// failure is what failures have in common that are counted together.
type failure struct {
	process
	row *row
}

// warning takes in a warning. In front of the mark stand the process and the source file:
// "node1:100:201 [3] misc/ibvwrap.cc:182 N".
func (l *reading) warning(before, text []byte) {
	var at []byte
	if i := bytes.LastIndex(before, []byte("] ")); i >= 0 {
		at = before[i:]
	}
	if r := rowOf(at, text); r != nil {
		l.fail(l.process(before), r, text)
		return
	}
	l.warnings++
	if l.warned == "" {
		l.warned = clip(text)
	}
}

func (l *reading) fail(p process, r *row, text []byte) {
	switch r.effect {
	case harmless:
		return
	case wentOn:
		l.hint(p, r.said())
		return
	case doubtful, failed:
	}
	key := failure{p, r}
	if f := l.failures[key]; f != nil {
		f.Count++
		return
	}
	first := clip(text)
	const entry, always = 256, 64
	if len(l.failures) >= always && !l.room(entry+len(first)) {
		l.lost = l.lost || r.effect == failed
		return
	}
	l.failures[key] = &Failure{Node: p.host, Rank: -1, Text: first, Count: 1, Note: r.means, Code: r.code, Sure: r.effect == failed}
}

// said is what a row means, with its page.
func (r *row) said() string {
	if r.code == "" {
		return r.means
	}
	return r.means + " (" + r.code + ")"
}

// clip returns the beginning of a message.
func clip(m []byte) string {
	const most = 160
	text := string(m[:min(len(m), most)])
	if len(m) > most {
		text += "..."
	}
	return strings.ToValidUTF8(strings.TrimRight(text, " .\r\n\t\\"), "?")
}

// allFailures returns them, those that are sure and the most frequent ones first.
func (l *reading) allFailures() []Failure {
	merged := map[failure]*Failure{}
	for key, f := range l.failures {
		m := l.members[key.process]
		is := *f
		if m.ranks > 0 && !m.doubtful {
			is.Rank = maybeRank(m.rank)
		}
		same := failure{process{host: key.host, dev: int(is.Rank)}, key.row}
		if was := merged[same]; was == nil {
			merged[same] = &is
		} else {
			was.Count += is.Count
			was.Text = min(was.Text, is.Text)
		}
	}
	all := make([]Failure, 0, len(merged))
	for _, f := range merged {
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b Failure) int {
		if a.Sure != b.Sure {
			return map[bool]int{true: -1, false: 1}[a.Sure]
		}
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.Node, b.Node), int(a.Rank-b.Rank), cmp.Compare(a.Text, b.Text))
	})
	return all
}
