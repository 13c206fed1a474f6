package pod

import (
	"fmt"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/findings"
	"gdr-features/internal/fleet/mechanism"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/tristate"
)

const (
	correctVariable = "remove or correct the variable in spec.containers[].env (or envFrom)"
	fromEnv         = "set it from gdr-features env in an initContainer, or remove it from " +
		"spec.containers[].env"
)

// switchedOff: variables of NCCL, UCX and NVSHMEM that keep them from using GPUDirect RDMA.
var switchedOff = check{
	Name: "gpudirect-variables", Codes: []finding.Code{"GPUDirectOff"},
	Judge: func(f *judged) finding.Said {
		if whole := f.effects(true); whole.Any() {
			return finding.Fail("GPUDirectOff", "GPUDirect RDMA is not used because of %s", whole).Of(whole).
				Do(correctVariable)
		}
		if some := f.effects(false); some.Any() {
			return finding.Warn("GPUDirectOff", "%s", some).Of(some).Do(correctVariable)
		}
		return finding.Said{}
	},
}

// effects names the variables that turn GPUDirect RDMA off, as a whole or in part.
func (f *judged) effects(whole bool) (variables finding.Subjects) {
	form := "%s=%s: %s"
	if whole {
		form = "%s=%s (%s)"
	}
	if s := &f.Pod.Selected; whole && len(s.By) > 0 && len(s.GPUs) == 0 {
		variables.Add(strings.Join(s.By, " ")+" (it leaves no GPU)", s.By...)
	}
	ways := mechanism.Ways{Peermem: f.Verdict.Peermem, DMABuf: f.Verdict.DMABuf}
	writesAlone := findings.WriteOnly(f.Node)
	for _, e := range frameworks.Switches(f.frameworkMap(), ways, f.Pod.Environment.Variables) {
		neededHere := e.Name == "NCCL_NET_GDR_READ" && writesAlone
		if e.Whole == whole && !neededHere {
			variables.Add(fmt.Sprintf(form, e.Name, e.Value, e.Why), finding.Saw(e.Name, e.Value))
		}
	}
	return variables
}

// frameworkMap is the map by which variables are judged: that of the NICs which the
// container can use, and of all where it can use none.
func (f *judged) frameworkMap() *assign.Assignment {
	if len(f.Pod.Map.NICs)+len(f.Pod.Map.Unknown) == 0 {
		return f.Pod.Namespace
	}
	return f.Pod.Map
}

// nicVariables are those that tell a framework which NIC each GPU should use.
var nicVariables = check{
	Name: "nic-variables", Codes: []finding.Code{"WrongNICVariable", finding.Unreadable},
	Judge: func(f *judged) finding.Said {
		wrong, mildly := f.variablesThatAre(tristate.False, false), f.variablesThatAre(tristate.False, true)
		open, right := f.variablesThatAre(tristate.Unknown, false), f.variablesThatAre(tristate.True, false)
		switch {
		case wrong.Any():
			return finding.Fail("WrongNICVariable", "%s", wrong).Of(wrong).Do(fromEnv)
		case open.Any():
			return finding.Unknown("%s", open).Of(open)
		case mildly.Any():
			return finding.Warn("WrongNICVariable", "%s", mildly).Of(mildly).Do(fromEnv)
		case right.Any():
			return finding.OK("each GPU is given the nearest NIC by %s", right).Of(right)
		}
		return finding.Said{}
	},
}

// variablesThatAre names the variables that are wrong, mildly or not, right, or not known to be.
func (f *judged) variablesThatAre(state tristate.State, mild bool) (variables finding.Subjects) {
	if len(f.frameworkMap().NICs) == 0 {
		return variables // the ports say why
	}
	for _, found := range frameworks.Check(f.frameworkMap(), f.Pod.Environment) {
		if !found.Aside && found.State == state && found.Mild() == mild {
			variables.Add(found.Text(), f.sawVariable(found.Name)...)
		}
	}
	return variables
}

// sawVariable is the value of a variable, nothing where it has none.
func (f *judged) sawVariable(name string) []string {
	if value := f.Pod.Environment.Variables[name]; value != "" {
		return []string{finding.Saw(name, value)}
	}
	return nil
}
