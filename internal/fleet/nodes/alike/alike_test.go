package alike

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/fleet/nodes"
	"gdr-features/internal/label"
	"gdr-features/tristate"
)

// model is a kind of test nodes.
type model struct {
	name, gpu, gpuID  string
	gpus, nics, first int // first is the bus of the first GPU
	link              string
}

var hgx, l40s, a100 = model{"hgx", "H100 SXM5 80GB", "2330", 8, 8, 0x10, "Ethernet"}, model{"l40s", "L40S", "26b9", 4, 2, 0x20, "Ethernet"}, model{"a100", "A100 SXM4 40GB", "20b0", 8, 8, 0x10, "InfiniBand"}

// node is a node of a model with everything alike.
func (m model) node(i int) nodes.Node {
	n := nodes.Node{
		Name: fmt.Sprintf("%s-%03d", m.name, i), Namespace: "gdr",
		Labels:   label.Set{label.Ready: "true", label.Level: "PIX", label.MOFED: "24.10-1.1.4", label.Peermem: "true", label.DMABuf: "true", label.IOMMU: "passthrough"},
		Hardware: &nodes.Hardware{Software: &nodes.Software{Kernel: "6.8.0-45-generic", Driver: "570.86.15", DriverOpen: "true"}},
	}
	for g := range m.gpus {
		n.Hardware.GPUs = append(n.Hardware.GPUs, nodes.Function{
			Address: fmt.Sprintf("0000:%02x:00.0", m.first+4*g), Family: "nvidia", Device: m.gpuID, Name: m.gpu, NUMANode: fmt.Sprint(2 * g / m.gpus),
		})
	}
	for r := range m.nics {
		f := nodes.Function{
			Address: fmt.Sprintf("0000:%02x:00.0", m.first+4*r+1), Family: "mlx5", Device: "1021", Name: "ConnectX-7", NUMANode: fmt.Sprint(2 * r / m.nics),
			RDMA: fmt.Sprintf("mlx5_%d", r), Rail: fmt.Sprint(r), State: "ACTIVE", Link: m.link, Rate: "400",
		}
		if m.link == "Ethernet" {
			f.MTU, f.GIDIndex = "4096", "3"
		}
		n.Hardware.NICs = append(n.Hardware.NICs, f)
	}
	// What no job uses does not count.
	n.Hardware.NICs = append(n.Hardware.NICs, nodes.Function{Address: "0000:02:00.0", Family: "mlx5", Device: "101f", RDMA: fmt.Sprint("mlx5_mgmt", i), State: "DOWN"})
	return n
}

// nodes are some of a model.
func (m model) nodes(n int) (all []nodes.Node) {
	for i := range n {
		all = append(all, m.node(i))
	}
	return all
}

// seven changes seven nodes of 200, each in another fact.
func seven() []nodes.Node {
	h, l, a := hgx.nodes(120), l40s.nodes(50), a100.nodes(30)
	h[7].Hardware.NICs[3].RDMA = "mlx5_9" // 1: a name
	for r := range hgx.nics {             // 2: MTU
		h[14].Hardware.NICs[r].MTU = "1024"
	}
	h[20].Hardware.NICs = slices.Delete(h[20].Hardware.NICs, 5, 6) // 3: a NIC less, and later rails count down
	for i := 5; i < 7; i++ {
		h[20].Hardware.NICs[i].Rail = fmt.Sprint(i)
	}
	h[21].Hardware.Software.Kernel = "6.8.0-49-generic" // 4: kernel
	l[3].Hardware.NICs[1].GIDIndex = "5"                // 5: GID index
	l[4].Labels[label.Ready], l[4].Labels[label.Reason] = "false", "PeermemNotLoaded"
	l[4].Findings = []nodes.Finding{{Check: "peermem", Status: nodes.Fail, Code: "PeermemNotLoaded"}, {Check: "dmabuf", Status: nodes.Fail, Code: "ClosedDriver"}} // 6: not ready
	a[9].Hardware.NICs[0].State, a[9].Hardware.NICs[0].Rate = "DOWN", "10"                                                                                         // 7: a port is down
	return slices.Concat(h, l, a)
}

