package report

import (
	"context"

	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/topology/nccl"
	"gdr-features/tristate"
)

// table is all that a machine is read with. Problems are named in the order of the rows.
type table struct {
	bus     *part[pci.Inventory]
	names   *part[platform.DMI]
	devices *part[rdma.Inventory]
	file    *part[*nccl.File]
	// facts are what levels and verdict rest on: devices, drivers, file.
	facts []probe
	// advice needs the facts.
	advice *part[kmod.State]
	// near are read for the GPUs and NICs of the matrix.
	near []probe
}

// newTable returns the table of a machine. Rows read from known; those that also keep something from
// one reading to the next are methods of Reader.
func (rd *Reader) newTable() table {
	var t table
	t.bus = row("PCI bus", PCI, readBus, func(r *Report, v pci.Inventory, err error) []error {
		r.PCI, r.PCIRead = v, err == nil
		return v.Problems
	})
	t.names = row("names of the machine", PCI, readNames, func(r *Report, v platform.DMI, err error) []error {
		if err != nil {
			v.Product.Err = err
		}
		r.Platform.DMI = v
		return nil
	})
	t.devices = row("RDMA devices", RDMA, rd.readDevices, func(r *Report, v rdma.Inventory, _ error) []error {
		r.RDMA = v
		return v.Problems
	})
	t.file = row("NCCL topology file", All, readTopologyFile, func(*Report, *nccl.File, error) []error { return nil })
	t.facts = []probe{
		t.devices,
		row("modules and symbols", Drivers, rd.readModules, func(r *Report, v kmod.State, _ error) []error {
			r.Kmod = v
			return v.Problems
		}),
		row("files of the platform", Drivers, readPlatform, func(r *Report, v platform.State, _ error) []error {
			v.DMI = r.Platform.DMI // also where v did not come in time
			r.Platform = v
			return v.Problems
		}),
		row("what drivers say of GPUs", Drivers, readGPUs, func(r *Report, v platform.GPUs, _ error) []error {
			r.Platform.GPUs = v
			return v.Problems
		}),
		t.file,
	}
	t.advice = row("files that advice is read from", Drivers, readAdvice, keepAdvice)
	t.near = []probe{
		row("ACS registers", All, readACS, func(r *Report, v map[pci.Address]*pci.ACS, err error) []error {
			r.ACS, r.ACSUnread = v, err != nil
			return nil
		}),
		row("ATS registers", All, readATS, func(r *Report, v map[pci.Address]tristate.State, _ error) []error {
			r.ATS = v
			return nil
		}),
	}
	return t
}

func readBus(_ context.Context, m *known) (pci.Inventory, error) {
	inv, err := pci.Scan(m.fs, m.options.Families, m.options.What)
	inv.Exclude(m.options.Exclude)
	return inv, err
}

func readNames(_ context.Context, m *known) (platform.DMI, error) { return platform.ReadDMI(m.fs), nil }

func (rd *Reader) readDevices(ctx context.Context, m *known) (rdma.Inventory, error) {
	inv := rd.scanner.Scan(ctx, m.fs, &m.PCI, m.options.What)
	inv.Exclude(m.options.Exclude.Devices)
	return inv, nil
}

func (rd *Reader) readModules(_ context.Context, m *known) (kmod.State, error) {
	return rd.memory.Scan(m.fs, &m.PCI, m.options.Families, m.options.What), nil
}

func readPlatform(_ context.Context, m *known) (platform.State, error) {
	return platform.ReadMachine(m.fs, m.Platform.DMI, &m.PCI, m.options.What), nil
}

func readGPUs(_ context.Context, m *known) (platform.GPUs, error) {
	return platform.ReadGPUs(m.fs, &m.PCI), nil
}

func readAdvice(_ context.Context, m *known) (kmod.State, error) {
	return kmod.Advise(m.fs, &m.PCI, m.options.Families, m.options.What, m.Kmod), nil
}

// keepAdvice: without it, checks that need none are made all the same.
func keepAdvice(r *Report, v kmod.State, err error) []error {
	if err != nil {
		r.Kmod.Advice = kmod.NoAdvice()
		return nil
	}
	before := len(r.Kmod.Problems)
	r.Kmod = v
	return v.Problems[before:]
}
