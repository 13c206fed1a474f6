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

// Parts of a machine that can be read without the others.
type Parts uint8

// The parts.
const (
	PCI     Parts = 1 << iota // the PCI bus, and with it everything else
	RDMA                      // RDMA devices and their ports
	Drivers                   // modules, symbols, drivers
	All     = PCI | RDMA | Drivers
)

// Reader reads one machine again and again. A read that hangs is not started a second time. It
// must not be used by several goroutines at a time.
type Reader struct {
	fs      *host.FS
	options Options
	memory  *kmod.Cache // nil for a machine that is read once

	pci     part[pci.Inventory]
	names   part[platform.DMI]
	system  part[platform.State]
	gpus    part[platform.GPUs]
	rdma    part[rdma.Inventory]
	kmod    part[kmod.State]
	advised deadline.Single[kmod.State]
	acs     part[map[pci.Address]*pci.ACS]
	ats     part[map[pci.Address]tristate.State]
	file    part[*nccl.File]
	visible part[platform.Devices]
	asked   []verbs.Answer
	scanner rdma.Scanner
	want    *expect.File // of the machine, now
}

// part is what was last read of one kind.
type part[T any] struct {
	one   deadline.Single[T]
	value T
	err   error // it could not be read
	done  bool
}

// NewReader returns a reader of a machine.
func NewReader(fs *host.FS, o Options) *Reader {
	o.Families, o.What.Expect = o.Families.OrDefault(), o.Expect != nil
	return &Reader{fs: fs, options: o, memory: &kmod.Cache{}}
}

// Read reads some parts and judges the whole. What is not read when ctx ends is unknown.
func (rd *Reader) Read(ctx context.Context, parts Parts) Report {
	parts = rd.missing(parts)
	if parts&PCI != 0 {
		rd.readPCI(ctx)
	}
	r := Report{Fresh: parts, Node: verdict.Node{
		Families: rd.options.Families, PCIRead: rd.pci.err == nil, PCI: rd.pci.value, Platform: platform.State{DMI: rd.names.value},
	}}
	rd.pci.addProblems(&r, r.PCI.Problems)
	rd.names.addProblems(&r, nil)
	if rd.options.Expect != nil {
		var err error
		if rd.want, err = rd.options.Expect(); err != nil {
			r.problem(err)
		}
	}
	if rd.nothingToSay(&r) {
		r.RDMA.Complete = true
		r.place(topology.Inputs{})
		rd.judge(&r)
		return r
	}
	var facts topology.Inputs
	facts.File, facts.FileUnread = rd.namedTopologyFile(&r)
	named := facts.File != nil || facts.FileUnread
	readFile := rd.startTopologyFile(parts, named)
	rd.readRest(ctx, parts)
	r.RDMA, r.Kmod, r.Platform = rd.rdma.value, rd.kmod.value, rd.system.value
	r.Platform.DMI, r.Platform.GPUs = rd.names.value, rd.gpus.value
	rd.rdma.addProblems(&r, r.RDMA.Problems)
	rd.kmod.addProblems(&r, r.Kmod.Problems)
	rd.system.addProblems(&r, r.Platform.Problems)
	rd.gpus.addProblems(&r, r.Platform.GPUs.Problems)
	if !named {
		_ = readFile(ctx)
		rd.file.addProblems(&r, nil)
		facts.File, facts.FileUnread = rd.file.value, rd.file.err != nil
	}
	r.place(facts)
	if why := r.Matrix.FileRefused; why != nil {
		r.problem(fmt.Errorf("NCCL refuses the topology file %s and does not start: %w", r.Matrix.FileName, why))
	}
	r.problem(unnamed(&r.Matrix)...)
	if parts == All {
		rd.readACS(ctx, &r.Node)
	}
	rd.acs.addProblems(&r, nil)
	rd.ats.addProblems(&r, nil)
	if rd.options.What.Process {
		rd.readVisible(ctx, &r)
	}
	if rd.options.AskVerbs != nil {
		rd.probeVerbs(ctx, &r)
	}
	if r.Matrix.Origin == "" && len(r.Matrix.GPUs) > 0 && !facts.FileUnread {
		r.problem(errors.New("neither /proc/cpuinfo nor /sys/class/dmi/id says whether this is a virtual machine"))
	}
	r.ACS, r.ACSUnread, r.ATS, r.Asked = rd.acs.value, rd.acs.err != nil, rd.ats.value, rd.asked
	rd.judge(&r)
	return r
}

