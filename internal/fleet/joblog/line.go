package joblog

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// channel is a line about a channel over a network.
type channel struct {
	rank, device int
	network      string
	sent, direct bool
	bus          uint64 // the rank's GPU, 0 for unknown
	proxy        int    // the rank whose NIC is used, -1 for its own
}

// piece takes in a line. Lines that tore, so that several messages are on one, count as
// several.
func (l *reading) piece(p piece) {
	if p.continued {
		if at, _, _ := nextMark(p.text, 0); at >= 0 || isFragment(p.text) {
			l.long++
			l.unread++
		}
		return
	}
	at, end, warns := nextMark(p.text, 0)
	if at < 0 {
		l.unmarked(p)
		return
	}
	if isFragment(p.text[:at]) || bytes.Contains(p.text[:at], []byte("] NCC")) {
		l.unread++
	}
	for begin := 0; at >= 0; {
		m := message{before: p.text[begin:at], text: p.text[end:], warns: warns, open: p.open}
		begin = end
		if at, end, warns = nextMark(p.text, end); at >= 0 {
			m.text, m.open, m.merged = p.text[begin:at], false, true
		}
		l.lines++
		l.message(&m)
	}
}

// message is what one print statement of NCCL has printed, and what stands in front of it.
type message struct {
	before, text []byte
	warns        bool // NCCL WARN, not NCCL INFO
	open         bool // it may go on, see piece
	merged       bool // another one follows on the same line
}

// nextMark finds what stands in front of every message, "NCCL INFO " or "NCCL WARN ", from
// a place in the line on, and where the message begins; -1 for none. RCCL of some releases
// says RCCL.
func nextMark(line []byte, from int) (at, end int, warns bool) {
	const same, mark = "CCL ", "CCL INFO "
	for {
		i := bytes.Index(line[from:], []byte(same))
		if i < 0 {
			return -1, 0, false
		}
		at = from + i
		rest := line[at+len(same):]
		warns = bytes.HasPrefix(rest, []byte("WARN "))
		if warns || bytes.HasPrefix(rest, []byte("INFO ")) {
			return at, at + len(mark), warns
		}
		from = at + len(same)
	}
}

// message takes in one message.
func (l *reading) message(m *message) {
	if m.warns {
		l.warning(m.before, m.text)
		return
	}
	if len(m.text) == 0 {
		l.unread++ // cut off
		return
	}
	read := false
	switch m.text[0] {
	case 'C', 'R': // Channel, CollNet, Coll; Ring before 2.7
		read = l.channel(m)
	case 'N': // NET/IB : Using, NCCL_IB_DISABLE set by environment
		l.network(m.before, m.text)
	case 'c', 'n', '[': // comm 0x..., ncclCommInitRank comm 0x..., [Rank 0] ncclCommInitRank
		l.member(m.before, m.text)
	}
	if !read {
		l.reason(m.before, m.text)
	}
	if m.merged && !read && mayBeChannel(m.text) {
		l.unread++
	}
}

// channel takes in such lines, of every release:
//
//	Ring 00 : 0 -> 8 [send] via NET/IB/0/GDRDMA                            2.4
//	Ring 00 : 0[1b000] -> 8[1b000] [receive] via NET/IB/0/GDRDMA           2.5, 2.6
//	Channel 00 : 0[1b000] -> 8[1b000] [send] via NET/IB/0/GDRDMA/Shared    2.7 to 2.11
//	Channel 00/0 : 0[1b000] -> 8[1b000] [send] via NET/IB/0(3)/GDRDMA      2.12 to 2.18.1, RCCL
//	Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0(3)/GDRDMA/Shared       2.18.3 on
//	Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA(PCI)            2.26 on
//	CollNet 00/0 : 3 [send] via COLLNET/SHARP/0/GDRDMA                     2.9 on, before: Coll
//	Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0/GDRDMA/flush=Always 2.31 on
//
// RCCL adds "comm 0x... nRanks 16". It says whether such a line was read.
func (l *reading) channel(m *message) bool {
	of, via, ok := bytes.Cut(m.text, []byte(" via "))
	if !ok {
		if tornChannel(m.text) {
			l.unread++
			return true
		}
		return false
	}
	over, net := bytes.CutPrefix(via, []byte("NET/"))
	switch {
	case net, bytes.HasPrefix(via, []byte("COLLNET/")):
	case bytes.HasPrefix(via, []byte("P2P/MNNVL")):
		l.hint(l.process(m.before), hintNVLink)
		return true
	default:
		begins := func(word string) bool { return strings.HasPrefix(word, string(via)) }
		if !begins("COLLNET") && !begins("NET") {
			return false
		}
		l.unread++ // cut off
		return true
	}
	c, ok := ends(of)
	network, told := c.over(over)
	if !ok || !told || m.open && !c.direct {
		l.unread++
		return true
	}
	p := l.process(m.before)
	if bytes.Contains(via, []byte("x across cluster]")) {
		l.hint(p, hintRay)
	}
	c.network, ok = l.word(network)
	l.count(&c)
	if ok {
		l.follows(p, &c, commOf(over))
		l.carry(p, &c)
	}
	return true
}

// commOf returns the communicator, which RCCL names at the end; nil without.
func commOf(via []byte) []byte {
	_, comm, _ := bytes.Cut(via, []byte(" comm 0x"))
	const most = 16
	digits := len(comm) - len(bytes.TrimLeft(comm, "0123456789abcdef"))
	return comm[:min(digits, most)]
}

