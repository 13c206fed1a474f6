package joblog

import "bytes"

// member is what a process says of itself when it joins a communicator.
type member struct {
	rank, ranks int // in the largest communicator
	bus         uint64
	// doubtful: two that print the same host, process and GPU have different ranks.
	doubtful bool
}

// member takes in what a process says of itself:
//
//	comm 0x7f3fd4001980 rank 0 nranks 2 cudaDev 0 nvmlDev 0 - Init COMPLETE                2.4
//	comm 0x7f3fd4001980 rank 0 nranks 2 cudaDev 0 busId b1000 - Init COMPLETE              2.5 on
//	ncclCommInitRank comm 0x... rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId b1000 commId ... 2.17 on
//	[Rank 0] ncclCommInitRank comm 0x... rank 0 nranks 2 ...                               2.29 on
func (l *reading) member(before, m []byte) {
	_, m, ok := bytes.Cut(m, []byte("comm 0x"))
	rank, m, ok := valueOf(m, " rank ", ok)
	ranks, m, ok := valueOf(m, " nranks ", ok)
	if !ok || rank >= ranks {
		return
	}
	is := member{rank: rank, ranks: ranks}
	if _, bus, told := bytes.Cut(m, []byte(" busId ")); told {
		bus, _, _ = bytes.Cut(bus, []byte(" "))
		is.bus = hexadecimal(bus)
	}
	const entry = 160
	p := l.process(before)
	if was, known := l.members[p]; known {
		was.meets(is)
		l.members[p] = was
	} else if p.host != "" && l.room(entry) {
		l.members[p] = is
	}
}

// meets takes in another line of the same process.
func (m *member) meets(is member) {
	if m.bus == 0 {
		m.bus = is.bus
	}
	switch differs := is.bus != 0 && is.bus != m.bus; {
	case differs:
		m.doubtful, m.bus = true, 0
	case is.ranks == m.ranks && is.rank != m.rank:
		m.doubtful = true
	case is.ranks > m.ranks:
		m.rank, m.ranks = is.rank, is.ranks
	}
}

// valueOf finds a word and the number behind it, if ok.
func valueOf(m []byte, word string, ok bool) (n int, rest []byte, found bool) {
	_, m, found = bytes.Cut(m, []byte(word))
	return number(m, ok && found)
}

// oneNode says whether the log names all ranks of its largest communicator, all on one node.
func (l *reading) oneNode() bool {
	ranks, host := 0, ""
	for p, m := range l.members {
		if ranks = max(ranks, m.ranks); m.doubtful || host != "" && p.host != host {
			return false
		}
		host = p.host
	}
	for r := range l.routes {
		if r.host != host {
			return false
		}
	}
	seen := map[int]bool{}
	for _, m := range l.members {
		if m.ranks == ranks {
			seen[m.rank] = true
		}
	}
	return ranks > 0 && len(seen) == ranks
}