// PortsMoved reports whether the state of a port has changed since the RDMA devices were read,
// which costs much more. A device that does not answer is skipped the next time.
func (rd *Reader) PortsMoved(ctx context.Context) bool {
	fs, last := rd.fs, rd.rdma.value
	moved, err := deadline.Async(func() (bool, error) { return rd.scanner.Moved(fs, &last), nil })(ctx)
	return err == nil && moved
}

// missing adds to parts what could not be read before, and what depends on them.
func (rd *Reader) missing(parts Parts) Parts {
	if !rd.pci.done || rd.pci.err != nil || parts&PCI != 0 {
		return All
	}
	if rd.rdma.err != nil {
		parts |= RDMA
	}
	if rd.kmod.err != nil {
		parts |= Drivers
	}
	return parts
}

// start starts to read a part. The function that it returns waits for the result, keeps it, and
// may be called again with a longer context. The error of a timeout has the name.
func (p *part[T]) start(name string, read func() (T, error)) func(context.Context) error {
	wait := p.one.Start(read)
	return func(ctx context.Context) error {
		p.value, p.err = wait(ctx)
		p.done = true
		if errors.Is(p.err, deadline.ErrTimeout) {
			p.err = fmt.Errorf("%s: %w", name, p.err)
		}
		return p.err
	}
}

// addProblems adds to a report why a part could not be read, and the problems of what was.
func (p *part[T]) addProblems(r *Report, read []error) {
	if p.err != nil {
		r.problem(p.err)
		r.Late = r.Late || errors.Is(p.err, deadline.ErrTimeout)
	}
	r.problem(read...)
}

// readPCI reads the PCI bus, and the names of the machine, for which nothing else waits long.
func (rd *Reader) readPCI(ctx context.Context) {
	fs, o := rd.fs, rd.options
	_ = rd.pci.start("PCI bus", func() (pci.Inventory, error) {
		inv, err := pci.Scan(fs, o.Families, o.What)
		inv.Exclude(o.Exclude)
		return inv, err
	})(ctx)
	ctx, cancel := context.WithTimeout(ctx, share(ctx, headStart))
	defer cancel()
	_ = rd.names.start("names of the machine", func() (platform.DMI, error) { return platform.ReadDMI(fs), nil })(ctx)
}

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

func (rd *Reader) readRest(ctx context.Context, parts Parts) {
	devices := func(context.Context) error { return nil }
	drivers := devices
	if parts&RDMA != 0 {
		devices = rd.startRDMA(ctx)
	}
	short, cancel := context.WithTimeout(ctx, share(ctx, headStart))
	defer cancel()
	late := devices(short) != nil
	if parts&Drivers != 0 {
		drivers = rd.startDrivers(short)
	}
	if late {
		_ = devices(ctx) // the error is kept in the part
	}
	_ = drivers(ctx) // as above
}

func (rd *Reader) startRDMA(ctx context.Context) func(context.Context) error {
	fs, functions, what, excluded := rd.fs, rd.pci.value, rd.options.What, rd.options.Exclude.Devices
	return rd.rdma.start("RDMA devices", func() (rdma.Inventory, error) {
		inv := rd.scanner.Scan(ctx, fs, &functions, what)
		inv.Exclude(excluded)
		return inv, nil
	})
}

