package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/explain"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/view"
	"gdr-features/source/pci"
	"gdr-features/topology"
)

// ExplainPair writes the path from a GPU to a NIC, a line a hop, and what follows from it.
func ExplainPair(w io.Writer, r *report.Report, p explain.Path) error {
	level, inNCCL := cmp.Or(p.Level.String(), "unknown"), cmp.Or(p.NCCL.String(), "unknown")
	way := hops(p.Hops)
	if p.DataDirect != nil {
		way += "\nTo its data-direct function\n\n" + hops(p.DataDirect)
	}
	var why strings.Builder
	fmt.Fprintf(&why, "\nlevel\t%s: %s\nin NCCL\t%s: %s\nused by NCCL\t%s\n", level, p.Why, inNCCL, p.NCCLWhy, p.DefaultWhy)
	for _, note := range p.Notes {
		fmt.Fprintf(&why, "note\t%s\n", note)
	}
	sources := ""
	if len(p.Hops) > 0 {
		sources = "\nRead from /sys/bus/pci/devices/ADDRESS:\n"
		for _, s := range explain.Files {
			sources += "  " + s.Fact + "\t" + strings.Join(s.Names, " ") + "\n"
		}
	}
	title := fmt.Sprintf("%s to %s: %s\n\n", explain.GPUName(p.GPU), explain.NICName(&r.Matrix.NICs[p.NIC]), level)
	return write(w, title, way, columns(why.String()), columns(sources), problems(r))
}

func hops(list []explain.Hop) string {
	var t strings.Builder
	t.WriteString("HOP\tADDRESS\tPRODUCT\tLINK\tNUMA\tIOMMU GROUP\tACS\t\n")
	for _, h := range list {
		mark := ""
		if h.Turn {
			mark = "turns here "
		}
		if h.Narrowest {
			mark += "<- narrowest link"
		}
		switch {
		case !h.PCI:
			fmt.Fprintf(&t, "%s\t%s\t\t\t\t\t\t%s\n", h.Role, h.Name, mark)
		case h.Function == nil:
			fmt.Fprintf(&t, "%s\t%s\t?\t?\t?\t?\t?\t%s\n", h.Role, h.Name, mark)
		default:
			f := h.Function
			fmt.Fprintf(&t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Role, h.Name, view.Product(f), link(f.Link), numa(f.NUMA), group(f, h.IOMMU), acs(f), mark)
		}
	}
	return columns(t.String())
}

// link writes the speed and width of a link, and its maximum where that is more.
func link(l *pci.Link) string {
	if l == nil {
		return "-"
	}
	now := speedAndWidth(l.Speed, l.Width)
	if l.Speed == l.MaxSpeed && l.Width == l.MaxWidth {
		return now
	}
	return now + " of " + speedAndWidth(l.MaxSpeed, l.MaxWidth)
}

func speedAndWidth(speed float64, width int) string {
	s, x := "?", "?"
	if speed > 0 {
		s = fmt.Sprint(speed)
	}
	if width > 0 {
		x = fmt.Sprint(width)
	}
	return s + "GT/s x" + x
}

func group(f *pci.Function, kind string) string {
	switch f.IOMMUGroup {
	case pci.Unread:
		return "?"
	case pci.None:
		return "-"
	}
	return strings.TrimSpace(strconv.Itoa(f.IOMMUGroup) + " " + sanitize.Terminal(kind))
}

// acs names the ACS bits of a bridge that redirect peer-to-peer traffic.
func acs(f *pci.Function) string {
	switch {
	case !f.Bridge():
		return "-"
	case f.ACS == nil:
		return "not readable without root"
	case !f.ACS.Present:
		return "none"
	case !f.ACS.Redirect():
		return "no redirect"
	}
	return strings.Join(f.ACS.Redirects(), " ")
}

// Explain writes the nearest NICs of each GPU and the chain to GPU memory.
func Explain(w io.Writer, r *report.Report) error {
	nearest := ""
	if len(r.Matrix.GPUs) > 0 {
		nearest = nearestLines(r, explain.NearestNICs(&r.Node)) + "\n"
	}
	return write(w, nearest, chainLines(r), "\n", view.Summary(&r.Node, r.Findings), "\n", problems(r))
}

// ExplainGPU writes the nearest NICs of a GPU, and its level with every NIC.
func ExplainGPU(w io.Writer, r *report.Report, gpu int) error {
	var t strings.Builder
	if len(r.Matrix.NICs) > 0 {
		t.WriteString("\nNIC\tADDRESS\tLEVEL\tIN NCCL\tNOTE\n")
	}
	for _, p := range r.Matrix.PairsOf(gpu) {
		n := &r.Matrix.NICs[p.NIC]
		fmt.Fprintf(&t, "%s\t%s\t%s\t%s\t%s\n", cmp.Or(n.Name(), "-"), cmp.Or(n.Address(), "-"), cmp.Or(p.Level.String(), "?"), cmp.Or(p.NCCL.String(), "?"), view.NICNote(n))
	}
	return write(w, nearestLines(r, explain.NearestNICs(&r.Node)[gpu:gpu+1]), columns(t.String()), problems(r))
}

