package machine

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Process writes the files of a container's process: its limit of locked memory in bytes or
// "unlimited", its user, and its effective and bounding capabilities.
func (m *Machine) Process(t TB, dir, locked string, user int, effective, bounding uint64) {
	t.Helper()
	w := newWriter(dir, m, os.O_TRUNC)
	w.file("proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units     \n"+
		fmt.Sprintf("Max locked memory         %-20s %-20s bytes     \n", locked, locked))
	w.file("proc/self/status", fmt.Sprintf("Name:\tprocess\nUid:\t%d\t%[1]d\t%[1]d\t%[1]d\nCapEff:\t%016x\nCapBnd:\t%016x\n", user, effective, bounding))
	w.file("proc/self/uid_map", "         0          0 4294967295\n")
	if w.err != nil {
		t.Fatal(w.err)
	}
}

// GIDs writes the GID table of every Ethernet port. Each entry is an index, v1 or v2, an
// address, and a network device or "-": "3 v2 ::ffff:10.0.0.1 eth0". The other entries of a
// table of 16 are empty.
func (m *Machine) GIDs(t TB, dir string, entries ...string) {
	t.Helper()
	w := newWriter(dir, m, os.O_TRUNC)
	for i := range m.Functions {
		f := &m.Functions[i]
		if f.Attrs["rdma"] == "" || !strings.HasPrefix(f.Class, "0200") || f.Attrs["layer"] != "" {
			continue
		}
		for name := range strings.SplitSeq(f.Attrs["rdma"], ",") {
			port := "sys/class/infiniband/" + name + "/ports/1/"
			for n := range 16 {
				w.gid(port, n, entries)
			}
		}
	}
	if w.err != nil {
		t.Fatal(w.err)
	}
}

// gid writes one entry of a table. What cannot be read of an empty one is not there.
func (w *writer) gid(port string, index int, entries []string) {
	at := slices.IndexFunc(entries, func(e string) bool { return strings.HasPrefix(e, fmt.Sprintf("%d ", index)) })
	address := netip.IPv6Unspecified()
	if at >= 0 {
		words := strings.Fields(entries[at])
		address = netip.MustParseAddr(words[2])
		w.file(fmt.Sprintf("%sgid_attrs/types/%d", port, index), map[string]string{"v1": "IB/RoCE v1\n", "v2": "RoCE v2\n"}[words[1]])
		if words[3] != "-" {
			w.file(fmt.Sprintf("%sgid_attrs/ndevs/%d", port, index), words[3]+"\n")
		}
	}
	bytes := address.As16()
	var groups []string
	for i := 0; i < len(bytes); i += 2 {
		groups = append(groups, fmt.Sprintf("%02x%02x", bytes[i], bytes[i+1]))
	}
	w.file(fmt.Sprintf("%sgids/%d", port, index), strings.Join(groups, ":")+"\n")
}
