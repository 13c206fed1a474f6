package proof

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gdr-features/tristate"
)

// Shares of the rate with host memory, on the same NIC with the same options. Both are guesses until
// somebody measured more machines: with goodShare the GPU's memory is reached as fast as host memory,
// below badShare it is not reached directly, or over a way that is not worth it.
const (
	goodShare = 0.9
	badShare  = 0.5
)

// Line is what one transfer shows.
type Line struct {
	Name string `json:"name"`
	GPU  string `json:"gpu,omitempty"`
	NIC  string `json:"nic,omitempty"`
	Way  Way    `json:"way,omitempty"`
	// Server and Client are the memory of a side: "gpu", "host", or "" where it is not known.
	Server string `json:"server,omitempty"`
	Client string `json:"client,omitempty"`
	// Gbps is the rate in 10^9 bits a second, and Share that of the baseline.
	Gbps  float64        `json:"gbps,omitempty"`
	Share float64        `json:"share,omitempty"`
	State tristate.State `json:"state"`
	Why   string         `json:"why,omitempty"`
	// Code is the page of explain that says what to do.
	Code string `json:"code,omitempty"`
	// Node is what check knows of this GPU and NIC.
	Node string `json:"node,omitempty"`

	refused bool
}

// Result is what a folder shows.
type Result struct {
	Lines []Line `json:"lines"`
	// Notes are about the folder: what was not measured, what could not be read.
	Notes []string `json:"notes"`
	// State is true if every GPU of the plan was measured, and each of their lines is true.
	State tristate.State `json:"state"`
}

// Read judges the files of a folder.
func Read(files []File) Result {
	f := open(files)
	r := Result{Lines: []Line{}, Notes: []string{}}
	for _, t := range f.transfers {
		r.Lines = append(r.Lines, t.line(&f.plan))
	}
	for i, t := range f.transfers {
		if r.Lines[i].Way != Host {
			t.compare(&r.Lines[i], f.baseline(r.Lines, t))
		}
	}
	for i := range f.plan.steps {
		s := &f.plan.steps[i]
		if !slices.ContainsFunc(f.transfers, func(t *transfer) bool { return t.name == s.name }) {
			r.Lines = append(r.Lines, Line{Name: s.name, GPU: s.gpu, NIC: s.nic, Way: Way(s.way), Why: "it was not run, or nothing was written"})
		}
	}
	r.Notes = append(r.Notes, f.notes...)
	for _, why := range f.plan.lacks {
		r.Notes = append(r.Notes, "not measured: "+why)
	}
	for _, why := range f.plan.notes {
		r.Notes = append(r.Notes, "not used: "+why)
	}
	r.fold(&f.plan)
	return r
}

// fold takes all lines about GPUs together. What was not measured leaves it unknown.
func (r *Result) fold(p *plan) {
	state, gpus := tristate.True, 0
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Way != Host {
			state = tristate.And(state, l.State)
			gpus++
		}
	}
	switch {
	case !p.given:
		r.Notes = append(r.Notes, "there is no list of steps (plan): whether all were run is not known")
	case !p.whole:
		r.Notes = append(r.Notes, "the list of steps (plan) is torn: whether all were run is not known")
	}
	if gpus == 0 || !p.whole || len(p.lacks) > 0 {
		state = tristate.And(state, tristate.Unknown)
	}
	r.State = state
}

// line judges one transfer by itself: a baseline is true if it was measured; all others are unknown
// until they are compared with theirs.
func (t *transfer) line(p *plan) Line {
	l := Line{Name: t.name, NIC: cmp.Or(t.server.device, t.client.device), Server: t.server.memory(), Client: t.client.memory()}
	l.GPU, l.Way = t.wants()
	if t.step != nil {
		l.GPU, l.NIC, l.Way = cmp.Or(t.step.gpu, l.GPU), t.step.nic, cmp.Or(l.Way, Way(t.step.way))
	}
	failed := find(slices.Concat(t.server.lines, t.client.lines), l.Way)
	if failed != nil && failed.effect == followed && (!t.server.alone() || !t.client.alone()) {
		failed = nil
	}
	if failed != nil && (t.ended() != "" || failed.effect == unregistered || failed.effect == broken) {
		l.Why, l.Code, l.refused = failed.means, failed.code, t.refuses(failed)
		return l
	}
	rate, why := t.measured()
	if why = cmp.Or(t.ended(), why, t.mismatch(p)); why != "" {
		l.Why = why
		return l
	}
	l.Gbps = math.Round(rate*1e4) / 1e4
	if l.Way == Host {
		l.State = tristate.True
	}
	return l
}

// wants is what both sides were asked for: the GPU of one of them, and its way.
func (t *transfer) wants() (gpu string, way Way) {
	if t.server.asked == nil && t.client.asked == nil {
		return "", ""
	}
	if gpu, way = t.server.wants(); gpu != "" {
		return gpu, way
	}
	return t.client.wants()
}

// memory is that of a side: what the output shows, or what was asked for where it shows nothing.
func (s *side) memory() string {
	gpu, _ := s.wants()
	switch {
	case s.gpu, gpu != "":
		return "gpu"
	case s.asked != nil:
		return "host"
	}
	return ""
}

// refuses: a failure is about the memory of the GPU, if host memory is better off. A transfer that
// broke counts where both sides came to an end by themselves.
func (t *transfer) refuses(failed *row) bool {
	about := func(s *side) bool { return s.gpu && !s.other && slices.ContainsFunc(s.lines, failed.fits) }
	switch failed.effect {
	case unregistered:
		return about(&t.server) || about(&t.client)
	case broken:
		return (t.server.gpu || t.client.gpu) && t.server.alone() && t.client.alone()
	default:
		return false
	}
}

