package report

import (
	"context"
	"io/fs"
	"slices"
	"time"

	"gdr-features/internal/assign"
	"gdr-features/internal/findings"
	"gdr-features/internal/frameworks"
	"gdr-features/internal/image"
	"gdr-features/source/platform"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Pod is what is needed to judge a container from inside.
type Pod struct {
	// Variables are those of the container's environment by name; see frameworks.Read.
	Variables map[string]string
	// ReadFile reads the files that variables name.
	ReadFile func(name string) ([]byte, error)
	// Image is the file tree of the container, or of its unpacked image; nil to judge none.
	// Elsewhere: the job does not run in this container, but from that image.
	Image     fs.FS
	Elsewhere bool
	// For names the framework in question; "" for all that the image has.
	For string
	// GPUs are those in question, of GPUsHere; nil for those that the variables leave.
	GPUs func(r *Report) []int
}

func (rd *Reader) readImage(ctx context.Context, r *Report) {
	tree, variables := rd.options.Pod.Image, rd.options.Pod.Variables
	if tree == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, imageTimeout)
	defer cancel()
	_ = rd.image.start("libraries of the image", func() (*image.Image, error) { return image.Read(tree, variables), nil })(ctx)
	if rd.image.addProblems(r, nil); rd.image.err == nil {
		r.problem(rd.image.value.Problems...)
	}
}

// imageTimeout is how long reading the libraries of an image may take.
const imageTimeout = 10 * time.Second

// podFacts are the facts for findings about a container; nil where they are not asked for.
func (rd *Reader) podFacts(r *Report) *findings.Pod {
	o := rd.options.Pod
	if o == nil {
		return nil
	}
	p := &findings.Pod{Container: rd.container(), Visible: &r.Visible, Image: rd.image.value, ImageUnread: rd.image.err != nil, Elsewhere: o.Elsewhere, For: o.For}
	// The GPUs are those of the container. Without any, all count for its other devices.
	ineligible := func(gpu int) bool { return !r.Matrix.GPUs[gpu].Eligible }
	gpus := slices.DeleteFunc(r.GPUsHere(), ineligible)
	p.NoGPU, p.GPUs = len(gpus) == 0, len(gpus)
	var chosen []int
	if o.GPUs != nil {
		chosen = o.GPUs(r)
	} else {
		p.Selected = r.Selected(o.Variables)
		chosen = p.Selected.GPUs
	}
	if chosen = slices.DeleteFunc(slices.Clone(chosen), ineligible); len(chosen) > 0 {
		gpus = chosen
	}
	if p.NoGPU {
		gpus = slices.DeleteFunc((&assign.Machine{Matrix: &r.Matrix}).EveryGPU(), ineligible)
	}
	p.Namespace = r.assign(gpus, r.Visible.InNamespace)
	p.Map = r.assign(gpus, p.UsableNIC)
	p.Environment = frameworks.Environment{Variables: o.Variables, Networks: r.Visible.Networks, UnknownGPUs: p.Selected.Unknown}
	p.Environment.ReadFiles(o.ReadFile)
	r.Pod = p
	return p
}

// container is what the container lets this process do. The addresses in a snapshot are not
// those of the machine, so that it is not known which entry a variable with a range of
// addresses would choose.
func (rd *Reader) container() platform.Container {
	c := rd.pod.value
	ranged := func(chooser string) bool {
		return frameworks.NewGIDWish(chooser, rd.options.Pod.Variables).Range != nil
	}
	if rd.fs.Live() || !slices.ContainsFunc(frameworks.GIDChoosers[:], ranged) {
		return c
	}
	c.Ports = slices.Clone(c.Ports)
	for i := range c.Ports {
		c.Ports[i].GIDs, c.Ports[i].Unread = nil, true
	}
	return c
}

// Within reports whether every GPU has an eligible NIC at this level (topology.Unknown: any) or
// a nearer one; in a container, its own GPUs and NICs.
func (r *Report) Within(limit topology.Level) tristate.State {
	tooFar := slices.ContainsFunc(r.Matrix.GPUs, func(g topology.GPU) bool { return g.Eligible && g.Level > limit })
	switch {
	case limit == topology.Unknown:
		return tristate.True
	case r.Pod != nil:
		state := r.Pod.Map.Within(limit)
		if state == tristate.False && r.Verdict.Capable == tristate.Unknown {
			return tristate.Unknown
		}
		return state
	case tooFar:
		return tristate.False
	case r.Matrix.Level != topology.Unknown:
		return tristate.True
	}
	return tristate.Unknown
}

// TooFar are the GPUs of the container without a usable NIC at this level or a nearer one.
func (r *Report) TooFar(limit topology.Level) []assign.Choice {
	return slices.DeleteFunc(slices.Clone(r.Pod.Map.Choices), func(c assign.Choice) bool {
		return limit == topology.Unknown || c.NIC != nil && c.Level <= limit
	})
}
