package render

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"gdr-features/internal/report"
	"gdr-features/internal/sanitize"
	"gdr-features/internal/view"
	"gdr-features/source/container"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// slurmNode stands for the node's name, which its files do not tell.
const slurmNode = "NodeName=NODE"

// TopoSlurm writes the node's part of Slurm's slurm.conf and gres.conf: features by which
// jobs choose nodes, and the device nodes of GPUs and NICs. What is not known is left out,
// and a comment says so. It needs report.ForEnv, and the devices that a process of the
// machine can use.
//
// Slurm 22.05 to 26.05 reads it (SchedMD/slurm src/interfaces/gres.c _gres_options). Cores is
// left out: it counts in the order of hwloc (gres.conf(5)), which the machine's files do not
// give. So is Links: it counts connections between devices of one name, NVLinks of GPUs.
func TopoSlurm(w io.Writer, r *report.Report, seen *container.Devices) error {
	gpus, nics := slurmGPUs(r, seen), slurmNICs(r, seen)
	var t strings.Builder
	t.WriteString("# For Slurm, from what this machine shows now. NODE stands for its name in Slurm:\n" +
		"#   gdr-features topo -o slurm | sed \"s/=NODE /=$(hostname -s) /\"\n\n" +
		"# slurm.conf: GresTypes=gpu,nic once, and these for the node\n")
	t.WriteString(slurmConf(r, gpus, nics))
	t.WriteString("\n# gres.conf\n")
	if nothing := view.Nothing(&r.Node); nothing != "" {
		t.WriteString("# " + nothing + "\n")
	}
	if gpus.count > 0 {
		t.WriteString("# With AutoDetect (nvml, nvidia, rsmi) leave out the lines of GPUs: a difference drains the node.\n")
	}
	if !gpus.inOrder {
		t.WriteString("# Use AutoDetect=nvml here. Without it Slurm numbers GPUs in the order of their device nodes, and\n" +
			"# CUDA in that of their PCI addresses, so CUDA_VISIBLE_DEVICES names other GPUs than Slurm gave the job.\n")
	}
	t.WriteString(columns(gpus.text) + columns(nics.text))
	if gpus.count > 0 && nics.count > 0 {
		t.WriteString("# Cores= is left out, as only lstopo -l knows the numbers that Slurm wants (Core L#). Add those of\n" +
			"# the NUMA node to each line: without them a job's GPU and NIC may be in different NUMA nodes.\n")
	}
	for _, p := range sanitize.Errors(r.Problems) {
		t.WriteString("# Not readable: " + p + "\n")
	}
	return write(w, t.String())
}

func slurmConf(r *report.Report, devices ...gresLines) string {
	var gres []string
	for _, of := range devices {
		if of.count > 0 {
			gres = append(gres, fmt.Sprintf("%s:%d", of.name, of.count))
		}
	}
	text := ""
	if len(gres) > 0 {
		text += " Gres=" + strings.Join(gres, ",")
	}
	features := slurmFeatures(r)
	if len(features) > 0 {
		text += " Features=" + strings.Join(features, ",")
	}
	if text != "" {
		text = slurmNode + text + "\n"
	}
	if len(features) == 0 {
		text += "# No Features. " + view.Verdict(&r.Node) + "\n"
	}
	return text
}

// slurmFeatures are those of a node that is ready, as in deploy/examples/schedulers/slinky.yaml,
// and the rate, since Slurm cannot compare numbers.
func slurmFeatures(r *report.Report) []string {
	if r.Verdict.Ready != tristate.True {
		return nil
	}
	features := []string{"gdr"}
	if l := r.Matrix.Hardware.Level; l != topology.Unknown {
		features = append(features, "gdr-"+strings.ToLower(l.String()))
	}
	if rate := r.Verdict.Rate; rate != nil && *rate > 0 {
		features = append(features, fmt.Sprintf("gdr-%dg", *rate))
	}
	return features
}

// gresLines are the lines of one name in gres.conf, comments in place of what is not used.
type gresLines struct {
	name, text string
	count      int
	// inOrder: Slurm sorts them in the order of the lines (gres_gpu.c _sort_gpu_by_file).
	inOrder bool
	last    string
}

// add adds a device. why is what keeps it from being used, "" for nothing.
func (l *gresLines) add(node, flags, about, why string) {
	if why == "" && !slurmPath(node) {
		why = "its device node is not known"
	}
	if why != "" {
		l.text += "# " + about + ": " + why + "\n"
		return
	}
	// Slurm sorts /dev/nvidia9 before /dev/nvidia10.
	if l.count > 0 && cmp.Or(cmp.Compare(len(node), len(l.last)), strings.Compare(node, l.last)) < 0 {
		l.inOrder = false
	}
	l.last = node
	l.count++
	l.text += slurmNode + " Name=" + l.name + " File=" + node
	if flags != "" {
		l.text += " Flags=" + flags
	}
	l.text += "\t# " + about + "\n"
}

// slurmPath reports whether gres.conf, which has ranges and no quotes, can hold a path.
func slurmPath(path string) bool {
	ok, _ := regexp.MatchString(`^[\w/.-]+$`, path)
	return ok
}

// slurmGPUs has a line for each GPU, in the order of addresses.
func slurmGPUs(r *report.Report, seen *container.Devices) gresLines {
	lines := gresLines{name: "gpu", inOrder: true}
	flags := slurmFlags(r)
	for i, g := range r.Matrix.GPUs {
		about := fmt.Sprintf("GPU%d %s %s, NUMA node %s", i, g.Address, view.Product(g.Function), numa(g.NearNUMA))
		if near := g.Near(topology.Usable); len(near.NICs) > 0 {
			about += fmt.Sprintf(", %v to %s", near.Level, nicNames(r, near.NICs))
		}
		lines.add(seen.GPUs[g.Address].Node, flags, about, "")
	}
	if !slices.ContainsFunc(r.Matrix.GPUs, func(g topology.GPU) bool { return g.GPU.CUDA }) {
		lines.inOrder = true // only CUDA is known to number GPUs by address
	}
	return lines
}

// slurmFlags are the flags of the GPUs, of which all those of a node must have the same; "" for the
// default, which is to set the variables of all vendors. With RCCL's GPUs CUDA_VISIBLE_DEVICES would
// be applied after ROCR_VISIBLE_DEVICES (gres.conf(5)).
func slurmFlags(r *report.Report) string {
	if slices.ContainsFunc(r.Matrix.GPUs, func(g topology.GPU) bool { return !g.GPU.RCCL }) {
		return ""
	}
	return "amd_gpu_env"
}

// slurmNICs has a line for each eligible NIC with an RDMA device and an active port, but not for
// a virtual function whose physical one is here: it is for others.
func slurmNICs(r *report.Report, seen *container.Devices) gresLines {
	lines := gresLines{name: "nic", inOrder: true}
	for _, n := range r.Matrix.NICs {
		if !n.Counts() || n.Function == nil || r.PCI.Physical(n.Function) != nil {
			continue
		}
		about := fmt.Sprintf("%s %s, NUMA node %s", n.Address(), view.Product(n.Function), numa(n.Function.NearNUMA))
		why := ""
		switch {
		case n.RDMA == nil:
			why = "no RDMA device"
		case !slices.ContainsFunc(n.RDMA.Ports, rdma.Port.Active):
			why = "no active port"
		}
		lines.add(seen.RDMANode(n.Name()), "", strings.TrimLeft(n.Name()+" "+about, " "), why)
	}
	return lines
}
