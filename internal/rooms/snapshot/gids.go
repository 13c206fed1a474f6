package snapshot

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gdr-features/source/rdma"
)

// isGID reports whether a file is an entry of the GID table of a port.
func isGID(name string) bool {
	dir, _ := path.Split(name)
	return isGIDs(path.Clean(dir))
}

// isGIDs reports whether a directory is the GID table of a port, ".../ports/1/gids".
func isGIDs(dir string) bool {
	port, base := path.Split(dir)
	return base == rdma.GIDFile && path.Base(path.Dir(path.Clean(port))) == "ports"
}

// gid replaces the address of an entry by a number. Its kind remains, by which commands judge
// it: empty, link-local, IPv4, and any other, which becomes one of the range for
// documentation. The interface of a link-local one is a GUID, or is made of a MAC. Of what
// is no GID, only the form remains.
func (s *scrubber) gid(a *answer) {
	address, err := netip.ParseAddr(strings.TrimSpace(string(a.data)))
	if err != nil || !address.Is6() || address.Zone() != "" || a.stop != nil {
		overwrite(a.data)
		return
	}
	digits := address.As16()
	text := fmt.Sprintf("%x", digits)
	gid := rdma.GID{Address: address}
	switch {
	case address.IsUnspecified():
	case gid.LinkLocal():
		text = text[:16] + fmt.Sprintf("%016d", s.number(text[16:]))
	case gid.IPv4():
		text = text[:24] + fmt.Sprintf("%08d", s.number("IPv4 "+text[24:]))
	default:
		text = "20010db8" + fmt.Sprintf("%024d", s.number("GID "+text))
	}
	var groups []string
	for group := range slices.Chunk([]byte(text), 4) {
		groups = append(groups, string(group))
	}
	a.data = []byte(strings.Join(groups, ":") + "\n")
}

// withoutLastGIDs takes the empty entries behind the last one that is in use out of the GID
// tables of ports: of some NICs that are more than 200 for each port. A table that ends
// there says the same.
func (r *Recording) withoutLastGIDs() {
	for q, table := range r.answers {
		if q.kind != list || !isGIDs(q.name) || table.err != nil || table.stop != nil {
			continue
		}
		last := -1
		for _, name := range table.names {
			if index, err := strconv.Atoi(name); err == nil && !r.emptyGID(q.name, name) {
				last = max(last, index)
			}
		}
		table.names = slices.DeleteFunc(table.names, func(name string) bool {
			index, err := strconv.Atoi(name)
			behind := err == nil && index > last
			if behind {
				delete(r.answers, question{name: q.name + "/" + name, kind: read})
			}
			return behind
		})
	}
}

// emptyGID: the entry is zeros, or the kernel refuses to read it as it does with those of other
// network namespaces (rdma.ReadGIDs).
func (r *Recording) emptyGID(dir, name string) bool {
	a := r.answers[question{name: dir + "/" + name, kind: read}]
	if a == nil {
		return false
	}
	address, err := netip.ParseAddr(strings.TrimSpace(string(a.data)))
	return errors.Is(a.err, unix.EINVAL) || a.err == nil && a.stop == nil && err == nil && address == netip.IPv6Unspecified()
}
