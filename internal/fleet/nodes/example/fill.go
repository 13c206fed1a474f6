package example

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// levels are those that gdr.level can have, the nearest first.
var levels = []string{"PIX", "PXB", "PHB", "NODE", "SYS"}

// What the example files have in place of what differs between clusters.
const (
	fileGPUs  = "nvidia.com/gpu: 8"
	fileRDMA  = "rdma/rdma_shared_device_a: 1"
	fileLevel = "values: [PIX, PXB]"
	fileFlag  = "--level, PXB"
	fileImage = "registry.example.com/gdr-features:v1.0.0"
	fileTaint = "- {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}"
	fileNets  = "k8s.v1.cni.cncf.io/networks: NETWORKS"
	fileAdapt = "# Adapt to your cluster"
)

// counts are where the files have the number of GPUs of a node, or of two nodes.
var counts = []struct {
	of    *regexp.Regexp
	nodes int
}{
	{regexp.MustCompile(`(--nproc-per-node=|--tp-size=|--tensor-parallel-size |slotsPerWorker: )8\b`), 1},
	{regexp.MustCompile(`(--tp-size=|- ")16\b`), 2},
	{regexp.MustCompile(`^(#.* of )8( GPUs)`), 1},
}

// filler fills one file in.
type filler struct {
	kind
	c   *Cluster
	out []string
	// said is what stands in the file as a TODO already: later places refer to it.
	said map[string]bool
}

// Fill returns an example file with what the cluster has in it. What cannot be known is a line
// "# TODO: ..." where it belongs. It is an error if the cluster has no node for the job.
func Fill(file string, c *Cluster) (string, error) {
	if len(c.Nodes) == 0 {
		return "", fmt.Errorf("no node that is ready matches; kubectl gdr says why nodes are not")
	}
	f := filler{kind: c.largest(), c: c, said: map[string]bool{}}
	lines := strings.Split(file, "\n")
	head := slices.IndexFunc(lines, func(l string) bool { return !strings.HasPrefix(l, "#") })
	adapt := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, fileAdapt) })
	for i, line := range lines {
		switch {
		case adapt >= 0 && i == adapt:
			f.origin()
		case adapt >= 0 && i > adapt && i < head: // what is done here
		default:
			f.line(line)
		}
	}
	return strings.Join(f.out, "\n"), nil
}

// origin says what the file was filled in from.
func (f *filler) origin() {
	f.add("", "# Filled in by kubectl gdr example for nodes such as %s: %d of %d that are ready.", f.nodes[0], len(f.nodes), len(f.c.Nodes))
	if f.level != "" && slices.Index(levels, f.level) > 1 {
		f.add("", "# Their GPUs reach NICs at %s, through the CPU: README.md says what that costs.", f.level)
	}
	for _, unread := range f.c.Unread {
		f.add("", "# TODO: %s", unread)
	}
}

func (f *filler) add(indent, format string, args ...any) {
	f.out = append(f.out, indent+fmt.Sprintf(format, args...))
}

// todo adds a TODO, which is told once in full.
func (f *filler) todo(indent, key, format string, args ...any) {
	if f.said[key] {
		f.add(indent, "# TODO: %s, as above", key)
		return
	}
	f.said[key] = true
	f.add(indent, "# TODO: "+key+": "+format, args...)
}

// line fills in a line of the file.
func (f *filler) line(line string) {
	text := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(text)]
	switch {
	case text == fileGPUs:
		f.gpuLines(indent)
	case text == fileRDMA:
		f.rdmaLines(indent)
	case strings.Contains(text, fileNets):
		f.networkLine(indent, text)
	case text == fileTaint && len(f.taints) > 0:
		for _, t := range f.taints {
			f.add(indent, "- {key: %s, operator: Equal, value: %q, effect: %s}", t.Key, t.Value, t.Effect)
		}
	case strings.HasPrefix(text, "image: "):
		f.imageLine(indent, text)
	case strings.Contains(text, fileLevel):
		f.levelLines(indent, text)
	default:
		f.out = append(f.out, f.numbers(strings.ReplaceAll(line, fileFlag, "--level, "+f.within())))
	}
}

func (f *filler) gpuLines(indent string) {
	if f.gpus.Name == "" {
		f.todo(indent, "GPUs", "these nodes offer none as a resource; with Dynamic Resource Allocation use a claim (gdr-features claim)")
		return
	}
	f.add(indent, "%s: %d", f.gpus.Name, f.gpus.Amount)
}

func (f *filler) rdmaLines(indent string) {
	for _, r := range f.rdma {
		f.add(indent, "%s: %d", r.Name, r.Amount)
	}
	switch {
	case len(f.rdma) > 0:
	case len(f.other) > 0:
		f.todo(indent, "RDMA devices", "which of these is it? %s", strings.Join(f.other, " "))
	default:
		f.todo(indent, "RDMA devices", "these nodes offer none as a resource: install a device plugin for RDMA")
	}
}

// networkLine takes the networks of the job's NICs into the comment that has their place.
func (f *filler) networkLine(indent, text string) {
	switch {
	case len(f.networks) > 0:
		text, _, _ = strings.Cut(strings.TrimPrefix(text, "# "), " #")
		f.add(indent, "%s", strings.Replace(text, "NETWORKS", strconv.Quote(strings.Join(f.networks, ",")), 1))
	case len(f.c.Networks) > 0 && !f.shares():
		var names []string
		for _, n := range f.c.Networks {
			names = append(names, n.Name)
		}
		f.todo(indent, "networks", "which of these are for RDMA? %s", strings.Join(names, " "))
		f.add(indent, "%s", text)
	}
}

// shares reports whether the NICs are shared by all Pods, and need no network.
func (f *filler) shares() bool {
	return len(f.rdma) > 0 && strings.HasPrefix(f.rdma[0].Name, rdmaResources[0].prefix)
}

// imageLine leaves the image of the job to the user.
func (f *filler) imageLine(indent, text string) {
	switch image := strings.TrimPrefix(text, "image: "); {
	case image != fileImage:
		f.todo(indent, "your image in place of "+image, "it has the program of the job")
		f.add(indent, "%s", text)
	case f.c.Image != "":
		f.add(indent, "image: %s", f.c.Image)
	default:
		f.todo(indent, "the image of gdr-features", "that of the DaemonSet could not be read")
		f.add(indent, "%s", text)
	}
}

// within is the level that the job takes: that of the nodes, or the file's own where it is nearer
// or not known.
func (f *filler) within() string {
	if slices.Index(levels, f.level) > 1 {
		return f.level
	}
	return "PXB"
}

func (f *filler) levelLines(indent, text string) {
	near := levels[:slices.Index(levels, f.within())+1]
	f.add(indent, "%s", strings.Replace(text, fileLevel, "values: ["+strings.Join(near, ", ")+"]", 1))
	if f.rate > 0 { // the operator is Gt alone
		f.add(indent, `- {key: feature.node.kubernetes.io/gdr.rate, operator: Gt, values: ["%d"]}`, f.rate-1)
	}
	for _, r := range f.c.Where {
		values := ""
		if len(r.Values) > 0 {
			values = `, values: ["` + strings.Join(r.Values, `", "`) + `"]`
		}
		f.add(indent, "- {key: %q, operator: %s%s}", r.Key, r.Operator, values)
	}
}

// numbers fills in the number of GPUs where a line has it.
func (f *filler) numbers(line string) string {
	if f.gpus.Amount == 0 {
		return line
	}
	for _, c := range counts {
		line = c.of.ReplaceAllString(line, "${1}"+strconv.Itoa(c.nodes*f.gpus.Amount)+"${2}")
	}
	return line
}
