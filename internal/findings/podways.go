package findings

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/frameworks"
	"gdr-features/internal/image"
	"gdr-features/internal/mechanism"
	"gdr-features/source/family"
	"gdr-features/tristate"
)

// frameworkWays: a framework registers GPU memory in ways of its own, and the node has some.
// Images have more frameworks than a job uses: one without a way is a warning beside others
// with one, and what is not known of a framework is no fault, unless somebody asks for it
// (--for).
var frameworkWays = check{name: "framework-ways", rows: []row{
	{
		status: Fail, code: "NoCommonWay", when: func(f *judged) bool { return nodeHasWay(f) && !someShare(f) }, which: frameworksThat(tristate.False),
		text: "{about}; this node has {nodeWays}", fix: commonWay,
	},
	{
		status: Warn, code: "NoCommonWay", when: nodeHasWay, which: frameworksThat(tristate.False),
		text: "{about}; this node has {nodeWays}", fix: commonWay,
	},
	{
		status: Undecidable, when: func(f *judged) bool { return f.Pod.For != "" && nodeHasWay(f) }, which: frameworksThat(tristate.Unknown),
		text: "whether it can use {nodeWays} of this node is not known: {about}", fix: enabling(tristate.Unknown),
	},
	{status: OK, when: nodeHasWay, which: frameworksThat(tristate.True), text: "{about}; this node has {nodeWays}"},
}}

// waysHere are those of the node that libraries of this image can use.
func (f *judged) waysHere() mechanism.Ways {
	ways := mechanism.Ways{Peermem: f.Verdict.Peermem, DMABuf: f.Verdict.DMABuf}
	if withVerbs(f) && !registersDMABuf(f) {
		ways.DMABuf = tristate.False
	}
	return ways
}

// nodeHasWay: where it is known to have none, the checks of the node and of libibverbs say so.
func nodeHasWay(f *judged) bool {
	ways := f.waysHere()
	return tristate.Or(ways.Peermem, ways.DMABuf) != tristate.False
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

// frameworksInQuestion are the one that is asked for, or all of the image. One that is asked
// for and not found has no version.
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
func frameworksThat(want tristate.State) func(*judged) subjects {
	return func(f *judged) (named subjects) {
		for _, p := range f.frameworksInQuestion() {
			for _, q := range f.through(p) {
				if f.shares(q) == want {
					named.add(frameworkText(f, p, q), sawFramework(q)...)
				}
			}
		}
		return named
	}
}

// through are the frameworks whose ways one uses: itself, or those below it if somebody asks
// for it.
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

// shares reports whether a framework has a way that this node has: for an unknown version, if
// all versions agree.
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
func frameworkText(f *judged, p, through image.Package) string {
	name := through.Name + " " + orUnknown(through.Version)
	if p.Name != through.Name {
		name = p.Name + " through " + name
	}
	rows := mechanism.For(through.Name, through.Version)
	if len(rows) != 1 {
		return name
	}
	return fmt.Sprintf("%s registers GPU memory by %s", name, waysText(rows[0].Ways(f.Pod.Environment.Variables)))
}

func sawFramework(p image.Package) []string {
	if p.File == "" {
		return nil
	}
	return []string{saw(p.File, p.Version)}
}

// someShare: another framework of the image has a way of this node.
func someShare(f *judged) bool { return len(frameworksThat(tristate.True)(f).names) > 0 }

// commonWay says what gives framework and node a common way.
func commonWay(f *judged) []string {
	fixes := enabling(tristate.False)(f)
	if f.Verdict.Peermem == tristate.False {
		fixes = append(fixes, "load nvidia-peermem on the node, if its RDMA drivers take it")
	}
	return fixes
}

// enabling says which variable, or else what, makes frameworks use a way of this node.
func enabling(want tristate.State) func(*judged) []string {
	return func(f *judged) []string {
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
		return unique(fixes)
	}
}

// ofiPlugin: NCCL uses NICs of some families only by a network plugin, which needs libfabric.
var ofiPlugin = check{name: "nccl-plugin", rows: under(func(f *judged) bool { return withLoader(f) && wantsPlugin(f) }, nil, []row{
	{
		status: Fail, code: "NoNCCLPlugin", when: func(f *judged) bool { return f.Pod.Image.Plugin == nil },
		text: "NCCL uses {pluginFamily} NICs by the plugin {plugin} alone, and the loader finds no libnccl-net.so: NCCL uses TCP",
		fix:  do("install {plugin} in the image, and name its directory in LD_LIBRARY_PATH or /etc/ld.so.conf.d"), evidence: func(f *judged) []string { return []string{saw(f.Pod.Image.Loader, "no libnccl-net.so")} },
	},
	{
		status: Fail, code: "NoNCCLPlugin", when: func(f *judged) bool { return f.Pod.Image.Fabric == nil },
		text:     "the plugin {plugin} needs libfabric, and the loader finds no " + image.Libfabric + ": NCCL uses TCP",
		fix:      do("install libfabric in the image (libfabric-aws of the EFA installer), and name its directory in LD_LIBRARY_PATH or /etc/ld.so.conf.d"),
		evidence: func(f *judged) []string { return []string{saw(f.Pod.Image.Plugin.Path, "no "+image.Libfabric)} },
	},
	{
		status: Fail, code: "LibraryRefused", which: lacking(func(f *judged) *image.Library { return f.Pod.Image.Fabric }),
		text: "the loader refuses libfabric: it needs {about}, which the image lacks",
		fix:  do("install in the image what libfabric needs (librdmacm1 of Debian and Ubuntu, librdmacm of RHEL, and their like)"),
	},
	{status: OK, text: "NCCL uses {pluginFamily} NICs by {pluginPath}"},
})}

// wantsPlugin: NCCL is in question, and all NICs in question are of families for which it needs
// a plugin.
func wantsPlugin(f *judged) bool {
	nccl := slices.ContainsFunc(f.frameworksInQuestion(), func(p image.Package) bool {
		rows := mechanism.For(p.Name, "")
		return p.Name == "nccl" || len(rows) > 0 && slices.Contains(rows[0].Through, "nccl")
	})
	return nccl && !slices.ContainsFunc(f.familiesInQuestion(), func(n *family.NIC) bool { return n.NCCLPlugin == nil })
}

// allocator: memory that PyTorch allocates with expandable_segments is mapped in pieces
// (cuMemCreate, cuMemMap), of which PyTorch before 2026 did not say that NICs use it
// (pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp@001074d, without gpuDirectRDMACapable;
// pytorch/pytorch#192330 with it). NCCL's own buffers are not meant.
var allocator = check{name: "allocator", rows: []row{{
	status: Warn, code: "ExpandableSegments", which: expandable,
	text: `programs that register PyTorch's own memory with NICs (NIXL, Mooncake, DeepEP, UCCL) may fail with "Bad address", or be slow, because of {about}`,
	fix:  do("remove expandable_segments from the variable in spec.containers[].env", "NCCL alone does not need that"),
}}}

// expandable names the variables that turn expandable_segments on.
func expandable(f *judged) (variables subjects) {
	for _, name := range frameworks.Allocators {
		value := f.Pod.Environment.Variables[name]
		for option := range strings.SplitSeq(value, ",") {
			key, on, _ := strings.Cut(strings.TrimSpace(option), ":")
			if strings.TrimSpace(key) == "expandable_segments" && strings.EqualFold(strings.TrimSpace(on), "true") {
				variables.add(name+"="+value, saw(name, value))
			}
		}
	}
	return variables
}
