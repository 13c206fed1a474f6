package pod

import (
	"slices"

	"gdr-features/internal/finding"
	"gdr-features/internal/findings"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

type judged struct {
	verdict.Pair
	Pod *Container
}

type check = finding.Check[*judged]

// The checks, in their order: what the container lets its processes do, what variables do, and
// what the libraries of its image do.
var (
	ofProcess = []check{gpuNodes, verbsNodes, lockedMemory, roceGIDs, gidIndex}
	ofOthers  = []check{
		virtualFunctions, switchedOff, nicVariables, ibgda, libibverbs, verbsProvider, ncclPlugin, frameworkWays, allocator, ucxBond, ncclGIN,
	}
	checks = slices.Concat(ofProcess, ofOthers)
)

// Check returns the findings about a container on a node; none where those about the node end with
// its hardware, or were made without what advice needs.
func Check(node *verdict.Node, c *Container) []finding.Finding {
	if findings.HardwareAlone(node) || node.Kmod.Advice == nil {
		return nil
	}
	apply := checks
	if c.Elsewhere { // nothing is known of it but its image and its variables
		apply = ofOthers
	}
	f := &judged{Pair: node.Judged(), Pod: c}
	var all []finding.Finding
	for i := range apply {
		if found, ok := apply[i].Find(f, nil); ok {
			all = append(all, found)
		}
	}
	return all
}

// Codes lists every code that a finding about a container can have, each once.
func Codes() []finding.Code {
	var all []finding.Code
	for i := range checks {
		all = append(all, checks[i].Codes...)
	}
	return finding.Unique(all)
}

// CodesOf lists the codes that a check of this name may give; ok is false where there is none.
func CodesOf(name string) (codes []finding.Code, ok bool) { return finding.CodesOf(checks, name) }

// Insert adds findings about a container to those of its node, before those of expectations. One of
// a check that All has, too, stands in its place.
func Insert(all, more []finding.Finding) []finding.Finding {
	for _, f := range more {
		at := indexOf(all, f.Check)
		if at >= 0 {
			all[at] = f
			continue
		}
		if at = indexOf(all, findings.Expected); at < 0 {
			at = len(all)
		}
		all = slices.Insert(all, at, f)
	}
	return all
}

func indexOf(all []finding.Finding, check string) int {
	return slices.IndexFunc(all, func(f finding.Finding) bool { return f.Check == check })
}

// About reports whether a finding is about a container. One that stands in the place of the node's
// is about the node.
func About(found *finding.Finding) bool {
	return found.Check != findings.NCCLDefault && slices.ContainsFunc(checks, func(c check) bool { return c.Name == found.Check })
}

// Ready reports whether a container is ready, by the findings about it alone: False where
// one failed, Unknown where one is not known.
func Ready(all []finding.Finding) tristate.State {
	state := tristate.True
	for i := range all {
		switch f := &all[i]; {
		case !About(f):
		case f.Status == finding.StatusFail:
			state = tristate.False
		case f.Status == finding.StatusUnknown:
			state = tristate.And(state, tristate.Unknown)
		}
	}
	return state
}
