// Package report reads all facts about a machine at one time and judges them.
package report

import (
	"context"

	"gdr-features/host"
	"gdr-features/internal/expect"
	"gdr-features/internal/finding"
	"gdr-features/internal/label"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/source/verbs"
	"gdr-features/topology"
	"gdr-features/topology/nccl"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Report is a machine at one time.
type Report struct {
	verdict.Node
	// Findings are the checks one by one.
	Findings []finding.Finding
	// Expected is how the machine compares with what is expected; nil without expectations.
	Expected *expect.Result
	// Labels have no prefix. Unknown names those not read; see nodelabel.Of.
	Labels  label.Set
	Unknown label.Names
	// Fresh are the parts read for this report, and not earlier.
	Fresh Parts
	// Late says that some part timed out. It may answer when read again.
	Late bool
	// Problems are facts that could not be read, in whatever words: see sanitize.Errors.
	Problems []error
}

// Options say what Collect reads.
type Options struct {
	// What is what is read beyond what labels and verdict rest on.
	What source.What
	// Families are those to look for; the zero value stands for family.Known.
	Families family.Table
	// Exclude names NICs that are not judged.
	Exclude pci.Exclusion
	// OnlyWithGPU: of a machine without GPU only the PCI bus is read: it has no labels.
	OnlyWithGPU bool
	// TopologyFile takes the place of the machine's own NCCL topology file; nil for none.
	TopologyFile *nccl.File
	// TopologyOf returns one by the type of the machine, nil for its own; nil without types.
	TopologyOf func(*verdict.Node) (*nccl.File, error)
	// AskVerbs asks RDMA devices whether they register DMA-BUF and for the active MTU of
	// their ports, as verbs.Prober does; nil asks none.
	AskVerbs func(ctx context.Context, fs *host.FS, questions []verbs.Question) []verbs.Answer
	// Expect returns what is expected of machines, at each reading. The error says why
	// nothing, or what was expected before, is in force. Nil without expectations.
	Expect func() (*expect.File, error)
}

// Collect reads and judges a machine once. It never fails: what cannot be read,
// or has not answered when ctx ends, is unknown and named among the problems.
func Collect(ctx context.Context, fs *host.FS, o Options) Report {
	rd := NewReader(fs, o)
	rd.memory = nil // of no use to a single reading
	return rd.Read(ctx, All)
}

// ActiveMTU returns the active MTU of a port in bytes, 256 to 4096, and where it is from: "device"
// says so itself (--probe-verbs), or it follows from the mtu of its "netdev"; 0 and "" where it is
// not known, as for InfiniBand without --probe-verbs.
func (r *Report) ActiveMTU(d *rdma.Device, p *rdma.Port) (mtu int, from string) {
	for i := range r.Asked {
		if a := &r.Asked[i]; a.Device == d.Name && a.MTUs[p.Number] != 0 {
			return a.MTUs[p.Number], "device"
		}
	}
	if p.RoCE.MTU == 0 {
		return 0, ""
	}
	return p.RoCE.MTU, "netdev"
}

// What each command reads of a machine.
var (
	ForLabels = Options{OnlyWithGPU: true}
	ForCheck  = Options{What: source.What{Advice: true}}
	// ForTopo is for topo, explain and the overview: every fact.
	ForTopo = Options{What: source.What{Advice: true, Details: true}}
	// ForDiff is for diff: every fact, and what the ports use.
	ForDiff = Options{What: source.What{Advice: true, Details: true, Publish: true}}
	// ForEnv is for env and topo -o slurm: the matrix, the ports, and the routes.
	ForEnv = Options{What: source.What{Routes: true}}
	// ForPublishing is for publishing what every check of the node found beside the labels, and all
	// ports with what they use.
	ForPublishing = Options{What: source.What{Publish: true, Advice: true}, OnlyWithGPU: true}
)

// Commands are all of them. What expectations need is among the details of the first.
var Commands = [...]Options{ForTopo, ForCheck, ForLabels}

// ForSnapshot returns what a snapshot must hold: what the commands read, whichever
// families of NICs count. The one that reads most is first.
func ForSnapshot() []Options {
	every := ForTopo
	every.Families = family.Every()
	every.What.Everything, every.What.Publish = true, true
	return append([]Options{every}, Commands[:]...)
}

// Expecting returns options that also compare with what is expected.
func (o Options) Expecting(want func() (*expect.File, error)) Options {
	o.Expect = want
	return o
}

// Within reports whether every GPU has an eligible NIC at this level (topology.Unknown: any) or
// a nearer one.
func (r *Report) Within(limit topology.Level) tristate.State {
	if limit == topology.Unknown {
		return tristate.True
	}
	return r.Matrix.Within(limit)
}
