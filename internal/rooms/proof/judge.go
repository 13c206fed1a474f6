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
	// Gbps is the rate in 10^9 bits a second. Share is that of the baseline, OfPort and OfPCIe are
	// those of what the NIC could; 0 for unknown.
	Gbps   float64        `json:"gbps,omitempty"`
	Share  float64        `json:"share,omitempty"`
	OfPort float64        `json:"ofPort,omitempty"`
	OfPCIe float64        `json:"ofPCIe,omitempty"`
	State  tristate.State `json:"state"`
	Why    string         `json:"why,omitempty"`
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

// Read judges the files of a folder. rates, which may be nil, tells those that its plan does not.
func Read(files []File, rates func(nic string) Rates) Result {
	f := open(files)
	r := Result{Lines: []Line{}}
	for _, t := range f.transfers {
		r.Lines = append(r.Lines, t.line(&f.plan))
	}
	baselines := f.baselines(r.Lines)
	for i, t := range f.transfers {
		l := &r.Lines[i]
		if l.Way != Host {
			t.compare(l, baselines[t.options()])
		}
		of := cmp.Or(t.step, &Step{}).Rates
		if rates != nil && of == (Rates{}) {
			of = rates(l.NIC)
		}
		l.OfPort, l.OfPCIe = share(l.Gbps, of.Port), share(l.Gbps, of.PCIe)
	}
	for i := range f.plan.steps {
		if s := &f.plan.steps[i]; f.by[s.Name] == nil {
			r.Lines = append(r.Lines, Line{Name: s.Name, GPU: s.GPU, NIC: s.NIC, Way: s.Way, Why: "it was not run, or nothing was written"})
		}
	}
	r.Notes = slices.Concat([]string{}, f.notes, f.plan.notes)
	r.fold(&f.plan)
	return r
}

// share is a part of a whole, 0 for unknown.
func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(part/whole*1000) / 1000
}

// fold takes all lines about GPUs together. What was not measured leaves it unknown.
func (r *Result) fold(p *plan) {
	switch {
	case !p.given:
		r.Notes = append(r.Notes, "there is no list of steps (plan): whether all were run is not known")
	case !p.whole:
		r.Notes = append(r.Notes, "the list of steps (plan) is torn: whether all were run is not known")
	}
	switch n := r.count(); {
	case n[tristate.False] > 0:
		r.State = tristate.False
	case n[tristate.True] > 0 && n[tristate.Unknown] == 0 && p.whole && !p.lacks:
		r.State = tristate.True
	}
}

// count counts the lines about GPUs by what they are.
func (r *Result) count() map[tristate.State]int {
	n := map[tristate.State]int{}
	for i := range r.Lines {
		if r.Lines[i].Way != Host {
			n[r.Lines[i].State]++
		}
	}
	return n
}

