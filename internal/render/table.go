package render

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/terminal"
	"gdr-features/internal/view"
	"gdr-features/source/pci"
	"gdr-features/topology"
)

func write(w io.Writer, parts ...string) error {
	_, err := io.WriteString(w, strings.Join(parts, ""))
	return err
}

// Labels writes labels as an NFD feature file: key=value a line, sorted.
func Labels(w io.Writer, labels label.Set, prefix string) error {
	var t strings.Builder
	for _, name := range labels.Names() {
		fmt.Fprintf(&t, "%s%s=%s\n", prefix, name, labels[name])
	}
	return write(w, t.String())
}

// columns aligns cells that are separated by tabs.
func columns(text string) string {
	var out bytes.Buffer
	tw := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	fmt.Fprint(tw, text)
	_ = tw.Flush() // writing to a bytes.Buffer never fails
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// Topo writes the matrix of GPUs and NICs, and a line about each of them.
func Topo(w io.Writer, r *report.Report) error {
	return topo(w, r, columns(devices(r)))
}

// topo writes the matrix, a list of devices and the legend.
func topo(w io.Writer, r *report.Report, list string) error {
	above, below := view.Nothing(&r.Node), ""
	if above == "" {
		above, below = matrix(r, terminal.Columns(w)), "\n"+legend(r)
	}
	if len(r.Matrix.GPUs)+len(r.Matrix.NICs) == 0 {
		list = ""
	}
	return write(w, above, "\n", list, below, problems(r))
}

// matrix has a row for each GPU and a column for each NIC.
func matrix(r *report.Report, width int) string {
	var nics []int
	for i, n := range r.Matrix.NICs {
		if !view.Folded(&r.Node, &n) {
			nics = append(nics, i)
		}
	}
	out := inParts(len(nics), width, func(from, to int) string { return matrixOf(r, nics[from:to]) })
	if left := len(r.Matrix.NICs) - len(nics); left > 0 {
		out += fmt.Sprintf("%d virtual functions have the levels of their physical functions (-o json lists them)\n", left)
	}
	return out
}

// inParts is a table of a number of columns. On a terminal, a table that is wider than it is written
// in parts, one below the other.
func inParts(count, width int, part func(from, to int) string) string {
	var parts []string
	for from := 0; from < count || len(parts) == 0; {
		to := count
		for width > 0 && to > from+1 && widest(part(from, to)) > width {
			to--
		}
		parts = append(parts, part(from, to))
		from = to
	}
	return strings.Join(parts, "\n")
}

func widest(table string) (most int) {
	for line := range strings.Lines(table) {
		most = max(most, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return most
}

func matrixOf(r *report.Report, nics []int) string {
	var t strings.Builder
	for _, i := range nics {
		t.WriteString("\t" + view.NICName(&r.Matrix.NICs[i]))
	}
	t.WriteString("\tNUMA\n")
	for i, g := range r.Matrix.GPUs {
		fmt.Fprintf(&t, "GPU%d %s", i, view.Short(g.Address.String()))
		for _, p := range r.Matrix.PairsOf(i) {
			if slices.Contains(nics, p.NIC) {
				t.WriteString("\t" + cmp.Or(p.Level.String(), "?"))
			}
		}
		t.WriteString("\t" + numa(g.NearNUMA) + "\n")
	}
	return columns(t.String())
}

func numa(n int) string {
	if n < 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func devices(r *report.Report) string {
	var t strings.Builder
	for i, g := range r.Matrix.GPUs {
		fmt.Fprintf(&t, "GPU%d\t%s\t%s\t%s\t%s\n", i, g.Address, view.Product(g.Function), view.Driver(g.Function), view.GPUNote(g))
	}
	for _, n := range r.Matrix.NICs {
		if view.Folded(&r.Node, &n) {
			continue
		}
		t.WriteString(nicLine(&n))
	}
	return t.String()
}

func nicLine(n *topology.NIC) string {
	what, driver := "software device", "-"
	if n.Function != nil {
		what, driver = view.Product(n.Function), view.Driver(n.Function)
	}
	return strings.Join([]string{cmp.Or(n.Name(), "-"), cmp.Or(n.Address(), "-"), what, driver, view.NICNote(n)}, "\t") + "\n"
}

// legend explains the levels, and what they are based on.
func legend(r *report.Report) string {
	var t strings.Builder
	for level, meaning := range view.Meanings {
		if meaning != "" {
			fmt.Fprintf(&t, "%v\t%s\n", topology.Level(level), meaning)
		}
	}
	return columns(t.String()) + map[topology.Origin]string{
		topology.Virtual:  "The levels are those of the PCI tree that the hypervisor shows.\n",
		topology.FromFile: "The levels are those of the NCCL topology file.\n",
	}[r.Matrix.Source()]
}

func problems(r *report.Report) string {
	if len(r.Problems) == 0 {
		return ""
	}
	const most = 20
	lines := sanitize.Errors(r.Problems[:min(len(r.Problems), most)])
	if more := len(r.Problems) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more (see -o json)", more))
	}
	return "\nNot readable:\n  " + strings.Join(lines, "\n  ") + "\n"
}

// TopoWide writes the matrix and, in addition to what Topo says about each device, its
// role, link, NUMA node, IOMMU group, firmware and network devices.
func TopoWide(w io.Writer, r *report.Report) error {
	rows := wideDevices(r)
	return topo(w, r, inParts(len(rows[0])-1, terminal.Columns(w), func(from, to int) string {
		var t strings.Builder
		for _, row := range rows { // each part has the name
			rest := row[min(1+from, len(row)):min(1+to, len(row))]
			t.WriteString(strings.Join(append([]string{row[0]}, rest...), "\t") + "\n")
		}
		return columns(t.String())
	}))
}

// wideDevices are the rows of a table, of which the first is its head.
func wideDevices(r *report.Report) [][]string {
	rows := [][]string{strings.Fields("NAME ADDRESS PRODUCT ROLE LINK NUMA IOMMU FIRMWARE BOARD NETDEV DRIVER")}
	for i, g := range r.Matrix.GPUs {
		role := "GPU"
		if !g.Counts() {
			role = "GPU, not supported"
		}
		rows = append(rows, wideRow(r, fmt.Sprintf("GPU%d", i), role, g.Function, nil))
	}
	for _, n := range r.Matrix.NICs {
		switch {
		case view.Folded(&r.Node, &n):
		case n.Function == nil:
			rows = append(rows, []string{cmp.Or(n.Name(), "-"), cmp.Or(n.Address(), "-"), "-", role(r, &n)})
		default:
			rows = append(rows, wideRow(r, cmp.Or(n.Name(), "-"), role(r, &n), n.Function, &n))
		}
	}
	for i := range r.PCI.Functions {
		if f := &r.PCI.Functions[i]; f.DataDirectOf != nil {
			rows = append(rows, wideRow(r, "-", "data direct", f, nil))
		}
	}
	return rows
}

func wideRow(r *report.Report, name, role string, f *pci.Function, n *topology.NIC) []string {
	firmware, board, netdevs := "-", "-", "-"
	if n != nil && n.RDMA != nil {
		firmware, board = cmp.Or(sanitize.Terminal(n.RDMA.Firmware), "-"), cmp.Or(sanitize.Terminal(n.RDMA.Board), "-")
		netdevs = cmp.Or(sanitize.Terminal(strings.Join(n.RDMA.NetDevs, ",")), "-")
	}
	return []string{
		name, f.Address.String(), view.Product(f), role, link(f.Link), numa(f.NearNUMA), group(f, r.Platform.IOMMU.Types[f.IOMMUGroup]),
		firmware, board, netdevs, view.Driver(f),
	}
}

func role(r *report.Report, n *topology.NIC) string {
	switch f := n.Function; {
	case f == nil && n.Address() == "":
		return "software device"
	case f == nil:
		return "not on the PCI bus"
	case n.NVLinkManagement():
		return "NVLink management"
	case n.Excluded():
		return "NIC, excluded"
	case f.Unidentified():
		return "NIC, not identified"
	case view.InNoTable(n):
		return "NIC, in no table"
	case !n.Counts():
		return "NIC, not eligible"
	case r.PCI.Physical(f) != nil:
		return "VF of " + view.Short(f.PhysFn.String())
	case f.PhysFn != nil:
		return "virtual function"
	case n.Role != "":
		return "NIC, " + string(n.Role)
	}
	return "NIC"
}

// TopoNCCLXML writes the machine as an NCCL topology file.
func TopoNCCLXML(w io.Writer, r *report.Report) error {
	file, err := r.Matrix.WriteFile(&r.PCI, r.Platform.CPU)
	if err != nil {
		return fmt.Errorf("-o nccl-xml: %w", err)
	}
	_, err = w.Write(file)
	return err
}
