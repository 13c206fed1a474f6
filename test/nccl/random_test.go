//go:build nccl

package nccl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gdr-features/test/machine"
	"gdr-features/topology/nccl"
)

// trees is how many random machines are compared.
func trees(t *testing.T) int {
	t.Helper()
	text := os.Getenv("TREES")
	if text == "" {
		return 200
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// grower makes an unusual machine, for which the rules must hold too.
type grower struct {
	*rand.Rand
	text      strings.Builder
	functions []string // GPUs and NICs
	bus, nic  int
	domain    string
}

// switchIDs are those of switches that NCCL knows, and of others.
var switchIDs = [...]string{
	"1000:c010 sub=1000:a096", "1000:c010 sub=1000:a001", "1000:c030 sub=1000:0001", "1000:c030 sub=1000:0016",
	"1000:c030 sub=1000:1001", "1000:c030 sub=1000:1016", "11f8:4000", "10b5:8796",
}

func (g *grower) line(depth int, format string, args ...any) {
	fmt.Fprintf(&g.text, "%s%s\n", strings.Repeat("  ", depth), fmt.Sprintf(format, args...))
}

func (g *grower) nextBus() int { g.bus++; return g.bus }

// below puts functions on a bus.
func (g *grower) below(depth, bus int) {
	at := fmt.Sprintf("%s:%02x:00.0", g.domain, bus)
	switch kind := g.IntN(10); {
	case kind < 4 && depth < 9:
		g.line(depth, "%s switch %s", at, switchIDs[g.IntN(len(switchIDs))])
		inner := g.nextBus()
		for port := range 1 + g.IntN(4) {
			g.line(depth+1, "%s:%02x:%02x.0 port 1000:c030", g.domain, inner, port)
			if g.IntN(8) > 0 {
				g.below(depth+2, g.nextBus())
			}
		}
	case kind < 5 && depth < 9: // one bridge more than a switch has
		g.line(depth, "%s port 1b21:1080", at)
		g.below(depth+1, g.nextBus())
	case kind < 7:
		g.line(depth, "%s gpu 10de:2330", at)
		g.functions = append(g.functions, at)
	default:
		g.addNIC(depth, bus)
	}
}

// addNIC puts a NIC on a bus: a card with one or two ports, one at another
// device number, or a virtual function on its own or below its physical one.
func (g *grower) addNIC(depth, bus int) {
	at := func(device, function int) string {
		return fmt.Sprintf("%s:%02x:%02x.%x", g.domain, bus, device, function)
	}
	put := func(address, more string) {
		g.line(depth, "%s ib 15b3:%s rdma=mlx5_%d", address, more, g.nic)
		g.functions = append(g.functions, address)
		g.nic++
	}
	switch g.IntN(6) {
	case 0:
		put(at(0, 0), "1021")
		put(at(0, 1), "1021")
	case 1:
		put(at(1+g.IntN(20), 0), "1021") // nothing at device 0
	case 2:
		put(at(0, 0), "1021")
		put(at(3, g.IntN(8)), "101e physfn="+at(0, 0))
	case 3:
		put(at(2, 1), "101e")
		g.line(depth, "%s 010802 144d:a80a", at(0, 0)) // another function in its place
	default:
		put(at(0, 0), "1021")
	}
}

// grow describes a machine.
func grow(seed uint64) (description string, functions []string) {
	g := &grower{Rand: rand.New(rand.NewPCG(seed, 2307))}
	nodes := 1 + g.IntN(4)
	fmt.Fprintf(&g.text, "title Random %d\nnodes %d\n\n", seed, nodes)
	for root := range 1 + g.IntN(6) {
		g.domain, g.bus = fmt.Sprintf("%04x", root/2), root%2*0x80
		switch g.IntN(8) {
		case 0:
			g.domain = fmt.Sprintf("%05x", 0x10000+root)
		case 1:
			g.domain = fmt.Sprintf("%04x", 0xa000+root)
		}
		g.line(0, "pci%s:%02x numa=%d", g.domain, g.bus, g.IntN(nodes+1)-1)
		root := g.bus
		for port := range 1 + g.IntN(4) {
			if g.IntN(6) == 0 {
				g.nicOrGPU(root, port)
				continue
			}
			g.line(1, "%s:%02x:%02x.0 port 8086:352a", g.domain, root, port+1)
			g.below(2, g.nextBus())
		}
	}
	return g.text.String(), g.functions
}

// partitions links some switches of a machine inside the chip, a few of them in one direction alone:
// not those of which one is below the other, which are no partitions.
func partitions(r *rand.Rand, text string) string {
	lines, at, links := strings.Split(text, "\n"), []int(nil), map[int][]string{}
	for i, line := range lines {
		if strings.Contains(line, " switch 1000:") {
			at = append(at, i)
		}
	}
	address := func(i int) string { return strings.Fields(lines[i])[0] }
	for range min(len(at), 1+r.IntN(3)) {
		a, b := at[r.IntN(len(at))], at[r.IntN(len(at))]
		if nested(lines, min(a, b), max(a, b)) {
			continue
		}
		if links[a] = append(links[a], address(b)); r.IntN(10) > 0 {
			links[b] = append(links[b], address(a))
		}
	}
	for i, to := range links {
		slices.Sort(to)
		lines[i] += " link=" + strings.Join(slices.Compact(to), ",")
	}
	return strings.Join(lines, "\n")
}

// nested reports whether the second of two lines is below the first, or the same.
func nested(lines []string, upper, lower int) bool {
	depth := func(i int) int { return len(lines[i]) - len(strings.TrimLeft(lines[i], " ")) }
	for i := upper + 1; i <= lower; i++ {
		if depth(i) <= depth(upper) {
			return false
		}
	}
	return true
}

// TestRandomPartitions compares random machines whose switches have links between partitions.
func TestRandomPartitions(t *testing.T) {
	pairs, linked, failed := 0, 0, 0
	for seed := range trees(t) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			text, _ := grow(uint64(seed))
			text = partitions(rand.New(rand.NewPCG(uint64(seed), 13)), text)
			if !strings.Contains(text, "link=") {
				return
			}
			m, err := machine.Parse(text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			root := m.Tree(t, m.Ready())
			addBuses(t, root)
			r := collect(t, root, nil)
			if len(r.Matrix.GPUs) == 0 {
				return
			}
			a := ask(t, &r, question{root: root})
			if a.fails == "" && errors.Is(r.Matrix.NCCL.Failed, nccl.ErrStale) {
				t.Skipf("not compared, NCCL starts: %v", r.Matrix.NCCL.Failed)
			}
			if !tooLarge(a) && (a.fails != "") != (r.Matrix.NCCL.Failed != nil) {
				t.Errorf("NCCL %q, we %v", a.fails, r.Matrix.NCCL.Failed)
			}
			if linked++; a.fails != "" {
				failed++
			}
			pairs += compare(t, "sysfs", &r, a)
			if t.Failed() {
				t.Log(text)
			}
		})
	}
	t.Logf("%d pairs of %d machines, of which NCCL refuses %d", pairs, linked, failed)
}

