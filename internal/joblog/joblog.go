// Package joblog reads what NCCL and RCCL print with NCCL_DEBUG=INFO, and says which GPU
// sent to others over which NIC, with GPUDirect RDMA or without.
//
// A log may be gigabytes of the lines of many ranks, mixed, behind the prefixes of mpirun,
// Ray, Slurm, torchrun or kubectl, and it may be damaged. It is read once, a line at a time,
// and what is remembered has a limit.
package joblog

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gdr-features/tristate"
)

// Rank is one NIC of one rank: the channels to and from other ranks that it carries.
type Rank struct {
	// Node is the host name as NCCL prints it, without domain; "" if the line had none.
	Node string `json:"node"`
	Rank int    `json:"rank"`
	// GPU is its PCI address with the full domain; "" when the log does not tell.
	GPU string `json:"gpu"`
	// Network is NCCL's name for the network: IB, IBext_v8, Socket, AWS Libfabric, ...
	Network string `json:"network"`
	// Device is the index of the NIC in that network, and NIC its name; "" when the log does
	// not tell.
	Device int    `json:"device"`
	NIC    string `json:"nic"`
	// Sent and Received are numbers of channels, Direct is how many of both have GPUDirect
	// RDMA.
	Sent     int `json:"sent"`
	Received int `json:"received"`
	Direct   int `json:"-"`
	// Through are the other ranks whose NIC is used instead of an own one (PXN).
	Through []int `json:"-"`
}

// GDR says whether all channels have GPUDirect RDMA.
func (r *Rank) GDR() tristate.State { return tristate.Of(r.Direct == r.Sent+r.Received) }

// Result is what a log says.
type Result struct {
	// Used: all channels between nodes had GPUDirect RDMA. Unknown without such a channel.
	Used tristate.State
	// Channels is the number of channels over a network, Direct that of those with GPUDirect
	// RDMA.
	Channels, Direct int
	// Ranks are sorted by node, rank, network and device.
	Ranks []Rank
	// Notes are sentences about what stands out, the most important first.
	Notes []string
}

// process is a GPU in a process, which a line names in front of NCCL INFO.
type process struct {
	host     string
	pid, dev int
}

// route is a NIC of a rank.
type route struct {
	process
	rank    int
	network string
	device  int
}

// carried counts the channels of a route.
type carried struct {
	sent, received, direct int
	through                map[int]bool
	bus                    uint64 // the GPU's, 0 for unknown
}

// Log is what was read so far.
type Log struct {
	routes           map[route]*carried
	members          map[process]member
	lists            map[listOf]string // names of NICs in the order of their index
	single           map[nicOf]string  // names of NICs by index
	hints            map[string]*hint
	words            map[string]string // one copy of each name
	kept             int               // bytes of memory that are in use, estimated
	forgotten        bool              // a limit was reached
	channels, direct int
	staged           int // channels of a socket that claim GPUDirect RDMA
	unread           int // lines that look like a channel
	lines            int // lines of NCCL
}

func newLog() *Log {
	return &Log{
		routes: map[route]*carried{}, members: map[process]member{}, lists: map[listOf]string{},
		single: map[nicOf]string{}, hints: map[string]*hint{}, words: map[string]string{},
	}
}

// limit is how many bytes a log keeps, some 30,000 rows of the table. Tables, garbage and the
// output make 60 MiB of it at most.
const limit = 8 << 20

// room says whether n bytes more may be kept.
func (l *Log) room(n int) bool {
	if l.kept+n > limit {
		l.forgotten = true
		return false
	}
	l.kept += n
	return true
}

// word returns the one copy of a name, and false without room for it.
func (l *Log) word(b []byte) (string, bool) {
	if s, ok := l.words[string(b)]; ok {
		return s, true
	}
	const entry = 64
	if !l.room(len(b) + entry) {
		return "", false
	}
	s := string(b)
	l.words[s] = s
	return s, true
}

// count counts a channel. What a socket says of GPUDirect RDMA does not count: TCP copies
// through host memory.
func (l *Log) count(c *channel) {
	l.channels++
	if c.direct && strings.Contains(c.network, "Socket") {
		l.staged++
		c.direct = false
	}
	if c.direct {
		l.direct++
	}
}

