package joblog

import (
	"bytes"
	"strings"
)

// names are what the log calls the NICs.
type names struct {
	// lists are the names in the order of their index, by process: it may be told to use
	// some NICs only. nodes is one list of each node, for processes whose line is missing.
	lists map[listOf]string
	nodes map[listOf]string
	// single are names by index.
	single map[nicOf]string
}

type listOf struct {
	host, network string
	pid           int
}

type nicOf struct {
	host, network string
	device        int
}

// separator stands between the names of a list. It is in no name.
const separator = "|"

// network takes in the lines that name NICs:
//
//	NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
//	NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [RO]; OOB ...       2.21 to 2.23
//	NET/Socket : Using [0]eth0:10.0.0.1<0>
//	NET/IB : Made virtual device [4] name=mlx5_0+mlx5_1 speed=800000 ndevs=2  2.24 on
//	NET/AWS Libfabric : GPU Direct RDMA Enabled for HCA 0 'rdmap79s0'         2.13 on
func (l *Log) network(before, m []byte) {
	m, ok := bytes.CutPrefix(m, []byte("NET/"))
	name, said, told := bytes.Cut(m, []byte(" : "))
	const longest = 64
	if !ok || !told || len(name) > longest {
		return
	}
	if list, ok := bytes.CutPrefix(said, []byte("Using [")); ok {
		l.list(l.process(before), name, list)
		return
	}
	var end byte
	said, ok = bytes.CutPrefix(said, []byte("Made virtual device ["))
	mid := []byte("] name=")
	if end = ' '; !ok {
		if _, said, ok = bytes.Cut(said, []byte("abled for HCA ")); !ok {
			return
		}
		mid, end = []byte(" '"), '\''
	}
	device, said, ok := number(said, true)
	said, told = bytes.CutPrefix(said, mid)
	if stop := bytes.IndexByte(said, end); ok && told && 0 < stop && stop <= longest {
		l.name(l.process(before), name, device, said[:stop])
	}
}

// list remembers the NICs of a process.
func (l *Log) list(p process, network, list []byte) {
	net, ok := l.word(kind(network))
	text, ok2 := l.word(listed(list))
	const entry = 160
	if !ok || !ok2 || !l.room(entry) {
		return
	}
	if l.names.lists == nil {
		l.names.lists, l.names.nodes = map[listOf]string{}, map[listOf]string{}
	}
	l.names.lists[listOf{p.host, net, p.pid}] = text
	node := listOf{p.host, net, 0}
	if was, ok := l.names.nodes[node]; ok && was != text {
		text = "" // its processes use different NICs
	}
	l.names.nodes[node] = text
}

// listed returns the names in such a list, "0]mlx5_0:1/IB [1]mlx5_1:1/IB", by position: with
// merged NICs the numbers are not those of the channels' lines.
func listed(b []byte) []byte {
	b, _, _ = bytes.Cut(b, []byte("; OOB"))
	var all []byte
	for {
		_, after, ok := bytes.Cut(b, []byte("]"))
		if !ok {
			return bytes.TrimSuffix(all, []byte(separator))
		}
		if parts, merged := bytes.CutPrefix(after, []byte("={")); merged {
			parts, after, _ = bytes.Cut(parts, []byte("}"))
			for i, part := range bytes.Split(parts, []byte(", ")) {
				if i > 0 {
					all = append(all, '+')
				}
				_, part, _ = bytes.Cut(part, []byte("] "))
				all = append(all, nicName(part)...)
			}
		} else {
			all = append(all, nicName(after)...)
		}
		all = append(all, separator...)
		if _, b, ok = bytes.Cut(after, []byte(" [")); !ok {
			return bytes.TrimSuffix(all, []byte(separator))
		}
	}
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

// name remembers one NIC.
func (l *Log) name(p process, network []byte, device int, name []byte) {
	net, ok := l.word(network)
	text, ok2 := l.word(name)
	const entry = 128
	if !ok || !ok2 {
		return
	}
	key := nicOf{p.host, net, device}
	was, known := l.names.single[key]
	switch {
	case known && was != text:
		text = "" // its processes use different NICs
	case known || !l.room(entry):
		return
	}
	if l.names.single == nil {
		l.names.single = map[nicOf]string{}
	}
	l.names.single[key] = text
}

// nic returns the name of the NIC of a route; "" for unknown.
func (l *Log) nic(r route) string {
	net := string(kind([]byte(r.network)))
	list, ok := l.names.lists[listOf{r.host, net, r.pid}]
	if !ok {
		list = l.names.nodes[listOf{r.host, net, 0}]
	}
	for i := range r.device {
		_, after, ok := strings.Cut(list, separator)
		if !ok || i > 1<<10 {
			list = ""
			break
		}
		list = after
	}
	if name, _, _ := strings.Cut(list, separator); name != "" {
		return name
	}
	if name := l.names.single[nicOf{r.host, r.network, r.device}]; name != "" {
		return name
	}
	return l.names.single[nicOf{r.host, net, r.device}]
}