// nicOrGPU puts a function on the root bus itself.
func (g *grower) nicOrGPU(bus, device int) {
	address := fmt.Sprintf("%s:%02x:%02x.0", g.domain, bus, 16+device)
	what := fmt.Sprintf("ib 15b3:1021 rdma=mlx5_%d", g.nic)
	if g.IntN(2) == 0 {
		what = "gpu 10de:2330"
	} else {
		g.nic++
	}
	g.line(1, "%s %s", address, what)
	g.functions = append(g.functions, address)
}

func plant(t *testing.T, seed uint64) (root string, functions []string) {
	t.Helper()
	text, functions := grow(seed)
	m, err := machine.Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return m.Tree(t, m.Ready()), functions
}

// TestRandomTrees compares random machines.
func TestRandomTrees(t *testing.T) {
	pairs := 0
	for seed := range trees(t) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			root, _ := plant(t, uint64(seed))
			n, _ := bothWays(t, root)
			pairs += n
		})
	}
	t.Logf("%d pairs", pairs)
}

// TestRandomFiles compares machines with topology files that name some of their
// functions, in places of their own, some twice.
func TestRandomFiles(t *testing.T) {
	pairs := 0
	for seed := range trees(t) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			root, functions := plant(t, uint64(seed))
			addBuses(t, root)
			text := topologyFile(rand.New(rand.NewPCG(uint64(seed), 11)), functions)
			n, _ := compareFile(t, root, text)
			pairs += n
		})
	}
	t.Logf("%d pairs", pairs)
}

