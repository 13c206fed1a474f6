package pod

import (
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/fleet/image"
	"gdr-features/internal/fleet/mechanism"
	"gdr-features/tristate"
)

// frameworkWays: a framework registers GPU memory in ways of its own, and the node has some.
// Images have more frameworks than a job uses: one without a way is a warning beside others
// with one, and what is not known of a framework is no fault, unless somebody asks for it
// (--for).
var frameworkWays = check{
	Name: "framework-ways", Codes: []finding.Code{"NoCommonWay", finding.Unreadable},
	Judge: func(f *judged) finding.Said {
		ways := f.waysHere()
		if tristate.Or(ways.Peermem, ways.DMABuf) == tristate.False { // other checks say so
			return finding.Said{}
		}
		node := waysText(ways)
		without, open, sharing := f.frameworksThat(tristate.False), f.frameworksThat(tristate.Unknown), f.frameworksThat(tristate.True)
		switch {
		case without.Any():
			say := finding.Fail
			if sharing.Any() {
				say = finding.Warn
			}
			return say("NoCommonWay", "%s; this node has %s", without, node).Of(without).
				Do(f.commonWay()...)
		case open.Any() && f.Pod.For != "":
			return finding.Unknown("whether it can use %s of this node is not known: %s", node, open).Of(open).
				Do(f.enabling(tristate.Unknown)...)
		case sharing.Any():
			return finding.OK("%s; this node has %s", sharing, node).Of(sharing)
		}
		return finding.Said{}
	},
}

// waysHere are those of the node that libraries of this image can use.
func (f *judged) waysHere() mechanism.Ways {
	ways := mechanism.Ways{Peermem: f.Verdict.Peermem, DMABuf: f.Verdict.DMABuf}
	if withVerbs(f.Pod.Image) && !registersDMABuf(f.Pod.Image) {
		ways.DMABuf = tristate.False
	}
	return ways
}

func waysText(w mechanism.Ways) string {
	var known, open []string
	for _, way := range [...]struct {
		name  string
		state tristate.State
	}{{"peermem", w.Peermem}, {"DMA-BUF", w.DMABuf}} {
		switch way.state {
		case tristate.True:
			known = append(known, way.name)
		case tristate.Unknown:
			open = append(open, "perhaps "+way.name)
		case tristate.False:
		}
	}
	if all := slices.Concat(known, open); len(all) > 0 {
		return strings.Join(all, " and ")
	}
	return "none"
}

// frameworksInQuestion are the one that is asked for, without a version if it is not in the image,
// or all of the image.
func (f *judged) frameworksInQuestion() (all []image.Package) {
	if f.Pod.Image != nil {
		all = slices.DeleteFunc(slices.Clone(f.Pod.Image.Frameworks), func(p image.Package) bool { return f.Pod.For != "" && p.Name != f.Pod.For })
	}
	if len(all) == 0 && f.Pod.For != "" {
		all = []image.Package{{Name: f.Pod.For}}
	}
	return all
}

// frameworksThat names the frameworks that share a way with the node, or none, or perhaps one.
// Frameworks without a way of their own are judged by those through which they go, unless these
// are judged themselves.
func (f *judged) frameworksThat(want tristate.State) (named finding.Subjects) {
	for _, p := range f.frameworksInQuestion() {
		for _, q := range f.through(p) {
			if f.shares(q) == want {
				named.Add(f.frameworkText(p, q), sawFramework(q)...)
			}
		}
	}
	return named
}

// through are the frameworks whose ways one uses: itself, or if it is asked for those below it.
func (f *judged) through(p image.Package) (all []image.Package) {
	rows := mechanism.For(p.Name, p.Version)
	if len(rows) == 0 || len(rows[0].Through) == 0 {
		return []image.Package{p}
	}
	if f.Pod.For == "" {
		return nil
	}
	for _, name := range rows[0].Through {
		below := image.Package{Name: name}
		if f.Pod.Image != nil {
			if at := slices.IndexFunc(f.Pod.Image.Frameworks, func(q image.Package) bool { return q.Name == name }); at >= 0 {
				below = f.Pod.Image.Frameworks[at]
			} else if name != rows[0].Through[0] {
				continue // not in use
			}
		}
		all = append(all, f.through(below)...)
	}
	return all
}

// shares reports whether a framework, in all versions that it may be of, has a way of this node.
func (f *judged) shares(p image.Package) tristate.State {
	rows := mechanism.For(p.Name, p.Version)
	if len(rows) == 0 {
		return tristate.Unknown
	}
	shared := func(r *mechanism.Row) tristate.State { return r.Ways(f.Pod.Environment.Variables).Shared(f.waysHere()) }
	first := shared(rows[0])
	if slices.ContainsFunc(rows, func(r *mechanism.Row) bool { return shared(r) != first }) {
		return tristate.Unknown
	}
	return first
}

// frameworkText says what a framework uses, and through what, if that is another one.
func (f *judged) frameworkText(p, through image.Package) string {
	name := through.Name + " " + orUnknown(through.Version)
	if p.Name != through.Name {
		name = p.Name + " through " + name
	}
	rows := mechanism.For(through.Name, through.Version)
	if len(rows) != 1 {
		return name
	}
	return name + " registers GPU memory by " + waysText(rows[0].Ways(f.Pod.Environment.Variables))
}

func sawFramework(p image.Package) []string {
	if p.File == "" {
		return nil
	}
	return []string{finding.Saw(p.File, p.Version)}
}

func (f *judged) commonWay() []string {
	fixes := f.enabling(tristate.False)
	if f.Verdict.Peermem == tristate.False {
		fixes = append(fixes, "load nvidia-peermem on the node, if its RDMA drivers take it")
	}
	return fixes
}

// enabling says which variable, or else what, makes frameworks use a way of this node.
func (f *judged) enabling(want tristate.State) []string {
	var fixes []string
	for _, p := range f.frameworksInQuestion() {
		for _, q := range f.through(p) {
			if f.shares(q) != want {
				continue
			}
			fix := "use a version of " + q.Name + " that has a way of this node (docs/mechanisms.md)"
			for _, r := range mechanism.For(q.Name, q.Version) {
				if variable := r.Enable(f.waysHere()); variable != "" {
					fix = "set " + variable + " in spec.containers[].env (" + r.Versions() + ")"
				}
			}
			fixes = append(fixes, fix)
		}
	}
	return finding.Unique(fixes)
}
