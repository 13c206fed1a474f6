package render

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/view"
	"gdr-features/source/pci"
	"gdr-features/topology"
)

// TopoWide writes the matrix and, in addition to what Topo says about each device, its
// role, link, NUMA node, IOMMU group, firmware and network devices.
func TopoWide(w io.Writer, r *report.Report) error { return topo(w, r, wideDevices) }

func wideDevices(r *report.Report) string {
	var t strings.Builder
	t.WriteString("NAME\tADDRESS\tPRODUCT\tROLE\tLINK\tNUMA\tIOMMU\tFIRMWARE\tBOARD\tNETDEV\tDRIVER\n")
	for i, g := range r.Matrix.GPUs {
		role := "GPU"
		if !g.Eligible {
			role = "GPU, not supported"
		}
		t.WriteString(wideRow(r, fmt.Sprintf("GPU%d", i), role, g.Function, nil))
	}
	for _, n := range r.Matrix.NICs {
		switch {
		case view.Folded(&r.Node, &n):
		case n.Function == nil:
			fmt.Fprintf(&t, "%s\t%s\t-\t%s\n", cmp.Or(n.Name(), "-"), cmp.Or(n.Address(), "-"), role(r, &n))
		default:
			t.WriteString(wideRow(r, cmp.Or(n.Name(), "-"), role(r, &n), n.Function, &n))
		}
	}
	for i := range r.PCI.Functions {
		if f := &r.PCI.Functions[i]; f.DataDirectOf != nil {
			t.WriteString(wideRow(r, "-", "data direct", f, nil))
		}
	}
	return t.String()
}

func wideRow(r *report.Report, name, role string, f *pci.Function, n *topology.NIC) string {
	firmware, board, netdevs := "-", "-", "-"
	if n != nil && n.RDMA != nil {
		firmware, board = cmp.Or(sanitize.Terminal(n.RDMA.Firmware), "-"), cmp.Or(sanitize.Terminal(n.RDMA.Board), "-")
		netdevs = cmp.Or(sanitize.Terminal(strings.Join(n.RDMA.NetDevs, ",")), "-")
	}
	return strings.Join([]string{
		name, f.Address.String(), view.Product(f), role, link(f.Link), numa(f.NearNUMA), group(f, r.Platform.IOMMU.Types[f.IOMMUGroup]),
		firmware, board, netdevs, view.Driver(f),
	}, "\t") + "\n"
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
	case !n.Eligible:
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
