package render

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

func hex4(n uint16) string { return fmt.Sprintf("%04x", n) }

// Labels writes labels as an NFD feature file: key=value a line, sorted.
func Labels(w io.Writer, labels label.Set, prefix string) error {
	var out bytes.Buffer
	for _, name := range labels.Names() {
		fmt.Fprintf(&out, "%s%s=%s\n", prefix, name, labels[name])
	}
	_, err := w.Write(out.Bytes())
	return err
}

// columns lines up cells that are separated by tabs.
func columns(text string) string {
	var out bytes.Buffer
	tw := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	fmt.Fprint(tw, text)
	_ = tw.Flush() // a bytes.Buffer takes everything
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// Topo writes the matrix of GPUs and NICs with what they are.
func Topo(w io.Writer, r *report.Report) error { return topo(w, r, devices) }

// topo writes the matrix, a list of devices and the legend.
func topo(w io.Writer, r *report.Report, devices func(*report.Report) string) error {
	var out strings.Builder
	switch {
	case len(r.Matrix.GPUs) == 0 && !r.PCIRead:
		out.WriteString("The PCI bus cannot be read.\n")
	case len(r.Matrix.GPUs) == 0:
		out.WriteString("No NVIDIA GPU on this machine.\n")
	case len(r.Matrix.NICs) == 0:
		out.WriteString("No RDMA device and no ConnectX or BlueField adapter on this machine.\n")
	default:
		out.WriteString(matrix(r) + "\n")
	}
	if len(r.Matrix.GPUs)+len(r.Matrix.NICs) > 0 {
		out.WriteString(columns(devices(r)))
	}
	if len(r.Matrix.Pairs) > 0 {
		out.WriteString("\n" + legend(r))
	}
	out.WriteString(problems(r))
	_, err := io.WriteString(w, out.String())
	return err
}

// wide is the number of NICs from which on virtual functions get no column.
const wide = 24

// Folded tells the NICs that have no column of their own in a wide matrix.
func Folded(r *report.Report, n *topology.NIC) bool {
	return len(r.Matrix.NICs) > wide && n.Function != nil && r.PCI.Physical(n.Function) != nil
}

// matrix has a row a GPU and a column a NIC.
func matrix(r *report.Report) string {
	var t strings.Builder
	left := 0
	for i := range r.Matrix.NICs {
		if n := &r.Matrix.NICs[i]; Folded(r, n) {
			left++
		} else {
			t.WriteString("\t" + NICName(n))
		}
	}
	t.WriteString("\tNUMA\n")
	for i, g := range r.Matrix.GPUs {
		fmt.Fprintf(&t, "GPU%d %s", i, Short(g.Address.String()))
		for _, p := range r.Matrix.PairsOf(i) {
			if !Folded(r, &r.Matrix.NICs[p.NIC]) {
				t.WriteString("\t" + orQuestion(p.Level.String()))
			}
		}
		t.WriteString("\t" + numa(g.NearNUMA) + "\n")
	}
	out := columns(t.String())
	if left > 0 {
		out += fmt.Sprintf("%d virtual functions stand where their physical ones do (-o json lists them)\n", left)
	}
	return out
}

// NICName is what a matrix calls a NIC: its RDMA device, or its address.
func NICName(n *topology.NIC) string {
	if name := n.Name(); name != "" {
		return name
	}
	return Short(n.Address())
}

// Short leaves the domain out where it is 0000, as lspci does.
func Short(address string) string { return strings.TrimPrefix(address, "0000:") }

func orQuestion(s string) string {
	if s == "" {
		return "?"
	}
	return s
}

func numa(n int) string {
	if n < 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// devices lists GPUs and NICs, a line each.
func devices(r *report.Report) string {
	var t strings.Builder
	for i, g := range r.Matrix.GPUs {
		fmt.Fprintf(&t, "GPU%d\t%s\t%s\t%s\t%s\n", i, g.Address, Product(g.Function), Driver(g.Function), GPUNote(g))
	}
	for i := range r.Matrix.NICs {
		n := &r.Matrix.NICs[i]
		if Folded(r, n) {
			continue
		}
		what, drv := "software device", "-"
		if n.Function != nil {
			what, drv = Product(n.Function), Driver(n.Function)
		}
		fmt.Fprintf(&t, "%s\t%s\t%s\t%s\t%s\n", orDash(n.Name()), orDash(n.Address()), what, drv, NICNote(n))
	}
	return t.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Product is the name of a function's product, or its ids.
func Product(f *pci.Function) string {
	if name := f.Name(); name != "" {
		return name
	}
	return hex4(f.Vendor) + ":" + hex4(f.Device)
}

// Driver is the bound driver, "-" for none, "?" where that cannot be read.
func Driver(f *pci.Function) string {
	if !f.DriverKnown {
		return "?"
	}
	return orDash(f.Driver)
}

// GPUNote says what is special about a GPU, "" for nothing.
func GPUNote(g topology.GPU) string {
	if !g.Eligible {
		return "no GPUDirect RDMA on this product"
	}
	return ""
}

// NICNote says how the ports of a NIC are, or why it has none.
func NICNote(n *topology.NIC) string {
	switch {
	case n.Function != nil && n.Function.NVLinkManagement, n.RDMA != nil && n.RDMA.NVLinkManagement:
		return "NVLink management, not read"
	case n.RDMA == nil:
		return "no RDMA device"
	case !n.RDMA.PortsRead:
		return "ports not readable"
	}
	var notes []string
	for _, p := range n.RDMA.Ports {
		note := fmt.Sprintf("%d: %s %s", p.Number, orQuestion(p.State), orQuestion(p.LinkLayer))
		if p.RateGbps > 0 {
			note += " " + strconv.FormatFloat(p.RateGbps, 'f', -1, 64) + "G"
		}
		notes = append(notes, note)
	}
	if !n.Eligible {
		notes = append(notes, "not counted")
	}
	return strings.Join(notes, ", ")
}

// Meanings explains the levels; "" for one that is not shown.
var Meanings = [...]string{
	topology.PIX:  "at most one PCIe switch between them",
	topology.PXB:  "several PCIe switches, no host bridge",
	topology.PHB:  "a PCIe host bridge, as a rule the CPU",
	topology.NODE: "several PCIe host bridges of one NUMA node",
	topology.SYS:  "the interconnect between NUMA nodes",
}

// legend explains the levels and where they come from.
func legend(r *report.Report) string {
	var t strings.Builder
	for level, meaning := range Meanings {
		if meaning != "" {
			fmt.Fprintf(&t, "%v\t%s\n", topology.Level(level), meaning)
		}
	}
	out := columns(t.String())
	switch r.Matrix.Origin {
	case topology.Virtual:
		out += "Levels are those of the PCI tree that the hypervisor shows.\n"
	case topology.FromFile:
		out += "Levels are those of the NCCL topology file.\n"
	case topology.Physical:
	}
	return out
}

// problems lists what could not be read.
func problems(r *report.Report) string {
	if len(r.Problems) == 0 {
		return ""
	}
	const most = 20
	var t strings.Builder
	t.WriteString("\nNot readable:\n")
	for i, p := range r.Problems {
		if i == most {
			fmt.Fprintf(&t, "  and %d more (see -o json)\n", len(r.Problems)-most)
			break
		}
		t.WriteString("  " + p + "\n")
	}
	return t.String()
}

// Summary is the verdict in one line.
func Summary(r *report.Report) string {
	v := &r.Verdict
	switch v.Ready {
	case tristate.True:
		var ways []string
		if v.Peermem == tristate.True {
			ways = append(ways, "peermem")
		}
		if v.DMABuf == tristate.True {
			ways = append(ways, "DMA-BUF")
		}
		line := "GPUDirect RDMA: ready by " + strings.Join(ways, " and ")
		switch r.Matrix.Level {
		case topology.Unknown:
		case topology.PIX:
			line += ", every GPU has a NIC at PIX"
		default:
			line += fmt.Sprintf(", every GPU has a NIC at %v or nearer", r.Matrix.Level)
		}
		return line
	case tristate.False:
		if v.Capable == tristate.False {
			return "GPUDirect RDMA: not possible on this machine (" + string(v.Reason) + ")"
		}
		return "GPUDirect RDMA: not ready (" + string(v.Reason) + ")"
	case tristate.Unknown:
	}
	return "GPUDirect RDMA: unknown (" + string(v.Reason) + ")"
}
