package render

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gdr-features/internal/explain"
	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/view"
	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// ExplainPair writes the path from a GPU to a NIC, a line for each hop, and what
// follows from it.
func ExplainPair(w io.Writer, r *report.Report, p explain.Path) error {
	var t strings.Builder
	n := &r.Matrix.NICs[p.NIC]
	fmt.Fprintf(&t, "%s to %s: %s\n\n", explain.GPUName(p.GPU), explain.NICName(n), levelOrUnknown(p.Level))
	t.WriteString(hops(p.Hops))
	if p.DataDirect != nil {
		t.WriteString("\nTo its data-direct function\n\n" + hops(p.DataDirect))
	}
	var why strings.Builder
	fmt.Fprintf(&why, "\nlevel\t%s: %s\n", levelOrUnknown(p.Level), p.Why)
	fmt.Fprintf(&why, "in NCCL\t%s: %s\n", levelOrUnknown(p.NCCL), p.NCCLWhy)
	fmt.Fprintf(&why, "used by NCCL\t%s\n", p.DefaultWhy)
	for _, note := range p.Notes {
		fmt.Fprintf(&why, "note\t%s\n", note)
	}
	t.WriteString(columns(why.String()))
	if len(p.Hops) > 0 {
		t.WriteString("\n" + columns(sourcesOfHops()))
	}
	t.WriteString(problems(r))
	_, err := io.WriteString(w, t.String())
	return err
}

func levelOrUnknown(l topology.Level) string { return cmp.Or(l.String(), "unknown") }

// hops is a table with a line for each hop.
func hops(list []explain.Hop) string {
	var t strings.Builder
	t.WriteString("HOP\tADDRESS\tPRODUCT\tLINK\tNUMA\tIOMMU GROUP\tACS\t\n")
	for _, h := range list {
		var marks []string
		if h.Turn {
			marks = append(marks, "turns here")
		}
		if h.Narrowest {
			marks = append(marks, "<- narrowest link")
		}
		mark := strings.Join(marks, " ")
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
	s, x := "?", "x?"
	if speed > 0 {
		s = fmt.Sprint(speed)
	}
	if width > 0 {
		x = "x" + strconv.Itoa(width)
	}
	return s + "GT/s " + x
}

func group(f *pci.Function, kind string) string {
	switch {
	case f.IOMMUGroup == pci.Unread:
		return "?"
	case f.IOMMUGroup == pci.None:
		return "-"
	case kind == "":
		return strconv.Itoa(f.IOMMUGroup)
	}
	return strconv.Itoa(f.IOMMUGroup) + " " + sanitize.Terminal(kind)
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

// sourcesOfHops names the files that each column is read from.
func sourcesOfHops() string {
	var t strings.Builder
	t.WriteString("Read from /sys/bus/pci/devices/ADDRESS:\n")
	for _, s := range explain.Files {
		fmt.Fprintf(&t, "  %s\t%s\n", s.Fact, strings.Join(s.Names, " "))
	}
	return t.String()
}

// Explain writes the nearest NICs of each GPU and the chain from hardware to GPU
// memory.
func Explain(w io.Writer, r *report.Report) error {
	var t strings.Builder
	if len(r.Matrix.GPUs) > 0 {
		t.WriteString(columns(nearestLines(r, explain.NearestNICs(&r.Node))) + "\n")
	}
	t.WriteString(chainLines(r))
	t.WriteString("\n" + view.Summary(&r.Node) + "\n")
	t.WriteString(problems(r))
	_, err := io.WriteString(w, t.String())
	return err
}

// ExplainGPU writes the nearest NICs of a GPU, and its level with every NIC.
func ExplainGPU(w io.Writer, r *report.Report, gpu int) error {
	var t, pairs strings.Builder
	t.WriteString(columns(nearestLines(r, explain.NearestNICs(&r.Node)[gpu:gpu+1])))
	pairs.WriteString("NIC\tADDRESS\tLEVEL\tIN NCCL\tNOTE\n")
	for _, p := range r.Matrix.PairsOf(gpu) {
		n := &r.Matrix.NICs[p.NIC]
		fmt.Fprintf(&pairs, "%s\t%s\t%s\t%s\t%s\n", cmp.Or(n.Name(), "-"), cmp.Or(n.Address(), "-"), cmp.Or(p.Level.String(), "?"), cmp.Or(p.NCCL.String(), "?"), view.NICNote(n))
	}
	if len(r.Matrix.NICs) > 0 {
		t.WriteString("\n" + columns(pairs.String()))
	}
	t.WriteString(problems(r))
	_, err := io.WriteString(w, t.String())
	return err
}

func nearestLines(r *report.Report, nearest []explain.Nearest) string {
	var t strings.Builder
	t.WriteString("GPU\tLEVEL\tIN NCCL\tUSED BY DEFAULT\tNEAREST NICS\tPATH\n")
	for _, n := range nearest {
		if len(n.NICs) == 0 {
			fmt.Fprintf(&t, "%s\t?\t?\t?\t%s\n", explain.GPUName(n.GPU), none(r))
			continue
		}
		fmt.Fprintf(&t, "%s\t%v\t%s\t%s\t%s\t%s\n", explain.GPUName(n.GPU), n.Level, cmp.Or(n.NCCL.String(), "?"), byDefault[n.Default],
			someNICs(r, n.NICs), compact(n.Hops))
	}
	return t.String()
}

var byDefault = map[tristate.State]string{tristate.True: "yes", tristate.False: "no", tristate.Unknown: "?"}

func none(r *report.Report) string {
	if r.Matrix.EligibleNICs == 0 {
		return "none eligible"
	}
	return "not known"
}

// someNICs names NICs that are equally near.
func someNICs(r *report.Report, list []int) string {
	const most = 4
	var names []string
	for i, n := range list {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(list)-most))
			break
		}
		names = append(names, view.NICName(&r.Matrix.NICs[n]))
	}
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
			what := "First broken step"
			if l.State == tristate.Unknown {
				what = "First unknown step"
			}
			last = fmt.Sprintf("%s: %s (%s)", what, l.Name, l.Reason)
			if len(l.Sources) > 0 {
				last += ", read from " + strings.Join(l.Sources, " ")
			}
			last += "\n"
		}
		fmt.Fprintf(&t, "%s\t%s\t%s\t%s\t%s\n", mark, stateWords[l.State], l.Name, cmp.Or(strings.Join(l.Waits, ", "), "-"), l.Detail)
	}
	return columns(t.String()) + last
}

var stateWords = map[tristate.State]string{tristate.True: "ok", tristate.False: "NO", tristate.Unknown: "UNKNOWN"}