// alone: perftest ended by itself, with one of its two statuses.
func (s *side) alone() bool { return s.ended == "0" || s.ended == "1" }

// ended says how the sides ended if not well.
func (t *transfer) ended() string {
	var all []string
	for _, of := range []struct {
		name string
		*side
	}{{"server", &t.server}, {"client", &t.client}} {
		switch of.ended {
		case "0":
			continue
		case "":
			if !of.given {
				all = append(all, "there is no output of the "+of.name)
				continue
			}
			all = append(all, "the exit status of the "+of.name+" is missing")
		case "124":
			all = append(all, "the "+of.name+" did not end in time")
		case "126", "127":
			all = append(all, "the program of the "+of.name+" could not be started")
		case "137", "143":
			all = append(all, "the "+of.name+" was killed")
		default:
			all = append(all, fmt.Sprintf("the %s ended with status %.9s", of.name, of.ended))
		}
	}
	return strings.Join(all, ", ")
}

// measured is the rate that both sides tell, or why they tell none.
func (t *transfer) measured() (rate float64, why string) {
	s, c := &t.server, &t.client
	server, rate, why := s.measured()
	if why != "" {
		return 0, "server: " + why
	}
	client, other, why := c.measured()
	if why != "" {
		return 0, "client: " + why
	}
	switch {
	case s.unit != c.unit:
		return 0, "the sides print rates in different units"
	case server != client || rate != other:
		return 0, "the sides have different results"
	case s.local == "" || s.remote == "" || s.local != c.remote || s.remote != c.local:
		return 0, "the sides are not of one transfer"
	case s.device == "" || s.device != c.device:
		return 0, "the sides use different NICs, so that the transfer may have left the node"
	}
	for _, j := range []*side{s, c} {
		if j.badJSON || j.json != nil && *j.json != client {
			return 0, "the text and the JSON have different results"
		}
	}
	return rate, ""
}

// mismatch says in what a transfer is another one than was asked for.
func (t *transfer) mismatch(p *plan) string {
	if t.step != nil && t.step.nic != t.server.device {
		return "it is of another NIC than the plan says"
	}
	for _, of := range []struct {
		name string
		*side
	}{{"server", &t.server}, {"client", &t.client}} {
		if why := of.mismatch(t.step, p); why != "" {
			return of.name + ": " + why
		}
	}
	return ""
}

func (s *side) mismatch(step *listed, p *plan) string {
	gpu, way := s.wants()
	asked := cmp.Or(s.option("-d", "--ib-dev"), s.device)
	switch {
	case len(s.asked) == 0:
		return "its command (.cmd) is missing, so that it is not known what was asked for"
	case asked != s.device:
		return "it used another NIC than was asked for"
	case gpu == "" && (s.gpu || s.dmabuf || s.other):
		return "it shows GPU memory, for which it was not asked"
	case gpu == "":
		return ""
	case s.other:
		return "its buffer is memory that both the GPU and the CPU have, or is not the GPU's own"
	case !s.gpu:
		return "its output does not show GPU memory"
	case s.dmabuf != (way == DMABuf):
		return "its output shows another way to GPU memory than was asked for"
	case strings.HasPrefix(gpu, "ROCm"):
		if bus := p.busOf(stepGPU(step)); bus == "" || !slices.Equal(s.gpus, []string{bus}) {
			return "its output does not show which GPU this is: ROCm may count them in another order"
		}
	case !strings.HasPrefix(gpu, "CUDA") && (len(s.gpus) == 0 || slices.ContainsFunc(s.gpus, func(seen string) bool { return seen != gpu })):
		return "its output does not show this GPU"
	}
	return ""
}

func stepGPU(s *listed) string {
	if s == nil {
		return ""
	}
	return s.gpu
}

// baseline is the line of the transfer with the same options and host memory; nil where there is
// none that was measured. Where there are several, all must be, and the fastest counts.
func (f *folder) baseline(lines []Line, t *transfer) *Line {
	var best *Line
	for i, other := range f.transfers {
		l := &lines[i]
		if l.Way != Host || other.server.rest() != t.server.rest() || other.client.rest() != t.client.rest() {
			continue
		}
		if l.State != tristate.True {
			return nil
		}
		if best == nil || l.Gbps > best.Gbps {
			best = l
		}
	}
	return best
}

// compare decides a line about a GPU by its baseline.
func (t *transfer) compare(l *Line, baseline *Line) {
	one := l.Server != l.Client
	switch {
	case baseline == nil && (l.refused || l.Gbps > 0):
		l.Why = strings.TrimPrefix(l.Why+"; there is no baseline: the same transfer with host memory failed, or was not run", "; ")
		return
	case l.refused:
		l.State = tristate.False
		return
	case l.Gbps == 0:
		return
	}
	l.Share = math.Round(l.Gbps/baseline.Gbps*1000) / 1000
	percent := fmt.Sprintf("%.0f %% of the rate with host memory", l.Share*100)
	switch {
	case l.Share < badShare:
		l.State, l.Why = tristate.False, percent
	case one:
		l.Why = "GPU memory on one side alone: it shows one direction over PCI Express"
	case l.Share < goodShare:
		l.Why = percent + ": too little to be sure, and too much to exclude it"
	default:
		l.State = tristate.True
	}
}
