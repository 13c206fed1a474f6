// Package report reads everything there is to know about a machine at one
// moment and judges it.
package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gdr-features/internal/host"
	"gdr-features/internal/label"
	"gdr-features/internal/timed"
	"gdr-features/internal/topology"
	"gdr-features/internal/verdict"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
)

// Report is a machine at one moment.
type Report struct {
	// PCIRead is false when the PCI bus could not be read at all.
	PCIRead bool
	PCI     pci.Inventory
	RDMA    rdma.Inventory
	Kmod    kmod.State
	Map     topology.Map
	Verdict verdict.Verdict
	// Labels are without prefix. Unknown names those that are not there because
	// their facts could not be read.
	Labels  label.Set
	Unknown label.Names
	// Problems are the facts that could not be read, one sentence each.
	Problems []string
}

// Options say what Collect reads.
type Options struct {
	// Detail is pci.Needed for labels and verdict, pci.Published for publishers,
	// pci.Everything for people.
	Detail pci.Detail
	// OnlyWithGPU: a machine without NVIDIA GPU needs no more than its PCI bus
	// read, since it has no labels.
	OnlyWithGPU bool
	// TopologyFile is an NCCL topology file that takes the place of the
	// machine's own; nil for none.
	TopologyFile *topology.File
}

// machineTopology is where a virtual machine's NCCL topology lies (nccl
// src/graph/topo.cc).
const machineTopology = "var/run/nvidia-topologyd/virtualTopology.xml"

// Collect reads and judges. It never fails: what cannot be read, or has not
// answered when ctx ends, is unknown and named among the problems.
func Collect(ctx context.Context, fs *host.FS, o Options) Report {
	r := Report{RDMA: rdma.Inventory{Complete: true}}
	r.scanPCI(ctx, fs, o.Detail)
	if o.OnlyWithGPU && r.PCIRead && !r.hasGPU() {
		r.judge(topology.Facts{}, nil)
		return r
	}
	r.scanRest(ctx, fs, o.Detail)
	facts := topology.Facts{File: o.TopologyFile}
	if facts.File == nil {
		facts.File, facts.FileUnread = r.machineFile(fs)
	}
	r.judge(facts, func(m *topology.Map) (map[pci.Address]*pci.ACS, bool) { return r.readACS(ctx, fs, m) })
	return r
}

func (r *Report) problem(err error) { r.Problems = append(r.Problems, err.Error()) }

func (r *Report) problems(errs []error) {
	for _, err := range errs {
		r.problem(err)
	}
}

func (r *Report) hasGPU() bool {
	for i := range r.PCI.Functions {
		if r.PCI.Functions[i].Kind() == pci.GPU {
			return true
		}
	}
	return false
}

func (r *Report) scanPCI(ctx context.Context, fs *host.FS, detail pci.Detail) {
	inv, err := timed.Start(func() (pci.Inventory, error) { return pci.Scan(fs, detail) })(ctx)
	if errors.Is(err, timed.ErrNoAnswer) {
		err = fmt.Errorf("PCI bus: %w", err)
	}
	if err != nil {
		r.problem(err)
		return
	}
	r.PCI, r.PCIRead = inv, true
	r.problems(r.PCI.Problems)
}

// headStart is how long the RDMA devices may take before the rest is read
// beside them. One after the other costs less processor time, and sick devices
// must not keep the drivers from being read.
const headStart = 500 * time.Millisecond

// scanRest reads the RDMA devices and the drivers.
func (r *Report) scanRest(ctx context.Context, fs *host.FS, detail pci.Detail) {
	functions := &r.PCI
	rdmaDone := timed.Start(func() (rdma.Inventory, error) { return rdma.Scan(ctx, fs, functions, detail), nil })
	short, cancel := context.WithTimeout(ctx, headStart)
	defer cancel()
	var err error
	r.RDMA, err = rdmaDone(short)
	request := kmod.Request{AllSymbols: detail == pci.Everything}
	for i := range r.PCI.Functions {
		f := &r.PCI.Functions[i]
		if kind := f.Kind(); f.IOMMUGroup != pci.None && (kind == pci.GPU || kind == pci.NIC) {
			request.Groups = append(request.Groups, f.IOMMUGroup)
		}
		request.DriverBound = request.DriverBound || f.Kind() == pci.GPU && f.Driver == "nvidia"
	}
	kmodDone := timed.Start(func() (kmod.State, error) { return kmod.Scan(fs, request), nil })
	if err != nil {
		r.RDMA, err = rdmaDone(ctx)
	}
	if err != nil {
		r.problem(fmt.Errorf("RDMA devices: %w", err))
	}
	r.problems(r.RDMA.Problems)
	if r.Kmod, err = kmodDone(ctx); err != nil {
		r.problem(fmt.Errorf("modules and symbols: %w", err))
	}
	r.problems(r.Kmod.Problems)
}

// machineFile reads the machine's own topology file. unread tells that there is
// one that cannot be read.
func (r *Report) machineFile(fs *host.FS) (file *topology.File, unread bool) {
	data, err := fs.Bytes(machineTopology, topology.MaxFile)
	if host.Absent(err) {
		return nil, false
	}
	if err == nil {
		if file, err = topology.ParseFile(data); err != nil {
			err = fmt.Errorf("/%s: %w", machineTopology, err)
		}
	}
	if err != nil {
		r.problem(err)
		return nil, true
	}
	return file, false
}

// readACS reads the bridges between GPUs and their nearest NICs. late tells that
// it took too long.
func (r *Report) readACS(ctx context.Context, fs *host.FS, m *topology.Map) (acs map[pci.Address]*pci.ACS, late bool) {
	wait := timed.Start(func() (map[pci.Address]*pci.ACS, error) {
		read := map[pci.Address]*pci.ACS{}
		for _, link := range m.Nearest {
			for _, bridge := range link.Between() {
				if _, done := read[bridge]; !done {
					read[bridge] = pci.ReadACS(fs, bridge)
				}
			}
		}
		return read, nil
	})
	read, err := wait(ctx)
	if err != nil {
		r.problem(fmt.Errorf("ACS registers: %w", err))
	}
	return read, err != nil
}

// judge builds map, verdict and labels from what was read.
func (r *Report) judge(t topology.Facts, acs func(*topology.Map) (map[pci.Address]*pci.ACS, bool)) {
	t.PCI, t.RDMA, t.Virtual = &r.PCI, &r.RDMA, r.Kmod.Virtual
	r.Map = topology.Build(t)
	facts := verdict.Facts{PCIRead: r.PCIRead, PCI: &r.PCI, RDMA: &r.RDMA, Kmod: r.Kmod, Map: r.Map}
	if acs != nil {
		facts.ACS, facts.ACSUnread = acs(&r.Map)
	}
	if r.Map.Source == "" && len(r.Map.GPUs) > 0 && !t.FileUnread {
		r.problem(errors.New("neither /proc/cpuinfo nor /sys/class/dmi/id tells whether this is a virtual machine"))
	}
	r.Verdict = verdict.Judge(facts)
	r.Labels = label.Of(&r.Map, &r.Verdict, &r.Kmod)
	r.Unknown = label.All()
	if r.PCIRead {
		r.Unknown = label.Unknown(&r.Map, &r.Verdict, &r.Kmod)
	}
}
