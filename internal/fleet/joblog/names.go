package joblog

import (
	"bytes"
	"cmp"
	"strings"
)

// netOf is a network of a node with a number: the index of a NIC; or a process, which may be told
// to use some NICs only, or anyProcess for those whose line is missing.
type netOf struct {
	host, network string
	number        int
}

const anyProcess = -1

// separator stands between the names of a list. It is in no name.
const separator = "|"

// network takes in the lines that name NICs:
//
//	NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
//	NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [RO]; OOB ...       2.21 to 2.23
//	NET/Socket : Using [0]eth0:10.0.0.1<0>
//	NET/IB : Made virtual device [4] name=mlx5_0+mlx5_1 speed=800000 ndevs=2  2.24 on
//	NET/AWS Libfabric : GPU Direct RDMA Enabled for HCA 0 'rdmap79s0'         2.13 on
func (l *reading) network(before, m []byte) {
	m, ok := bytes.CutPrefix(m, []byte("NET/"))
	name, said, told := bytes.Cut(m, []byte(" : "))
	const longest = 64
	if !ok || !told || len(name) > longest {
		return
	}
	if list, ok := bytes.CutPrefix(said, []byte("Using [")); ok {
		l.list(l.process(before), name, list)
	} else if virtual, ok := bytes.CutPrefix(said, []byte("Made virtual device [")); ok {
		l.name(before, name, virtual, "] name=", " ")
	} else if _, hca, ok := bytes.Cut(said, []byte("abled for HCA ")); ok {
		l.name(before, name, hca, " '", "'")
	}
}

// list remembers the NICs of a process.
func (l *reading) list(p process, network, list []byte) {
	net, ok := l.word(kind(network))
	text, ok2 := l.word(listed(list))
	const entry = 160
	if !ok || !ok2 || !l.room(entry) {
		return
	}
	l.lists[netOf{p.host, net, p.pid}] = text
	node := netOf{p.host, net, anyProcess}
	if was, ok := l.lists[node]; ok && was != text {
		text = "" // its processes use different NICs
	}
	l.lists[node] = text
}

// listed returns the names in such a list, "0]mlx5_0:1/IB [1]mlx5_1:1/IB", by position: with
// merged NICs the numbers are not those of the channels' lines.
func listed(b []byte) []byte {
	b, _, _ = bytes.Cut(b, []byte("; OOB"))
	var names [][]byte
	for more := true; more; {
		_, after, ok := bytes.Cut(b, []byte("]"))
		if !ok {
			break
		}
		name := nicName(after)
		if list, merged := bytes.CutPrefix(after, []byte("={")); merged {
			list, after, _ = bytes.Cut(list, []byte("}"))
			parts := bytes.Split(list, []byte(", "))
			for i, part := range parts {
				_, part, _ = bytes.Cut(part, []byte("] "))
				parts[i] = nicName(part)
			}
			name = bytes.Join(parts, []byte("+"))
		}
		names = append(names, name)
		_, b, more = bytes.Cut(after, []byte(" ["))
	}
	return bytes.Join(names, []byte(separator))
}

// nicName returns the name of a device and port, "mlx5_0:1/IB", or of an interface,
// "eth0:10.0.0.1<0>". Port 1 is not told.
func nicName(b []byte) []byte {
	b, _, _ = bytes.Cut(b, []byte(" "))
	name, rest, _ := bytes.Cut(b, []byte(":"))
	if _, _, isAddress := bytes.Cut(rest, []byte("<")); isAddress {
		return name
	}
	if port, after, ok := number(rest, true); ok && port > 1 && len(after) > 0 && after[0] != '.' {
		return b[:len(b)-len(after)]
	}
	return name
}

// kind is the network that prints the lists: every plugin for InfiniBand prints them as IB.
func kind(network []byte) []byte {
	if bytes.HasPrefix(network, []byte("IB")) {
		return network[:2]
	}
	return network
}

// name remembers one NIC: an index, a text between, and the name with a text behind it.
func (l *reading) name(before, network, said []byte, between, behind string) {
	device, said, ok := number(said, true)
	said, told := bytes.CutPrefix(said, []byte(between))
	name, _, ended := bytes.Cut(said, []byte(behind))
	const longest, entry = 64, 128
	if !ok || !told || !ended || len(name) == 0 || len(name) > longest {
		return
	}
	p := l.process(before)
	net, ok := l.word(network)
	text, ok2 := l.word(name)
	if !ok || !ok2 {
		return
	}
	key := netOf{p.host, net, device}
	was, known := l.single[key]
	switch {
	case known && was != text:
		text = "" // its processes use different NICs
	case known || !l.room(entry):
		return
	}
	l.single[key] = text
}

// nic returns the name of the NIC of a route; "" for unknown.
func (l *reading) nic(r route) string {
	net := string(kind([]byte(r.network)))
	list, ok := l.lists[netOf{r.host, net, r.pid}]
	if !ok {
		list = l.lists[netOf{r.host, net, anyProcess}]
	}
	at := 0
	for name := range strings.SplitSeq(list, separator) {
		if at == r.device && name != "" {
			return name
		}
		at++
	}
	return cmp.Or(l.single[netOf{r.host, r.network, r.device}], l.single[netOf{r.host, net, r.device}])
}
