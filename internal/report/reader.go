package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/internal/expect"
	"gdr-features/internal/findings"
	"gdr-features/internal/nodelabel"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/source/verbs"
	"gdr-features/topology"
	"gdr-features/topology/nccl"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Reader reads one machine again and again. A read that hangs is not started a second time. It
// must not be used by several goroutines at a time.
type Reader struct {
	fs      *host.FS
	options Options
	memory  *kmod.Cache // nil for a machine that is read once
	scanner rdma.Scanner
	table   table
}

// NewReader returns a reader of a machine.
func NewReader(fs *host.FS, o Options) *Reader {
	o.Families, o.What.Expect = o.Families.OrDefault(), o.Expect != nil
	rd := &Reader{fs: fs, options: o, memory: &kmod.Cache{}}
	rd.table = rd.newTable()
	return rd
}

// Read reads some parts and judges the whole. What is not read when ctx ends is unknown.
func (rd *Reader) Read(ctx context.Context, parts Parts) Report {
	t := &rd.table
	r := Report{Fresh: rd.needed(parts), Node: verdict.Node{Families: rd.options.Families}}
	rd.read(ctx, &r, t.bus)
	rd.readBriefly(ctx, headStart, &r, t.names)
	want := rd.expected(&r)
	if rd.nothingToSay(&r, want) {
		r.RDMA.Complete = true
		r.place(nil, false)
		judge(&r, want)
		return r
	}
	rd.read(ctx, &r, t.facts...)
	if rd.options.What.Advice {
		rd.readBriefly(ctx, adviceTimeout, &r, t.advice)
	}
	r.place(t.file.value, t.file.err != nil)
	r.problem(doubts(&r.Matrix)...)
	rd.read(ctx, &r, t.near...)
	if rd.options.AskVerbs != nil {
		rd.probeVerbs(ctx, &r)
	}
	judge(&r, want)
	return r
}

// PortsMoved reports whether the state of a port has changed since the RDMA devices were read,
// which costs much more. A device that does not answer is skipped the next time.
func (rd *Reader) PortsMoved(ctx context.Context) bool {
	fs, last := rd.fs, rd.table.devices.value
	moved, err := deadline.Async(func() (bool, error) { return rd.scanner.Moved(fs, &last), nil })(ctx)
	return err == nil && moved
}

// needed adds to parts those that did not answer, and what depends on them.
func (rd *Reader) needed(parts Parts) Parts {
	bus := rd.table.bus
	if !bus.done || bus.err != nil {
		return All
	}
	for _, p := range append([]probe{rd.table.names}, rd.table.facts...) {
		parts |= p.again()
	}
	if parts&PCI != 0 {
		return All
	}
	return parts
}

// read completes a report with some facts. They are read one after the other; where one does not
// answer for a while, the next ones are read beside it.
func (rd *Reader) read(ctx context.Context, r *Report, facts ...probe) {
	short, cancel := context.WithTimeout(ctx, share(ctx, headStart))
	defer cancel()
	var late []func(context.Context) error
	for _, p := range facts {
		if !p.due(r.Fresh) {
			continue
		}
		wait := p.start(ctx, known{r.Node, rd.fs, rd.options})
		if errors.Is(wait(short), deadline.ErrTimeout) {
			late = append(late, wait)
		}
	}
	for _, wait := range late {
		_ = wait(ctx) // the error is kept in the part
	}
	for _, p := range facts {
		p.put(r)
	}
}

// readBriefly reads what nothing else waits long for.
func (rd *Reader) readBriefly(ctx context.Context, least time.Duration, r *Report, facts probe) {
	ctx, cancel := context.WithTimeout(ctx, share(ctx, least))
	defer cancel()
	rd.read(ctx, r, facts)
}

// adviceTimeout is the least for files that only advice needs: no other fact waits for them.
const adviceTimeout = time.Second

// headStart is how long at least the RDMA devices are read before the drivers are, too: one after the
// other costs less CPU time, but devices that do not answer must not hold the drivers up.
const headStart = 500 * time.Millisecond

