package platform

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"gdr-features/host"
	"gdr-features/source/pci"
)

// Files of the routes of this process's network namespace (kernel: net/ipv4/fib_trie.c,
// fib_route_seq_show; net/ipv6/route.c, rt6_info_route).
const (
	RoutesFile     = "proc/self/net/route"
	RoutesFileIPv6 = "proc/self/net/ipv6_route"
)

// initialNamespace is there only for processes in the initial network namespace, which is the
// node's: other namespaces lack it (kernel: net/core/sysctl_net_core.c, net_core_table).
const initialNamespace = "proc/sys/net/core/netdev_budget"

// DefaultRoute is a default route of the node, as far as it leads to PCI functions.
type DefaultRoute struct {
	// Interface is the network interface of the route, "bond0".
	Interface string
	// File is the file that has it: RoutesFile or RoutesFileIPv6 with a leading slash.
	File string
	// Only: there is no default route, and the interface is the only one on a PCI device
	// that any route of IPv4 leads over: it has the node's only address.
	Only bool
	// Functions are those of the interface or, where it is none of a device, of those below
	// it: of a VLAN, a bond, a bridge. From /sys/class/net/<interface>/device and lower_*.
	Functions []pci.Address
}

// Limits: a table of routes in bytes, interfaces one below the other, and all of them.
const (
	mostRoutes  = 1 << 20
	mostLevels  = 4
	mostLowered = 64
)

// defaultRoutes reads the default routes of the node with the lowest metric, for IPv4 and for
// IPv6, and the interface of the node's only address where there is none. A process in
// another network namespace, such as that of a Pod, learns nothing.
func (st *State) defaultRoutes(fs *host.FS) {
	initial, err := fs.Exists(initialNamespace)
	st.problem(err)
	if !initial {
		return
	}
	complete, others := true, []string(nil)
	for _, table := range [...]struct {
		file  string
		parse func(string) (string, uint64, bool)
	}{{RoutesFile, parseRoute}, {RoutesFileIPv6, parseRouteIPv6}} {
		text, err := fs.Bytes(table.file, mostRoutes)
		if err != nil {
			if !errors.Is(err, host.ErrEmpty) && !host.Absent(err) {
				st.problem(err)
				complete = false
			}
			continue
		}
		names := defaultInterfaces(string(text), table.parse)
		complete = complete && len(names) == 0
		for _, name := range names {
			st.routeOver(fs, name, "/"+table.file, false)
		}
		if table.file == RoutesFile {
			others = otherInterfaces(string(text))
		}
	}
	if !complete {
		return
	}
	for _, name := range others {
		st.routeOver(fs, name, "/"+RoutesFile, true)
	}
	if len(st.DefaultRoutes) > 1 {
		st.DefaultRoutes = nil
	}
}

// routeOver adds a route over an interface, if that leads to PCI functions.
func (st *State) routeOver(fs *host.FS, name, file string, only bool) {
	left := mostLowered
	if functions := st.below(fs, name, mostLevels, &left); len(functions) > 0 {
		st.DefaultRoutes = append(st.DefaultRoutes, DefaultRoute{name, file, only, functions})
	}
}

const mostInterfaces = 256

