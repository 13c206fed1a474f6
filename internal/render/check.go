package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/pod"
	"gdr-features/internal/terminal"
	"gdr-features/internal/view"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Check writes a line a check, what to do, with wide where it was read, and the pages about it.
func Check(w io.Writer, r *report.Report, wide bool) error {
	var t strings.Builder
	see := ""
	for i := range r.Findings {
		f := &r.Findings[i]
		fmt.Fprintf(&t, "%s\t%s\t%s\n", f.Status, f.Check, headline(f))
		if len(f.Fix) > 0 {
			fmt.Fprintf(&t, "\t\tfix: %s\n", whole(w, strings.Join(f.Fix, "\n\t\t     "), f.Commands))
		}
		if wide && f.Status != finding.StatusOK && len(f.Sources) > 0 {
			fmt.Fprintf(&t, "\t\tread from: %s\n", evidence(f))
		}
		if page := "see: gdr-features explain " + string(f.Code) + "\n"; f.Code != "" && !strings.Contains(see, page) {
			see += page
		}
	}
	return write(w, columns(t.String()), "\n", view.Summary(&r.Node, r.Findings), "\n", see, problems(r))
}

// whole keeps the commands in a text from being broken on a terminal.
func whole(w io.Writer, text string, commands []string) string {
	if terminal.Columns(w) == 0 {
		return text
	}
	for _, c := range commands {
		text = strings.ReplaceAll(text, c, terminal.Whole(c))
	}
	return text
}

// headline is what was found, after the reason and, if it says more, the code.
func headline(f *finding.Finding) string {
	switch {
	case f.Code == "":
		return f.Detail
	case f.Reason == "", string(f.Reason) == string(f.Code):
		return string(f.Code) + ": " + f.Detail
	}
	return string(f.Reason) + ", " + string(f.Code) + ": " + f.Detail
}

// evidence names a few files with what they held, or only the files.
func evidence(f *finding.Finding) string {
	const few = 2
	switch {
	case len(f.Evidence) == 0:
		return strings.Join(f.Sources, " ")
	case len(f.Evidence) <= few:
		return strings.Join(f.Evidence, " ")
	}
	return fmt.Sprintf("%s and %d more (-o json)", strings.Join(f.Evidence[:few], " "), len(f.Evidence)-few)
}

// What kubelet keeps of a container's output as its termination message, with
// terminationMessagePolicy: FallbackToLogsOnError, is the end: at most 2048 bytes or 80 lines
// (k8s.io/kubernetes pkg/kubelet/container/runtime.go). The reasons must fit.
const (
	mostReasons = 8
	longestLine = 220
)

// CheckPod writes what Check does, and at its end in a few lines why the container is not
// ready, if so. limit is the farthest level allowed, topology.Unknown for any.
func CheckPod(w io.Writer, r *report.Report, c *pod.Container, limit topology.Level, wide bool) error {
	if err := Check(w, r, wide); err != nil {
		return err
	}
	reasons := podReasons(r, c, limit)
	if len(reasons) == 0 {
		return nil
	}
	if n := len(reasons); n > mostReasons {
		reasons = append(reasons[:mostReasons-1], fmt.Sprintf("and %d more", n-mostReasons+1))
	}
	judged := "container"
	if c.Elsewhere {
		judged = "image"
	}
	_, err := fmt.Fprintf(w, "\nThis %s is not ready for GPUDirect RDMA:\n%s\n", judged, strings.Join(reasons, "\n"))
	return err
}

// podReasons are the reasons why a container is not ready, or not known to be.
func podReasons(r *report.Report, container *pod.Container, limit topology.Level) []string {
	var reasons []string
	add := func(text string) {
		if len(text) > longestLine {
			text = strings.ToValidUTF8(text[:longestLine-3], "") + "..."
		}
		if !slices.Contains(reasons, text) {
			reasons = append(reasons, text)
		}
	}
	if r.Verdict.Ready != tristate.True {
		add("the node: " + view.Verdict(&r.Node))
	}
	for _, status := range [...]finding.Status{finding.StatusFail, finding.StatusUnknown} {
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Status == status && (pod.About(f) || f.Check == "expected") {
				add(headline(f))
			}
		}
	}
	if limit == topology.Unknown || container.NoGPU { // the levels of no GPU say nothing
		return reasons
	}
	for _, c := range container.TooFar(limit) {
		if c.NIC != nil {
			add(fmt.Sprintf("the nearest usable NIC of the GPU %v, %s, is at %v, farther than %v", c.GPU.Address, c.NIC.RDMA, c.Level, limit))
		} else if len(reasons) == 0 {
			add(fmt.Sprintf("the GPU %v has no usable NIC here", c.GPU.Address))
		}
	}
	if len(reasons) == 0 && container.Within(&r.Node, limit) == tristate.Unknown {
		add(fmt.Sprintf("whether each GPU has a usable NIC at %v is unknown", limit))
	}
	return reasons
}