const sevenText = `8x H100 SXM5 80GB, 8x ConnectX-7: 120 nodes, 4 differ
FACT             JOB   HERE                   MOST                             NODES
device names     yes   mlx5_9 on rail 3       mlx5_3 (119 of 120)              hgx-007
active MTU       yes   1024 on mlx5_0 to mlx5_7   4096 (119 of 120)                hgx-014
number of NICs   yes   7, without mlx5_5      8 (119 of 120)                   hgx-020
kernel           -     6.8.0-49-generic       6.8.0-45-generic (119 of 120)    hgx-021

4x L40S, 2x ConnectX-7: 50 nodes, 2 differ
FACT        JOB   HERE                             MOST               NODES
GID index   yes   5 on mlx5_1                    3 (49 of 50)       l40s-003
ready       -     false PeermemNotLoaded           true (49 of 50)    l40s-004
findings    -     ClosedDriver PeermemNotLoaded    none (49 of 50)    l40s-004

8x A100 SXM4 40GB, 8x ConnectX-7: 30 nodes, 1 differ
FACT         JOB   HERE              MOST                NODES
port state   yes   DOWN on mlx5_0   ACTIVE (29 of 30)   a100-009
not known: active MTU of 30 nodes

200 nodes of 3 kinds: 193 alike, 7 differ
`

