package pci

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gdr-features/host"
)

// numa parses what was read of numa_node; Unread with an error. A kernel without NUMA has
// no such file, and no nodes.
func (s *scanner) numa(base, text string, err error) (int, error) {
	switch {
	case host.Absent(err) && (s.inv.NUMANodes == 0 || s.inv.NUMANodes == 1):
		return None, nil
	case err != nil:
		return Unread, err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < None || n > maxNUMANode {
		return Unread, fmt.Errorf("/%snuma_node: %q is not a NUMA node", base, text)
	}
	return n, nil
}

// maxNUMANode is beyond every kernel's MAX_NUMNODES (1 << NODES_SHIFT, 10).
const maxNUMANode = 4096

// inheritNUMA finds, for GPUs and NICs, the NUMA node of the nearest bridge
// above where they have none of their own, and that of the topmost switch.
func (s *scanner) inheritNUMA() {
	known := map[Address]int{}
	numa := func(bridge Address) int {
		n, ok := known[bridge]
		if !ok {
			n = s.bridgeNUMA(bridge)
			known[bridge] = n
		}
		return n
	}
	for f := range s.inv.All() {
		f.NearNUMA, f.RootNUMA = f.NUMA, f.NUMA
		network := s.what.Details && f.Class>>16 == 0x02 // other vendors' too
		if !f.classified() && !network {
			continue
		}
		for j := len(f.Bridges) - 1; j >= 0 && f.NearNUMA < 0; j-- {
			f.NearNUMA = numa(f.Bridges[j])
		}
		if switches := f.Switches(); len(switches) > 0 {
			f.RootNUMA = numa(switches[len(switches)-1])
		}
		if f.RootNUMA == Unread && f.NearNUMA >= 0 {
			f.RootNUMA = f.NearNUMA // the kernel gives all of a root bus one node
		}
	}
}

func (s *scanner) bridgeNUMA(a Address) int {
	if s.what.Details {
		if f := s.inv.Find(a); f != nil {
			return f.NUMA
		}
		return Unread
	}
	text, err := s.fs.Line(a.dir() + "/" + NUMAFile)
	n, err := s.numa(a.dir()+"/", text, err)
	s.problem(err) // a bridge without one is no problem: what is below it may have one
	return n
}

const nodesDir = "sys/devices/system/node"

// cpuNodes finds out whether one node alone has CPUs, if a function without a node asks (kernel:
// Documentation/ABI/stable/sysfs-devices-node). The kernel names the nodes with CPUs that are
// online, so all must be.
func (s *scanner) cpuNodes() {
	asks := func(f Function) bool { return f.classified() && f.NearNUMA == None }
	if s.inv.NUMANodes < 2 || !slices.ContainsFunc(s.inv.Functions, asks) {
		return
	}
	nodes, err := s.fs.Line(nodesDir + "/has_cpu")
	if err != nil {
		return // any node may have CPUs, as without the file
	}
	const cpus = "sys/devices/system/cpu/"
	present, err := s.fs.Line(cpus + "present")
	if online, e := s.fs.Line(cpus + "online"); err == nil && e == nil && online == present {
		_, err := strconv.ParseUint(nodes, 10, 16) // a list of several has a comma or a hyphen
		s.inv.OneCPUNode = err == nil
	}
}

func (s *scanner) numaNodes() {
	names, err := s.fs.Names(nodesDir)
	switch {
	case host.Absent(err):
		return // a kernel without NUMA
	case err != nil:
		s.inv.NUMANodes = None
		s.problem(err)
		return
	}
	for _, name := range names {
		number, ok := strings.CutPrefix(name, "node")
		if _, err := strconv.ParseUint(number, 10, 16); ok && err == nil {
			s.inv.NUMANodes++
		}
	}
}
