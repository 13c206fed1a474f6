package nfdsource

import (
	"context"
	"fmt"
	"strconv"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
	"sigs.k8s.io/node-feature-discovery/source"

	"gdr-features/host"
	"gdr-features/source/pci"
	"gdr-features/source/pci/names"
)

// PCI is the source of raw features about the PCI functions and their tree, from
// /sys/bus/pci/devices. Its feature is "function".
type PCI struct{ base }

var _ source.FeatureSource = (*PCI)(nil)

// NewPCI gives the source gdr-pci. NFD has a source pci of its own.
func NewPCI(fs *host.FS) *PCI { return &PCI{base{name: "gdr-pci", fs: fs}} }

// Discover reads the PCI functions. The error tells that the bus itself cannot
// be read; then there are no features.
func (s *PCI) Discover() error {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	inv, err := scanPCI(ctx, s.fs, pci.Everything)
	if err != nil {
		return s.failed(err)
	}
	f := v1alpha1.NewFeatures()
	known := names.Read(ctx, s.fs)
	f.Instances["function"] = instances(inv.Functions, func(fn *pci.Function) attrs {
		a := function(fn)
		if name := known[fn.Address]; name != "" {
			a["name"] = name
		}
		return a
	})
	s.keep(f, inv.Problems)
	return nil
}

// function gives one PCI function:
//   - address, name (from the machine's pci.ids where it has one), pcieRoot; vendor and device with four hexadecimal digits,
//     class with six; numaNode; iommuGroup;
//   - driver, "" for none; parent, the address of the bridge right above, "" on
//     a root bus; physfn, the address of a virtual function's physical one;
//   - linkSpeed and maxLinkSpeed in GT/s, linkWidth and maxLinkWidth in lanes;
//   - acs, the ACS control register with four hexadecimal digits, where there is
//     one and the worker may read it (it needs CAP_SYS_ADMIN);
//   - eligible, of GPUs and adapters: whether the product can do GPUDirect RDMA.
func function(f *pci.Function) attrs {
	a := ofFunction(f)
	if identified(f) {
		a["vendor"] = hex4(f.Vendor)
		a["class"] = fmt.Sprintf("%06x", f.Class)
	}
	if f.DriverKnown {
		a["driver"] = f.Driver
	}
	if f.RootBus != "" {
		a["parent"] = ""
		if n := len(f.Bridges); n > 0 {
			a["parent"] = f.Bridges[n-1].String()
		}
	}
	a.address("physfn", f.PhysFn)
	a.number("iommuGroup", f.IOMMUGroup)
	if l := f.Link; l != nil {
		a.amount("linkSpeed", l.Speed)
		a.amount("maxLinkSpeed", l.MaxSpeed)
		a.amount("linkWidth", float64(l.Width))
		a.amount("maxLinkWidth", float64(l.MaxWidth))
	}
	if f.ACS != nil && f.ACS.Present {
		a["acs"] = hex4(f.ACS.Control)
	}
	switch f.Kind() {
	case pci.GPU:
		a["eligible"] = strconv.FormatBool(f.GPUEligible())
	case pci.NIC:
		a["eligible"] = strconv.FormatBool(f.NICEligible())
	case pci.Other, pci.DataDirect, pci.Bridge:
	}
	return a
}