// compareFile compares a machine with a topology file.
func compareFile(t *testing.T, root, text string) (pairs int, answers map[string]string) {
	t.Helper()
	file, err := nccl.ParseFile([]byte(text))
	if err != nil {
		t.Skip("no function in it")
	}
	r := collect(t, root, file)
	if len(r.Matrix.GPUs) == 0 {
		return 0, nil
	}
	if err := os.WriteFile(filepath.Join(root, "topo.xml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	a := ask(t, &r, question{root: root, file: "/topo.xml"})
	if a.fails == "" && errors.Is(r.Matrix.NCCL.Failed, nccl.ErrStale) {
		t.Skipf("not compared, NCCL starts: %v", r.Matrix.NCCL.Failed)
	}
	pairs = compare(t, "file", &r, a)
	if t.Failed() {
		t.Logf("we say that NCCL fails: %v\n%s", r.Matrix.NCCL.Failed, text)
	}
	return pairs, a.levels
}

// TestRandomNames compares machines with such files that name some RDMA devices too: on
// their own functions, on those of others, on switches, on CPUs, some twice.
func TestRandomNames(t *testing.T) {
	pairs := 0
	for seed := range trees(t) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			root, functions := plant(t, uint64(seed))
			addBuses(t, root)
			r := rand.New(rand.NewPCG(uint64(seed), 12))
			text := withNames(r, topologyFile(r, functions))
			n, _ := compareFile(t, root, text)
			pairs += n
		})
	}
	t.Logf("%d pairs", pairs)
}

// withNames adds names of RDMA devices to elements of a topology file. The elements get what NCCL
// needs of those it does not come by, and a few do not.
func withNames(r *rand.Rand, text string) string {
	nic := func() string {
		return fmt.Sprintf("<nic>\n<net name=\"mlx5_%d\" dev=\"%d\"/>\n</nic>\n", r.IntN(12), r.IntN(12))
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "<pci ") && r.IntN(50) > 0 {
			line = strings.Replace(line, "<pci ", `<pci link_speed="32.0 GT/s PCIe" link_width="16" `, 1)
		}
		if strings.HasPrefix(line, "<cpu ") && r.IntN(20) == 0 {
			line = strings.Replace(line, [...]string{` arch="x86_64"`, ` vendor="GenuineIntel"`, ` modelid="143"`}[r.IntN(3)], "", 1)
		}
		switch leaf := strings.HasSuffix(line, "/>\n"); {
		case leaf && r.IntN(2) == 0:
			line = strings.TrimSuffix(line, "/>\n") + ">\n" + nic() + "</pci>\n"
		case strings.HasPrefix(line, "<cpu ") && r.IntN(5) == 0:
			line += nic()
		case strings.HasPrefix(line, "</cpu>") && r.IntN(2) == 0:
			line = fmt.Sprintf("<pci busid=\"eeee:ee:%02x.0\" class=\"0x060000\" link_speed=\"\" link_width=\"0\">\n%s</pci>\n", r.IntN(12), nic()) + line
		}
		b.WriteString(line)
	}
	return b.String()
}

// topologyFile writes a file with about half of the functions.
func topologyFile(r *rand.Rand, functions []string) string {
	var b strings.Builder
	b.WriteString("<system version=\"1\">\n")
	const cpuAttributes = ` arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"`
	leaf := func() string {
		if len(functions) == 0 {
			return ""
		}
		return fmt.Sprintf("<pci busid=%q class=\"0x020700\"/>\n", functions[r.IntN(len(functions))])
	}
	bridge := func(inner string) string {
		ids := ""
		if r.IntN(2) == 0 {
			ids = fmt.Sprintf(` vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x%d001"`, r.IntN(2))
		}
		return fmt.Sprintf("<pci busid=\"ffff:ff:%02x.0\" class=\"0x060400\"%s>\n%s</pci>\n", r.IntN(12), ids, inner)
	}
	for cpu := range 1 + r.IntN(3) {
		fmt.Fprintf(&b, "<cpu numaid=\"%d\"%s>\n", cpu, cpuAttributes)
		for range r.IntN(4) {
			switch r.IntN(4) {
			case 0:
				b.WriteString(leaf())
			case 1:
				b.WriteString(bridge(leaf() + leaf()))
			case 2:
				b.WriteString(bridge(bridge(leaf()+leaf()) + leaf()))
			default:
				b.WriteString(bridge(bridge(leaf()) + bridge(bridge(leaf())+leaf())))
			}
		}
		b.WriteString("</cpu>\n")
	}
	b.WriteString("</system>\n")
	return b.String()
}