// share is how long to wait for what others do not wait long for: an eighth of the time that is
// left, but least at any rate. Whoever sets no end waits for a day.
func share(ctx context.Context, least time.Duration) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 24 * time.Hour
	}
	return max(least, time.Until(end)/8)
}

// doubts returns what is not known about a machine and may change its levels.
func doubts(m *topology.Matrix) (problems []error) {
	if m.FileRefused != nil {
		problems = append(problems, fmt.Errorf("NCCL refuses the topology file %s and does not start: %w", m.File.Name, m.FileRefused))
	}
	unnamed := func(n topology.NIC) bool { return n.Counts() && m.Refuses(n.Function.NIC) == tristate.Unknown }
	if m.EligibleGPUs > 0 && slices.ContainsFunc(m.NICs, unnamed) {
		problems = append(problems, fmt.Errorf("%s: sys_vendor and product_name do not say which type of machine this is", platform.DMIDir))
	}
	if m.Origin == "" && len(m.GPUs) > 0 && !m.FileUnread {
		problems = append(problems, errors.New("neither /proc/cpuinfo nor /sys/class/dmi/id says whether this is a virtual machine"))
	}
	return problems
}

// probeVerbs asks the devices of eligible NICs whether they register DMA-BUF, and software
// devices, which show whether asking works, but leaves the latter's problems out.
func (rd *Reader) probeVerbs(ctx context.Context, r *Report) {
	var questions []verbs.Question
	for i := range r.Matrix.NICs {
		if n := &r.Matrix.NICs[i]; n.Counts() && n.RDMA != nil && n.Function.NIC.Uverbs.Driver != 0 && n.Function.NIC.Drives(n.Function.Driver) {
			questions = append(questions, verbs.Question{Device: n.RDMA.Name, Ports: activePorts(n.RDMA)})
		}
	}
	count := len(questions)
	for i := range r.RDMA.Devices {
		if d := &r.RDMA.Devices[i]; d.PCI == nil {
			questions = append(questions, verbs.Question{Device: d.Name})
		}
	}
	r.Asked = rd.options.AskVerbs(ctx, rd.fs, questions)
	r.problem(verbs.Problems(r.Asked[:count])...)
}

// activePorts are the ports of a device whose active MTU it is asked for. That of InfiniBand
// changes when the link comes up anew, and that of RoCE with the network device.
func activePorts(d *rdma.Device) (ports []verbs.Port) {
	for _, p := range d.Ports {
		if p.Active() {
			ports = append(ports, verbs.Port{Number: p.Number, Seen: fmt.Sprint(p.LinkLayer, p.RateGbps, p.RoCE.MTU)})
		}
	}
	return ports
}

func (r *Report) problem(errs ...error) { r.Problems = append(r.Problems, errs...) }

// expected returns what is expected of the machine, now; nil for nothing.
func (rd *Reader) expected(r *Report) *expect.File {
	if rd.options.Expect == nil {
		return nil
	}
	r.Expected = &expect.Result{}
	want, err := rd.options.Expect()
	if err != nil {
		r.problem(err)
	}
	return want
}

// nothingToSay reports whether a machine without GPU needs no more read.
func (rd *Reader) nothingToSay(r *Report, want *expect.File) bool {
	mayBeGPU := func(f pci.Function) bool { return f.GPU != nil || f.Unidentified() }
	return rd.options.OnlyWithGPU && r.PCIRead && !slices.ContainsFunc(r.PCI.Functions, mayBeGPU) &&
		(want == nil || want.MatchesNone(&r.Node))
}

func (r *Report) place(file *nccl.File, unread bool) {
	r.Matrix = topology.Build(topology.Inputs{PCI: &r.PCI, RDMA: &r.RDMA, Platform: r.Platform, File: file, FileUnread: unread})
}

// judge completes the report with everything that follows from its facts.
func judge(r *Report, want *expect.File) {
	r.Verdict = verdict.Judge(&r.Node)
	if want != nil {
		*r.Expected = expect.Judge(want, &r.Node)
	}
	r.Labels, r.Unknown = nodelabel.Of(&r.Node, r.Expected)
	r.Findings = findings.All(&r.Node, r.Expected)
}