// arrows stand between the two ranks of a channel: as NCCL prints them, as Docker's log files
// have them, and as HTML has them.
var arrows = [][]byte{[]byte(" -> "), []byte(` -\u003e `), []byte(" -&gt; "), []byte(" -&#62; ")}

func cutArrow(m []byte) (from, to []byte, ok bool) {
	for _, arrow := range arrows {
		if from, to, ok = bytes.Cut(m, arrow); ok {
			return from, to, true
		}
	}
	return m, nil, false
}

// ends reads whose channel it is: "Channel 00/0 : 0[1b000] -> 8[1b000] [send]". The sender
// prints [send], the receiver [receive].
func ends(m []byte) (c channel, ok bool) {
	c.proxy = -1
	what, m, ok := bytes.Cut(m, []byte(" : "))
	if !ok {
		return c, false
	}
	m, c.sent = bytes.CutSuffix(m, []byte(" [send]"))
	if !c.sent {
		m, ok = bytes.CutSuffix(m, []byte(" [receive]"))
	}
	from, to, pair := cutArrow(m)
	if !pair && !bytes.HasPrefix(what, []byte("Coll")) {
		return c, false
	}
	if m = to; c.sent || !pair { // where there is no pair, from is all
		m = from
	}
	c.rank, m, ok = number(m, ok)
	if !ok || len(m) == 0 {
		return c, ok // CollNet, and 2.4, name no GPU
	}
	m, begun := bytes.CutPrefix(m, []byte("["))
	m, ended := bytes.CutSuffix(m, []byte("]"))
	c.bus = bus(m)
	return c, begun && ended
}

// bus returns the number of a GPU's PCI address, 0 for unknown. From 2.18.3 on the index of
// the GPU stands in the same place, as a decimal number: only function 0 of a device with a
// number above 15 can be no index.
func bus(b []byte) uint64 {
	const indices, device = 0x100, 0x10
	n := hexadecimal(b)
	if n < indices || n%device != 0 {
		return 0
	}
	return n
}

// over reads over which NIC the channel goes, "IB/0(3)/GDRDMA/Shared", and returns the name
// of the network, which may have spaces.
func (c *channel) over(m []byte) (network []byte, ok bool) {
	at := 1
	for at < len(m) && (m[at-1] != '/' || m[at] < '0' || m[at] > '9') {
		at++
	}
	if at >= len(m) {
		return nil, false
	}
	const longest = 64
	network = m[:at-1]
	c.device, m, ok = number(m[at:], true)
	if proxy, begun := bytes.CutPrefix(m, []byte("(")); begun && ok {
		c.proxy, m, ok = number(proxy, true)
	}
	if c.proxy >= 0 && ok {
		m, ok = bytes.CutPrefix(m, []byte(")"))
	}
	c.direct = bytes.HasPrefix(m, []byte("/GDRDMA"))
	whole := c.direct || ended(m)
	return network, ok && whole && 0 < len(network) && len(network) <= longest
}

// process reads who prints a line: "node7:1234:1240 [3] N" stands before the mark, some
// wrappers leave the last number out, and a warning names its source: "[3] init.cc:12 N". The
// zero value stands for one that does not say.
func (l *reading) process(b []byte) (p process) {
	b = b[:max(bytes.LastIndex(b, []byte("] ")), 0)]
	open := bytes.LastIndexByte(b, '[')
	if open < 1 {
		return process{}
	}
	dev, rest, ok := number(b[open+1:], true)
	b, tid := cutNumber(b[:open-1])
	b, pid := cutNumber(b)
	if !ok || len(rest) > 0 || tid < 0 {
		return process{}
	}
	if pid < 0 {
		pid = tid
	}
	host, ok := l.word(hostAtEnd(b))
	if !ok {
		return process{}
	}
	return process{host, pid, dev}
}

// hostAtEnd returns the host name at the end of what stands in front of it, such as
// "[1,3]<stdout>:node7". An escape sequence that ends a colour is not part of it.
func hostAtEnd(b []byte) []byte {
	const longest = 253
	start := max(len(bytes.TrimRightFunc(b, inHost)), len(b)-longest)
	host := b[start:]
	if start > 0 && b[start-1] == '[' { // ESC [ 0 m
		if _, after, ok := bytes.Cut(host, []byte("m")); ok {
			return after
		}
	}
	return host
}

func inHost(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.'
}

// number reads a decimal number at the start of b if ok, and returns what follows it.
func number(b []byte, ok bool) (n int, rest []byte, isNumber bool) {
	i := 0
	for ok && i < len(b) && '0' <= b[i] && b[i] <= '9' && n < math.MaxInt32/10 {
		n = n*10 + int(b[i]-'0')
		i++
	}
	return n, b[i:], i > 0
}

// cutNumber cuts a colon and a decimal number off the end of b: "node7:12". Without one it
// returns -1.
func cutNumber(b []byte) (rest []byte, n int) {
	colon := bytes.LastIndexByte(b, ':')
	n, after, ok := number(b[colon+1:], colon >= 0)
	if !ok || len(after) > 0 {
		return b, -1
	}
	return b[:colon], n
}

// hexadecimal reads a number without prefix; 0 where there is none.
func hexadecimal(b []byte) uint64 {
	const bits = 52 // a domain of 32, bus, device, function
	n, err := strconv.ParseUint(string(b), 16, bits)
	if err != nil {
		return 0
	}
	return n
}