// squeezed has no more than three spaces in a row: how wide columns are is not the point.
func squeezed(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for strings.Contains(line, "    ") {
			line = strings.ReplaceAll(line, "    ", "   ")
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

func TestSevenDifferences(t *testing.T) {
	all := seven()
	slices.Reverse(all) // their order does not matter
	r := Compare(all)
	var out strings.Builder
	if err := Text(&out, &r, nodes.Style{Headers: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(squeezed(sevenText), squeezed(out.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Alike() != tristate.False {
		t.Errorf("alike: %v", r.Alike())
	}
	out.Reset()
	if err := Text(&out, &r, nodes.Style{Wide: true, Namespaces: true}); err != nil {
		t.Fatal(err)
	}
	const first, second = "gdr   hgx-007   device names   yes   3   mlx5_9   0000:1d:00.0   mlx5_9   mlx5_3 (119 of 120)", "gdr   hgx-014   active MTU   yes   0   mlx5_0   0000:11:00.0   1024   4096 (119 of 120)"
	lines := strings.Split(squeezed(out.String()), "\n")
	if len(lines) != 1+8+1+1+1+2+1+1 || lines[0] != first || lines[1] != second {
		t.Errorf("-o wide: %d lines\n%s", len(lines), out.String())
	}
}

func TestJSON(t *testing.T) {
	all := append(seven(), nodes.Node{Name: "old", Labels: label.Set{label.Ready: "true"}, Hardware: &nodes.Hardware{}}, nodes.Node{Name: "cpu"})
	r := Compare(all)
	var out strings.Builder
	if err := JSON(&out, &r); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Alike bool
		Older []string
		Kinds []struct {
			GPUs, NICs  []nodes.Product
			Nodes       []string
			Differences []map[string]any
			Unknown     map[string]int
		}
		Summary Summary
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Alike || len(got.Kinds) != 3 || got.Summary != (Summary{Nodes: 200, Kinds: 3, Differing: 7, Older: 1, Unlabelled: 1}) || !slices.Equal(got.Older, []string{"old"}) {
		t.Errorf("%+v", got.Summary)
	}
	want := map[string]any{
		"node": "hgx-007", "namespace": "gdr", "fact": "names", "job": true, "rail": 3.0, "address": "0000:1d:00.0", "rdma": "mlx5_9",
		"here": "mlx5_9", "most": "mlx5_3", "detail": "", "with": 119.0, "of": 120.0,
	}
	if diff := cmp.Diff(want, got.Kinds[0].Differences[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	last := got.Kinds[0].Differences[len(got.Kinds[0].Differences)-1]
	if last["fact"] != "kernel" || last["rail"] != nil || last["job"] != false {
		t.Errorf("%+v", last)
	}
	if got.Kinds[2].Unknown["mtu"] != 30 || got.Kinds[2].Unknown["gid"] != 0 || got.Kinds[0].Unknown["mtu"] != 0 {
		t.Errorf("unknown: %v, %v", got.Kinds[2].Unknown, got.Kinds[0].Unknown)
	}
	none := Compare(nil)
	out.Reset()
	if err := JSON(&out, &none); err != nil || !strings.Contains(out.String(), `"kinds": []`) || !strings.Contains(out.String(), `"alike": true`) {
		t.Errorf("of no nodes: %s, %v", out.String(), err)
	}
}

// TestKinds: which nodes are of one kind.
func TestKinds(t *testing.T) {
	moved := func(n nodes.Node, by int) nodes.Node { // firmware numbers all buses anew
		for _, list := range [][]nodes.Function{n.Hardware.GPUs, n.Hardware.NICs} {
			for i := range list {
				list[i].Address = fmt.Sprintf("0000:%02x:00.0", 0x80+by+i+len(n.Hardware.GPUs)*len(list[i].Rail))
			}
		}
		return n
	}
	without := func(n nodes.Node, gpus, nics int) nodes.Node {
		n.Hardware.GPUs, n.Hardware.NICs = n.Hardware.GPUs[gpus:], n.Hardware.NICs[nics:]
		return n
	}
	replaced := hgx.node(9)
	replaced.Hardware.NICs[0].Device, replaced.Hardware.NICs[0].Name = "101b", "ConnectX-6"
	half := hgx
	half.gpus, half.nics = 4, 4
	one := model{"one", "H100", "2330", 1, 1, 0x10, "InfiniBand"}
	two := one
	two.gpus, two.nics = 2, 2
	for name, tc := range map[string]struct {
		odd  nodes.Node
		of   model
		same bool
		want string // the facts that differ
	}{
		"a NIC is missing":             {without(hgx.node(9), 0, 1), hgx, true, "nics"},
		"half of the NICs":             {without(hgx.node(9), 0, 4), hgx, true, "nics"},
		"no NIC":                       {without(hgx.node(9), 0, 9), hgx, true, "nics"},
		"a GPU is missing":             {without(hgx.node(9), 1, 0), hgx, true, "gpus"},
		"a NIC is another":             {replaced, hgx, true, "product"},
		"its only NIC is missing":      {without(one.node(9), 0, 2), one, true, "nics"},
		"a NIC less, and renumbered":   {moved(without(hgx.node(9), 0, 1), 0), hgx, true, "nics"},
		"renumbered alone":             {moved(hgx.node(9), 0), hgx, false, ""},
		"half a machine":               {half.node(9), hgx, false, ""},
		"half a small machine":         {one.node(9), two, false, ""},
		"other GPUs at the same place": {a100.node(9), hgx, false, ""},
		"another model":                {l40s.node(9), hgx, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := Compare(append(tc.of.nodes(3), tc.odd))
			if same := len(r.Kinds) == 1; same != tc.same {
				t.Fatalf("%d kinds", len(r.Kinds))
			}
			var got []string
			for _, d := range r.Kinds[0].Differences {
				got = append(got, d.Key)
			}
			if got := strings.Join(slices.Compact(got), " "); got != tc.want {
				t.Errorf("differs in %q, want %q", got, tc.want)
			}
		})
	}
}

// TestFacts: the smallest change of a node, and the difference that it makes.
func TestFacts(t *testing.T) {
	nic := func(change func(*nodes.Function)) func(*nodes.Node) {
		return func(n *nodes.Node) { change(&n.Hardware.NICs[1]) }
	}
	for name, tc := range map[string]struct {
		change func(*nodes.Node)
		want   string
	}{
		"nothing":   {func(*nodes.Node) {}, ""},
		"name":      {nic(func(f *nodes.Function) { f.RDMA = "rocep1s0" }), "names rocep1s0 mlx5_1"},
		"MTU":       {nic(func(f *nodes.Function) { f.MTU = "2048" }), "mtu 2048 4096"},
		"no MTU":    {nic(func(f *nodes.Function) { f.MTU = "" }), ""},
		"down":      {nic(func(f *nodes.Function) { f.State, f.MTU, f.Rate, f.Link = "DOWN", "1024", "10", "Ethernet" }), "port DOWN ACTIVE"},
		"link":      {nic(func(f *nodes.Function) { f.Link = "InfiniBand" }), "link InfiniBand Ethernet"},
		"GID":       {nic(func(f *nodes.Function) { f.GIDIndex = "1" }), "gid 1 3"},
		"rate":      {nic(func(f *nodes.Function) { f.Rate = "200" }), "rate 200 400"},
		"NUMA":      {nic(func(f *nodes.Function) { f.NUMANode = "0" }), "numa 0 1"},
		"driver":    {func(n *nodes.Node) { n.Hardware.Software.Driver = "580.65.06" }, "driver 580.65.06 open 570.86.15 open"},
		"closed":    {func(n *nodes.Node) { n.Hardware.Software.DriverOpen = "false" }, "driver 570.86.15 570.86.15 open"},
		"no driver": {func(n *nodes.Node) { n.Hardware.Software.Driver = "" }, ""},
		"stack":     {func(n *nodes.Node) { n.Labels[label.MOFED] = "inbox" }, "stack inbox 24.10-1.1.4"},
		"level":     {func(n *nodes.Node) { n.Labels[label.Level] = "NODE" }, "level NODE PIX"},
		"IOMMU":     {func(n *nodes.Node) { n.Labels[label.IOMMU] = "translated" }, "iommu translated passthrough"},
		"ACS":       {func(n *nodes.Node) { n.Labels[label.ACS] = "redirect" }, ""}, // of the others it is not known
	} {
		all := l40s.nodes(3)
		tc.change(&all[1])
		r := Compare(all)
		var got []string
		for _, d := range r.Kinds[0].Differences {
			got = append(got, d.Key+" "+d.Here+" "+d.Most)
			if d.Node != "l40s-001" || d.With != 2 || d.Of != 3 {
				t.Errorf("%s: %+v", name, d)
			}
		}
		if got := strings.Join(got, "; "); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Of two nodes neither is the majority: the first counts, and the numbers show it.
func TestTwoNodes(t *testing.T) {
	all := l40s.nodes(2)
	all[1].Hardware.Software.Kernel = "6.1"
	r := Compare(all)
	if d := r.Kinds[0].Differences; len(d) != 1 || d[0].Node != "l40s-001" || d[0].With != 1 || d[0].Of != 2 {
		t.Errorf("%+v", d)
	}
}

// TestFold: what the rails of a node have in common stands in one line.
func TestFold(t *testing.T) {
	all := hgx.nodes(9)
	for i := range hgx.nics { // all names are one further
		all[4].Hardware.NICs[i].RDMA = fmt.Sprintf("mlx5_%d", i+1)
	}
	for _, i := range []int{0, 1, 2, 5} {
		all[5].Hardware.NICs[i].Rate, all[6].Hardware.NICs[i].Rate = "200", "200"
	}
	for i := range all[:6] {
		all[i].Hardware.Software.Kernel = "6.1"
	}
	r := Compare(all)
	var out strings.Builder
	if err := Text(&out, &r, nodes.Style{}); err != nil {
		t.Fatal(err)
	}
	const want = `device names   yes   rail 0: mlx5_1, rail 1: mlx5_2 and 6 more   mlx5_0 (8 of 9), mlx5_1 (8 of 9)   hgx-004
rate   -   200 on mlx5_0 to mlx5_2, mlx5_5   400 (7 of 9)   hgx-005, hgx-006
kernel   -   6.8.0-45-generic   6.1 (6 of 9)   hgx-006, hgx-007, hgx-008
`
	if diff := cmp.Diff(want, squeezed(out.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Names that agents of anybody have published do not reach the terminal, and not even a
// fleet without two nodes of one kind takes long.
func TestHostile(t *testing.T) {
	var all []nodes.Node
	for i := range 1000 {
		m := hgx
		m.name, m.gpuID, m.gpu, m.first = fmt.Sprint("n", i), fmt.Sprintf("%04x", i), "\x1b[2J\nH100", 0x10+i%8
		n := m.node(i)
		n.Hardware.NICs[0].RDMA, n.Hardware.NICs[1].Address = "mlx5\t\x1b[0m\n", n.Hardware.NICs[0].Address
		all = append(all, n)
	}
	r := Compare(all)
	for _, wide := range []bool{false, true} {
		var out strings.Builder
		if err := Text(&out, &r, nodes.Style{Headers: true, Wide: wide}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\t") {
			t.Error("control characters")
		}
	}
}