func nearestLines(r *report.Report, nearest []explain.Nearest) string {
	var t strings.Builder
	none := "not known"
	if r.Matrix.EligibleNICs == 0 {
		none = "none eligible"
	}
	t.WriteString("GPU\tLEVEL\tIN NCCL\tUSED BY DEFAULT\tNEAREST NICS\tPATH\n")
	for _, n := range nearest {
		if len(n.NICs) == 0 {
			fmt.Fprintf(&t, "%s\t?\t?\t?\t%s\n", explain.GPUName(n.GPU), none)
			continue
		}
		fmt.Fprintf(&t, "%s\t%v\t%s\t%s\t%s\t%s\n", explain.GPUName(n.GPU), n.Level, cmp.Or(n.NCCL.String(), "?"), finding.Choose(n.Default, "yes", "no", "?"),
			someNICs(r, n.NICs), compact(n.Hops))
	}
	return columns(t.String())
}

func someNICs(r *report.Report, list []int) string {
	const most = 4
	names := nicNames(r, list[:min(len(list), most)])
	if more := len(list) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return names
}

func nicNames(r *report.Report, list []int) string {
	names := finding.Map(list, func(n int) string { return view.NICName(&r.Matrix.NICs[n]) })
	return strings.Join(names, " ")
}

// compact writes a path in one line: ">" leads up, "=" from CPU to CPU, "<" down.
func compact(list []explain.Hop) string {
	var t strings.Builder
	turned, cpu := false, false
	for i, h := range list {
		isCPU := h.Role == "CPU"
		switch {
		case i == 0:
		case cpu && isCPU:
			t.WriteString(" = ")
		case turned:
			t.WriteString(" < ")
		default:
			t.WriteString(" > ")
		}
		t.WriteString(view.Short(h.Name))
		turned, cpu = turned || h.Turn || isCPU, isCPU
	}
	return t.String()
}

func chainLines(r *report.Report) string {
	var t strings.Builder
	t.WriteString("\tSTATE\tSTEP\tWAITS FOR\tFOUND\n")
	last := ""
	for _, l := range explain.Stack(&r.Node, r.Findings) {
		mark := ""
		if l.First {
			mark = "->"
			last = fmt.Sprintf("First %s step: %s (%s)", finding.Choose(l.State, "", "broken", "unknown"), l.Name, l.Reason)
			if len(l.Sources) > 0 {
				last += ", read from " + strings.Join(l.Sources, " ")
			}
			last += "\n"
		}
		fmt.Fprintf(&t, "%s\t%s\t%s\t%s\t%s\n", mark, finding.Choose(l.State, "ok", "NO", "UNKNOWN"), l.Name, cmp.Or(strings.Join(l.Waits, ", "), "-"), l.Detail)
	}
	return columns(t.String()) + last
}

// ExplainNIC writes what a NIC is and in which state, and its level with every GPU.
func ExplainNIC(w io.Writer, r *report.Report, nic int) error {
	head := columns("NIC\tADDRESS\tPRODUCT\tDRIVER\tSTATE\n" + nicLine(&r.Matrix.NICs[nic]))
	var t strings.Builder
	if len(r.Matrix.GPUs) > 0 {
		t.WriteString("\nGPU\tADDRESS\tLEVEL\tIN NCCL\tNEAREST\n")
	}
	for i := range r.Matrix.GPUs {
		p := &r.Matrix.PairsOf(i)[nic]
		fmt.Fprintf(&t, "%s\t%v\t%s\t%s\t%s\n", explain.GPUName(i), r.Matrix.GPUs[i].Address, cmp.Or(p.Level.String(), "?"), cmp.Or(p.NCCL.String(), "?"), isNearest(r, i, nic))
	}
	return write(w, head, columns(t.String()), problems(r))
}

func isNearest(r *report.Report, gpu, nic int) string {
	near := r.Matrix.GPUs[gpu].Near(topology.Usable)
	switch {
	case slices.Contains(near.NICs, nic):
		return "yes"
	case near.Level == topology.Unknown:
		return "?"
	}
	return "no"
}

// ExplainCheck writes what a check finds here, and the codes that it may give. otherwise is said
// where it finds nothing.
func ExplainCheck(w io.Writer, r *report.Report, name, otherwise string, codes []finding.Code) error {
	here := otherwise
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Check == name {
			here = string(f.Status) + "  " + headline(f)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s is a check. Here: %s\n\nThe codes that it may give:\n", name, here)
	for _, code := range codes {
		fmt.Fprintf(&text, "  gdr-features explain %s\n", code)
	}
	return write(w, text.String(), problems(r))
}