// startDrivers starts to read the platform and what drivers say of GPUs, which takes little time,
// and then the drivers. A GPU that does not answer holds up no fact of the platform.
func (rd *Reader) startDrivers(short context.Context) func(context.Context) error {
	fs, functions, table, what, memory := rd.fs, rd.pci.value, rd.options.Families, rd.options.What, rd.memory
	names := rd.names.value
	var late []func(context.Context) error
	for _, wait := range [...]func(context.Context) error{
		rd.system.start("files of the platform", func() (platform.State, error) {
			return platform.ReadMachine(fs, names, &functions, what), nil
		}),
		rd.gpus.start("what drivers say of GPUs", func() (platform.GPUs, error) {
			return platform.ReadGPUs(fs, &functions), nil
		}),
	} {
		if wait(short) != nil {
			late = append(late, wait)
		}
	}
	wait := rd.kmod.start("modules and symbols", func() (kmod.State, error) {
		return memory.Scan(fs, &functions, table, what), nil
	})
	return func(ctx context.Context) error {
		for _, again := range late {
			_ = again(ctx) // the error is kept in the part
		}
		err := wait(ctx)
		switch {
		case !what.Advice:
		case err == nil:
			rd.advise(ctx, &rd.kmod.value)
		default: // checks that need no driver are made all the same
			rd.kmod.value.Advice = kmod.NoAdvice()
		}
		return err
	}
}

// adviceTimeout is the least for files that only advice needs: no other fact waits for them.
const adviceTimeout = time.Second

func (rd *Reader) advise(ctx context.Context, state *kmod.State) {
	ctx, cancel := context.WithTimeout(ctx, share(ctx, adviceTimeout))
	defer cancel()
	fs, functions, table, what, facts := rd.fs, rd.pci.value, rd.options.Families, rd.options.What, *state
	advised, err := rd.advised.Read(ctx, func() (kmod.State, error) { return kmod.Advise(fs, &functions, table, what, facts), nil })
	if err == nil {
		*state = advised
		return
	}
	state.Advice = kmod.NoAdvice()
	state.Problems = append(state.Problems, fmt.Errorf("files that advice is read from: %w", err))
}

// unnamed says that the type of a machine is not known, where it decides about some NIC.
func unnamed(m *topology.Matrix) []error {
	open := func(n topology.NIC) bool { return n.Counts() && m.Refuses(n.Function.NIC) == tristate.Unknown }
	if m.EligibleGPUs == 0 || !slices.ContainsFunc(m.NICs, open) {
		return nil
	}
	return []error{fmt.Errorf("%s: sys_vendor and product_name do not say which type of machine this is", platform.DMIDir)}
}

// readVisible finds out what this process can use.
func (rd *Reader) readVisible(ctx context.Context, r *Report) {
	fs, functions, devices := rd.fs, rd.pci.value, rd.rdma.value
	_ = rd.visible.start("device nodes", func() (platform.Devices, error) {
		return platform.ReadDevices(fs, &functions, &devices), nil
	})(ctx)
	r.Visible = rd.visible.value
	rd.visible.addProblems(r, r.Visible.Problems)
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
	rd.asked = rd.options.AskVerbs(ctx, rd.fs, questions)
	r.problem(verbs.Problems(rd.asked[:count])...)
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

// nothingToSay reports whether a machine without GPU needs no more read.
func (rd *Reader) nothingToSay(r *Report) bool {
	mayBeGPU := func(f pci.Function) bool { return f.GPU != nil || f.Unidentified() }
	return rd.options.OnlyWithGPU && r.PCIRead && !slices.ContainsFunc(r.PCI.Functions, mayBeGPU) &&
		(rd.want == nil || rd.want.MatchesNone(&r.Node))
}

func (r *Report) place(facts topology.Inputs) {
	facts.PCI, facts.RDMA, facts.Platform = &r.PCI, &r.RDMA, r.Platform
	r.Matrix = topology.Build(facts)
}

// judge completes the report with everything that follows from its facts.
func (rd *Reader) judge(r *Report) {
	r.Verdict = verdict.Judge(&r.Node)
	if rd.options.Expect != nil {
		r.Expected = &expect.Result{}
	}
	if rd.want != nil {
		*r.Expected = expect.Judge(rd.want, &r.Node)
	}
	r.Labels, r.Unknown = nodelabel.Of(&r.Node, r.Expected)
	r.Findings = findings.All(&r.Node, r.Expected)
}
