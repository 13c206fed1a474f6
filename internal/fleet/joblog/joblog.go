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

// GDR says whether all channels have asked for GPUDirect RDMA.
func (r *Rank) GDR() tristate.State { return tristate.Of(r.Direct == r.Sent+r.Received) }

// Result is what a log says.
type Result struct {
	// Used: all channels between nodes had GPUDirect RDMA, and nothing failed. Unknown without
	// such a channel, and where something of the log cannot be read.
	Used tristate.State
	// Unread is the number of lines that may be about channels and cannot be read.
	Unread int
	// Channels is the number of channels over a network, Direct that of those with GPUDirect
	// RDMA.
	Channels, Direct int
	// Ranks are sorted by node, rank, network and device.
	Ranks []Rank
	// Failures are errors of the network, the worst first. Failed: one of them is sure.
	Failures []Failure
	Failed   bool
	// Variables are what the log says of the variables that choose NICs and distances:
	// "NCCL_IB_HCA set to mlx5_7".
	Variables []string
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

// reading is what was read so far.
type reading struct {
	routes           map[route]*carried
	members          map[process]member
	lists            map[netOf]string // names of NICs in the order of their index
	single           map[netOf]string // names of NICs by index
	hints            map[string]*hint
	words            map[string]string // one copy of each name
	kept             int               // bytes of memory that are in use, estimated
	forgotten        bool              // a limit was reached
	channels, direct int
	sockets          int // channels over TCP
	staged           int // of those, the ones that claim GPUDirect RDMA
	unread           int // lines that may be about a channel, and cannot be read
	long             int // of those, the ones in a line that is too long
	loose            int // ends of lines about channels with GPUDirect RDMA, cut off
	lines            int // lines of NCCL
	failures         map[failure]*Failure
	lost             bool   // a failure is not in failures: a limit was reached
	warnings         int    // warnings that are not known
	warned           string // the first of them
	// first is the communicator of a GPU's first channel, where it is one over sockets.
	first     map[process]string
	socketsOf string // such a communicator that others followed
}

func newLog() *reading {
	return &reading{
		routes: map[route]*carried{}, members: map[process]member{}, lists: map[netOf]string{},
		single: map[netOf]string{}, hints: map[string]*hint{}, words: map[string]string{}, failures: map[failure]*Failure{}, first: map[process]string{},
	}
}

// limit is how many bytes a log keeps, some 30,000 rows of the table. Tables, garbage and the
// output make 60 MiB of it at most.
const limit = 8 << 20

// room says whether n bytes more may be kept.
func (l *reading) room(n int) bool {
	if l.kept+n > limit {
		l.forgotten = true
		return false
	}
	l.kept += n
	return true
}

// word returns the one copy of a name, and false without room for it.
func (l *reading) word(b []byte) (string, bool) {
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
func (l *reading) count(c *channel) {
	l.channels++
	if strings.Contains(c.network, "Socket") {
		l.sockets++
		if c.direct {
			l.staged++
		}
		c.direct = false
	}
	if c.direct {
		l.direct++
	}
}

// follows takes in whether a channel of RCCL's, without GPUDirect RDMA, comes after one over
// sockets of the same GPU: RCCL asks once for each GPU whether its network can do it
// (ROCm/rocm-systems#11701).
func (l *reading) follows(p process, c *channel, comm []byte) {
	const entry = 96
	sockets := strings.Contains(c.network, "Socket")
	was, known := l.first[p]
	switch {
	case len(comm) == 0 || p.host == "":
	case !known && l.room(entry):
		l.first[p] = ""
		if comm, ok := l.word(comm); ok && sockets {
			l.first[p] = comm
		}
	case was != "" && !sockets && !c.direct:
		l.hint(p, hintSockets)
		l.socketsOf = cmp.Or(l.socketsOf, was)
	}
}

// carry adds a channel to its route.
func (l *reading) carry(p process, c *channel) {
	key := route{p, c.rank, c.network, c.device}
	to := l.routes[key]
	if to == nil {
		const entry = 256
		if !l.room(entry) {
			return
		}
		to = &carried{through: map[int]bool{}}
		l.routes[key] = to
	}
	if c.sent {
		to.sent++
	} else {
		to.received++
	}
	if c.direct {
		to.direct++
	}
	to.bus = cmp.Or(to.bus, c.bus)
	const entry = 48
	if c.proxy >= 0 && !to.through[c.proxy] && l.room(entry) {
		to.through[c.proxy] = true
	}
}

func (l *reading) result() *Result {
	r := &Result{Channels: l.channels, Direct: l.direct, Unread: l.unread + l.loose, Ranks: l.ranks(), Failures: l.allFailures(), Variables: l.variables(), Notes: l.notes()}
	r.Failed = l.lost || len(r.Failures) > 0 && r.Failures[0].Sure
	r.Used = l.used(r)
	return r
}

// outcome says whether a rank's channels had GPUDirect RDMA: where it failed, what was asked
// for is not what came.
func (r *Result) outcome(a *Rank) tristate.State {
	if a.Direct == 0 || !r.Failed {
		return a.GDR()
	}
	for _, f := range r.Failures {
		if f.Sure && f.Node == a.Node && int(f.Rank) == a.Rank {
			return tristate.False
		}
	}
	return tristate.Unknown
}

// used says whether all channels between nodes had GPUDirect RDMA. NCCL prints the channels
// before it registers memory: they say what was asked for.
func (l *reading) used(r *Result) tristate.State {
	switch without := l.channels - l.direct; {
	case r.Failed:
		return tristate.False
	case l.channels == 0 || l.oneNode():
		return tristate.Unknown
	case without > l.loose:
		return tristate.False
	case l.unread > 0, l.loose > 0, len(r.Failures) > 0:
		return tristate.Unknown
	}
	return tristate.True
}

// ranks returns a Rank for each route. Routes of one GPU in several communicators become
// one: its rank is that in the largest of them.
func (l *reading) ranks() []Rank {
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

// Read reads a log to its end. Of a line only the first 64 KiB are read as messages. It calls
// progress with the number of bytes read so far, about once a mebibyte.
func Read(from io.Reader, progress func(read int64)) (*Result, error) {
	const step = 1 << 20
	in := bufio.NewReaderSize(from, 16) // for isText
	if err := isText(in); err != nil {
		return nil, err
	}
	l, pieces := newLog(), newLines(in)
	var read, told int64
	for pieces.Scan() {
		l.piece(pieces.piece)
		if read += int64(len(pieces.text)) + 1; read-told >= step {
			told = read
			progress(read)
		}
	}
	if err := pieces.Err(); err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	return l.result(), nil
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
