package joblog

import "bytes"

// A log may have been cut or torn anywhere: several processes write to one pipe, a terminal
// breaks long lines, a collector cuts them off. What is left of a line about a channel must
// not be taken for a line: it is counted, and what the whole log says is then not known.

// channelWords begin the lines about channels.
var channelWords = []string{"Channel ", "Ring ", "CollNet ", "Coll "}

// mayBeChannel says of the text between two marks on one line, which is no whole line about a
// channel, whether it may be the beginning of one and what stands in front of the other message:
// "Chann" and "node8:12:40 [1] N". Where something stands for a line end between the two, such
// as the end of a string, the beginning is whole.
func mayBeChannel(m []byte) bool {
	common := 0
	for _, what := range channelWords {
		n := 0
		for n < len(m) && n < len(what) && m[n] == what[n] {
			n++
		}
		common = max(common, n)
	}
	switch separated := bytes.ContainsAny(m, "\\\"<"); {
	case !separated && common > 0:
		return true
	case !separated:
		host := bytes.IndexByte(m, ':') // of the other one, where nothing is left of this one
		return host > 0 && !bytes.ContainsFunc(m[:host], func(c rune) bool { return !inHost(c) })
	}
	next := m[common]
	return bytes.IndexByte([]byte("\\\"<"), next) < 0 && (!inHost(rune(next)) || '0' <= next && next <= '9')
}

// tornChannel says of a message without "via" whether it is the beginning of one about a
// channel. NCCL begins other messages alike, which are whole:
//
//	Channel 00/02 :    0   1   2   3
//	Ring 00 : 7 -> 0 -> 1
func tornChannel(m []byte) bool {
	for _, what := range channelWords {
		if bytes.HasPrefix([]byte(what), m) {
			return true
		}
		if !bytes.HasPrefix(m, []byte(what)) {
			continue
		}
		_, ranks, ok := bytes.Cut(m, []byte(" :"))
		_, to, pair := cutArrow(ranks)
		_, _, two := cutArrow(to)
		return !ok || pair && !two || !pair && !isList(ranks)
	}
	return false
}

// isList says whether ranks stand there as in an order of ranks, at least two, or one that is
// padded: "    0   1".
func isList(b []byte) bool {
	padded := bytes.HasPrefix(b, []byte("  "))
	_, rest, ok := number(bytes.TrimLeft(b, " "), true)
	_, _, second := number(bytes.TrimLeft(rest, " "), bytes.HasPrefix(rest, []byte(" ")))
	return ok && (padded || second)
}

// ended says whether a message about a channel that says nothing of GDRDMA ends here. What
// may follow is what NCCL prints there, and what wrappers put behind a line: the end of a
// string, a tag, a colour. The rest of a name, a number or a word is not the end.
func ended(m []byte) bool {
	if len(m) == 0 {
		return true
	}
	return bytes.HasPrefix(m, []byte("/Shared")) || !inHost(rune(m[0])) && bytes.IndexByte([]byte(":/([-"), m[0]) < 0
}

// isFragment says whether a line about a channel has lost its beginning: "[send] via NET/IB/0".
func isFragment(b []byte) bool {
	of, via, found := bytes.Cut(b, []byte("] via "))
	return found && (bytes.HasSuffix(of, []byte("[send")) || bytes.HasSuffix(of, []byte("[receive"))) &&
		(bytes.HasPrefix(via, []byte("NET/")) || bytes.HasPrefix(via, []byte("COLLNET/")))
}

// unmarked takes in a line without a message: it may be a part of one.
func (l *reading) unmarked(p piece) {
	switch {
	case isFragment(p.text), endsInMark(p.text):
		l.unread++
	case isRest(p.text):
		l.loose++
	default:
		l.foreign(p.text)
	}
}

// endsInMark says whether a line was cut within "host:12:40 [0] NCCL INFO ".
func endsInMark(b []byte) bool {
	const mark = "] NCCL INFO "
	const shortest = len("] NCC")
	if at := bytes.LastIndexByte(b[max(0, len(b)-len(mark)):], ']'); at >= 0 {
		end := b[max(0, len(b)-len(mark))+at:]
		return len(end) >= shortest && bytes.HasPrefix([]byte(mark), end)
	}
	return false
}

// isRest says whether a line is the end of one about a channel, from its index on: "/GDRDMA",
// "5/GDRDMA", behind "NET/IB/1". The line before may have been counted as one without.
func isRest(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(b, "0123456789"), []byte("/GDRDMA"))
}
