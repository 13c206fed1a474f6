package report

import (
	"context"

	"gdr-features/host"
	"gdr-features/internal/expect"
	"gdr-features/source/pci"
)

// wanted is what is expected of the machine, and what is read for that purpose only:
// firmware of NICs, PCI Express links.
type wanted struct {
	file   *expect.File
	needs  expect.Needs // which extras were read
	extras part[expect.Extras]
}

// readExpectations gets what is expected now.
func (rd *Reader) readExpectations(r *Report) {
	if rd.options.Expect == nil {
		return
	}
	file, err := rd.options.Expect()
	if err != nil {
		r.problem(err)
	}
	rd.want.file = file
}

// mayBeExpected reports whether something may be expected of a machine without GPU.
func (rd *Reader) mayBeExpected(r *Report) bool {
	return rd.want.file != nil && !rd.want.file.MatchesNone(&r.Node)
}

// readExtras reads what only expectations need, where they need it.
func (rd *Reader) readExtras(ctx context.Context, r *Report) {
	if rd.want.file == nil {
		return
	}
	needs := rd.want.file.Needs()
	extras := &rd.want.extras
	if extras.done && extras.err == nil && needs == rd.want.needs && r.Fresh&(PCI|RDMA) == 0 {
		return
	}
	rd.want.needs = needs
	fs, functions, devices := rd.fs, r.PCI, r.RDMA.Devices
	_ = extras.start("PCI Express links and firmware of NICs", func() (expect.Extras, error) {
		read := expect.Extras{Firmware: map[pci.Address]string{}, Links: map[pci.Address]pci.LinkEnds{}}
		for i := range devices {
			d := &devices[i]
			if !needs.Firmware || d.PCI == nil {
				continue
			}
			version := d.Firmware
			if version == "" {
				version = d.ReadFirmware(fs)
			}
			if version != "" {
				read.Firmware[*d.PCI] = version
			}
		}
		for i := range functions.Functions {
			if f := &functions.Functions[i]; needs.Links && (f.GPUEligible() || f.NICEligible()) {
				read.Links[f.Address] = readEnds(fs, &functions, f)
			}
		}
		return read, nil
	})(ctx)
}

// readEnds returns the link of a function's card to its slot. It reads what has not been
// read yet.
func readEnds(fs *host.FS, all *pci.Inventory, f *pci.Function) pci.LinkEnds {
	link := func(f *pci.Function) *pci.Link {
		switch {
		case f == nil:
			return nil
		case f.Link != nil:
			return f.Link
		}
		return pci.ReadLink(fs, f.Address)
	}
	card, port := all.Slot(f)
	return pci.LinkEnds{Lower: link(card), Upper: link(port)}
}

// compare judges the machine by what is expected of it; nil without expectations.
func (rd *Reader) compare(r *Report) *expect.Result {
	switch {
	case rd.options.Expect == nil:
		return nil
	case rd.want.file == nil:
		return &expect.Result{}
	}
	rd.want.extras.addProblems(r, nil)
	result := expect.Judge(rd.want.file, &r.Node, rd.want.extras.value)
	return &result
}