// line judges one transfer by itself: a baseline is true if it was measured; all others are unknown
// until they are compared with theirs.
func (t *transfer) line(p *plan) Line {
	l := Line{Name: t.name, NIC: cmp.Or(t.server.device, t.client.device), Server: t.server.memory(), Client: t.client.memory()}
	l.GPU, l.Way = t.wants()
	if t.step != nil {
		l.GPU, l.NIC, l.Way = cmp.Or(t.step.GPU, l.GPU), t.step.NIC, cmp.Or(l.Way, t.step.Way)
	}
	failed, ended := find(slices.Concat(t.server.lines, t.client.lines), l.Way), t.ended()
	if failed != nil && failed.effect == followed && (!t.server.alone() || !t.client.alone()) {
		failed = nil
	}
	if failed != nil && (ended != "" || failed.effect == unregistered || failed.effect == broken) {
		l.Why, l.Code, l.refused = failed.means, failed.code, t.refuses(failed)
		return l
	}
	rate, why := t.measured()
	if l.Why = cmp.Or(ended, why, t.mismatch(p)); l.Why != "" {
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

// endings are what exit statuses say, of perftest and of timeout.
var endings = map[string]string{
	"": "has no exit status", "124": "did not end in time", "126": "could not be started", "127": "could not be started",
	"137": "was killed", "143": "was killed",
}

// ended says how the sides ended if not well.
func (t *transfer) ended() string {
	var all []string
	for _, s := range t.sides() {
		how := endings[s.ended]
		switch {
		case s.ended == "0":
			continue
		case !s.given:
			how = "has no output"
		case how == "":
			how = fmt.Sprintf("ended with status %.9s", s.ended)
		}
		all = append(all, "the "+s.name+" "+how)
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
	contradicts := func(s *side) bool { return s.badJSON || s.json != nil && *s.json != client }
	switch {
	case s.unit != c.unit:
		return 0, "the sides print rates in different units"
	case server != client || rate != other:
		return 0, "the sides have different results"
	case s.local == "" || s.remote == "" || s.local != c.remote || s.remote != c.local:
		return 0, "the sides are not of one transfer"
	case s.device == "" || s.device != c.device:
		return 0, "the sides use different NICs, so that the transfer may have left the node"
	case contradicts(s) || contradicts(c):
		return 0, "the text and the JSON have different results"
	}
	return rate, ""
}

// mismatch says in what a transfer is another one than was asked for.
func (t *transfer) mismatch(p *plan) string {
	if t.step != nil && t.step.NIC != t.server.device {
		return "it is of another NIC than the plan says"
	}
	for _, s := range t.sides() {
		if why := s.mismatch(cmp.Or(t.step, &Step{}).GPU, p); why != "" {
			return s.name + ": " + why
		}
	}
	return ""
}

func (s *side) mismatch(planned string, p *plan) string {
	gpu, way := s.wants()
	other := func(seen string) bool { return seen != gpu }
	switch {
	case len(s.asked) == 0:
		return "its command (.cmd) is missing, so that it is not known what was asked for"
	case cmp.Or(s.option("-d", "--ib-dev"), s.device) != s.device:
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
		if bus := p.busOf(planned); bus == "" || !slices.Equal(s.gpus, []string{bus}) {
			return "its output does not show which GPU this is: ROCm may count them in another order"
		}
	case !strings.HasPrefix(gpu, "CUDA") && (len(s.gpus) == 0 || slices.ContainsFunc(s.gpus, other)):
		return "its output does not show this GPU"
	}
	return ""
}

// options are those that a result and its baseline have in common.
func (t *transfer) options() string { return t.server.rest() + "\n" + t.client.rest() }

// baselines are the lines with host memory, by their options: the fastest, nil where one was not
// measured.
func (f *folder) baselines(lines []Line) map[string]*Line {
	best := map[string]*Line{}
	for i, t := range f.transfers {
		l := &lines[i]
		if l.Way != Host {
			continue
		}
		of := t.options()
		switch other, more := best[of]; {
		case more && other == nil:
		case l.State != tristate.True:
			best[of] = nil
		case !more || l.Gbps > other.Gbps:
			best[of] = l
		}
	}
	return best
}

// compare decides a line about a GPU by its baseline.
func (t *transfer) compare(l, baseline *Line) {
	switch {
	case !l.refused && l.Gbps == 0:
		return
	case baseline == nil:
		l.Why = strings.TrimPrefix(l.Why+"; there is no baseline: the same transfer with host memory failed, or was not run", "; ")
		return
	case l.refused:
		l.State = tristate.False
		return
	}
	l.Share = share(l.Gbps, baseline.Gbps)
	percent := fmt.Sprintf("%.0f %% of the rate with host memory", l.Share*100)
	switch {
	case l.Share < badShare:
		l.State, l.Why = tristate.False, percent
	case l.Server != l.Client:
		l.Why = "GPU memory on one side alone: it shows one direction over PCI Express"
	case l.Share < goodShare:
		l.Why = percent + ": too little to be sure, and too much to exclude it"
	default:
		l.State = tristate.True
	}
}