func (l *Log) carry(p process, c channel) {
	key := route{p, c.rank, c.network, c.device}
	to := l.routes[key]
	if to == nil {
		const entry = 256
		if !l.room(entry) {
			return
		}
		to = &carried{}
		l.routes[key] = to
	}
	to.add(c, l)
}

func (t *carried) add(c channel, l *Log) {
	if c.sent {
		t.sent++
	} else {
		t.received++
	}
	if c.direct {
		t.direct++
	}
	t.bus = cmp.Or(t.bus, c.bus)
	const entry = 48
	if c.proxy >= 0 && !t.through[c.proxy] && l.room(entry) {
		if t.through == nil {
			t.through = map[int]bool{}
		}
		t.through[c.proxy] = true
	}
}

// Result returns what the log says.
func (l *Log) Result() Result {
	r := Result{Channels: l.channels, Direct: l.direct, Ranks: l.ranks(), Notes: l.notes()}
	if l.channels > 0 && !l.oneNode() {
		r.Used = tristate.Of(l.direct == l.channels)
	}
	return r
}

// ranks returns a Rank for each route. Routes of one GPU in several communicators become
// one: its rank is that in the largest of them.
func (l *Log) ranks() []Rank {
	merged := map[route]*Rank{}
	for key, c := range l.routes {
		m := l.members[key.process]
		if m.ranks > 0 && !m.doubtful {
			key.rank = m.rank
		}
		r := merged[key]
		if r == nil {
			r = &Rank{Node: key.host, Rank: key.rank, Network: key.network, Device: key.device, NIC: l.nic(key)}
			merged[key] = r
		}
		r.GPU = cmp.Or(r.GPU, address(m.bus), address(c.bus))
		r.Sent += c.sent
		r.Received += c.received
		r.Direct += c.direct
		r.Through = append(r.Through, slices.Collect(maps.Keys(c.through))...)
	}
	all := make([]Rank, 0, len(merged))
	for _, r := range merged {
		slices.Sort(r.Through)
		r.Through = slices.Compact(r.Through)
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Rank) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), a.Rank-b.Rank, cmp.Compare(a.GPU, b.GPU), cmp.Compare(a.Network, b.Network),
			a.Device-b.Device, b.Sent-a.Sent, b.Received-a.Received, b.Direct-a.Direct)
	})
	return all
}

// address returns the PCI address of NCCL's number of a GPU (busIdToInt64); "" for 0.
func address(bus uint64) string {
	if bus == 0 {
		return ""
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", bus>>20, bus>>12&0xff, bus>>4&0xff, bus&0xf)
}

// Read reads a log to its end. Of a line only the first 64 KiB count. It calls progress with
// the number of bytes read so far, about once a mebibyte.
func Read(from io.Reader, progress func(read int64)) (*Log, error) {
	const most, step = 64 << 10, 1 << 20
	in := bufio.NewReaderSize(from, most)
	if err := isText(in); err != nil {
		return nil, err
	}
	l := newLog()
	var read, told int64
	for within := false; ; {
		line, err := in.ReadSlice('\n')
		if !within {
			l.line(line)
		}
		within = errors.Is(err, bufio.ErrBufferFull)
		if read += int64(len(line)); read-told >= step {
			told = read
			progress(read)
		}
		switch {
		case err == nil || within:
		case errors.Is(err, io.EOF):
			return l, nil
		default:
			return nil, fmt.Errorf("reading the log: %w", err)
		}
	}
}

// isText refuses what a log must be turned into text from.
func isText(in *bufio.Reader) error {
	begin, _ := in.Peek(4) // an error comes again
	for magic, hint := range map[string]string{
		"\x1f\x8b":         "it is compressed: gzip -dc FILE | gdr-features log",
		"\x28\xb5\x2f\xfd": "it is compressed: zstd -dc FILE | gdr-features log",
		"\xff\xfe":         "it is UTF-16, as PowerShell writes files: convert it to UTF-8",
	} {
		if bytes.HasPrefix(begin, []byte(magic)) {
			return errors.New(hint)
		}
	}
	return nil
}