// otherInterfaces returns the interfaces of the routes of IPv4 that are no default routes,
// each once, the first few hundred.
func otherInterfaces(table string) (names []string) {
	for line := range strings.Lines(table) {
		if name, ok := parseOther(line); ok && len(names) < mostInterfaces && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// parseOther reads a line of the table of IPv4, if it is a route that is no default route.
func parseOther(line string) (name string, ok bool) {
	f := strings.Fields(line)
	if len(f) < 8 || !isInterface(f[0]) || !leads(f[3]) {
		return "", false
	}
	return f[0], f[1] != "00000000" || f[7] != "00000000"
}

// below returns the PCI functions of an interface, or of the interfaces below it. left bounds
// how many are looked at: they may be below each other in a circle.
func (st *State) below(fs *host.FS, name string, levels int, left *int) (functions []pci.Address) {
	if *left--; levels == 0 || *left < 0 {
		return nil
	}
	dir := "sys/class/net/" + name
	if to, err := fs.Resolve(dir + "/device"); err == nil {
		if a, _ := pci.LastAddress(to); a != nil {
			return []pci.Address{*a}
		}
		return nil // another kind of device, such as Hyper-V's, which has a function below it for speed alone
	}
	entries, err := fs.Names(dir)
	st.problem(err)
	for _, entry := range entries {
		if lower, ok := strings.CutPrefix(entry, "lower_"); ok && isInterface(lower) {
			functions = append(functions, st.below(fs, lower, levels-1, left)...)
		}
	}
	slices.SortFunc(functions, pci.Address.Compare)
	return slices.Compact(functions)
}

// defaultInterfaces returns the interfaces of the default routes with the lowest metric.
func defaultInterfaces(table string, parse func(line string) (name string, metric uint64, ok bool)) (names []string) {
	lowest := ^uint64(0)
	for line := range strings.Lines(table) {
		name, metric, ok := parse(line)
		switch {
		case !ok || !isInterface(name) || metric > lowest:
		case metric < lowest:
			lowest, names = metric, []string{name}
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names
}

// isInterface reports whether a name can be that of an interface (kernel: net/core/dev.c,
// dev_valid_name).
func isInterface(name string) bool {
	const most = 15
	return name != "" && len(name) <= most && path.Base(name) == name && name != "." && name != ".." && !strings.ContainsAny(name, ": \t\n\v\f\r")
}

// Flags of routes (kernel: include/uapi/linux/route.h).
const (
	routeUp     = 0x1
	routeReject = 0x200
)

// parseRoute reads a line of the table of IPv4, if it is a default route:
//
//	Iface Destination Gateway Flags RefCnt Use Metric Mask ...
func parseRoute(line string) (name string, metric uint64, ok bool) {
	f := strings.Fields(line)
	if len(f) < 8 || f[1] != "00000000" || f[7] != "00000000" {
		return "", 0, false
	}
	metric, err := strconv.ParseUint(f[6], 10, 32)
	return f[0], metric, err == nil && leads(f[3])
}

// parseRouteIPv6 reads a line of the table of IPv6, if it is a default route:
//
//	destination length source length next-hop metric refcnt use flags interface
func parseRouteIPv6(line string) (name string, metric uint64, ok bool) {
	f := strings.Fields(line)
	if len(f) != 10 || f[1] != "00" || strings.Trim(f[0], "0") != "" {
		return "", 0, false
	}
	metric, err := strconv.ParseUint(f[5], 16, 32)
	return f[9], metric, err == nil && leads(f[8])
}

func leads(flags string) bool {
	n, err := strconv.ParseUint(flags, 16, 32)
	return err == nil && n&routeUp != 0 && n&routeReject == 0
}

// WithoutAddresses returns a table of routes reduced to its default routes, with zeros in
// place of gateways and sources, and to one route for each other interface of IPv4, with ones
// in place of its addresses. It is for the file of that name.
func WithoutAddresses(name string, table []byte) []byte {
	parse, hide := parseRoute, []int{2}
	if name == RoutesFileIPv6 {
		parse, hide = parseRouteIPv6, []int{2, 4}
	}
	kept := []byte("\n") // an empty file would be another answer
	if name == RoutesFile {
		for _, iface := range otherInterfaces(string(table)) {
			kept = fmt.Appendf(kept, "%s\tFFFFFFFF\t00000000\t%04X\t0\t0\t0\tFFFFFFFF\n", iface, routeUp)
		}
	}
	for line := range strings.Lines(string(table)) {
		iface, _, ok := parse(line)
		if !ok || !isInterface(iface) {
			continue
		}
		fields := strings.Fields(line)
		for _, i := range hide {
			fields[i] = strings.Repeat("0", len(fields[i]))
		}
		kept = append(kept, strings.Join(fields, "\t")+"\n"...)
	}
	return kept
}
