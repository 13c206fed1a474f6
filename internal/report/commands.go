package report

import (
	"gdr-features/internal/expect"
	"gdr-features/source"
	"gdr-features/source/family"
)

// What each command reads of a machine.
var (
	ForLabels = Options{OnlyWithGPU: true}
	ForCheck  = Options{What: source.What{Advice: true}}
	// ForTopo is for topo, explain and the overview: every fact.
	ForTopo = Options{What: source.What{Advice: true, Details: true}}
	// ForEnv is for env and topo -o slurm: the matrix, the ports, and device nodes.
	ForEnv = Options{What: source.What{Process: true}}
	// ForPublishing is for publishing all ports beside the labels, and what they use.
	ForPublishing = Options{What: source.What{Publish: true}, OnlyWithGPU: true}
)

// Commands are all of them. What expectations need is among the details of the first.
var Commands = [...]Options{ForTopo, ForCheck, ForLabels}

// ForSnapshot returns what a snapshot must hold: what the commands read, whichever
// families of NICs count. The one that reads most is first.
func ForSnapshot() []Options {
	every := ForTopo
	every.Families, every.What.Everything, every.What.Process = family.Every(), true, true
	return append([]Options{every}, Commands[:]...)
}

// InPod returns options that also judge the container that this process is in.
func (o Options) InPod(p Pod) Options {
	o.Pod, o.What.Process = &p, true
	return o
}

// Expecting returns options that also compare with what is expected.
func (o Options) Expecting(want func() (*expect.File, error)) Options {
	o.Expect = want
	return o
}
