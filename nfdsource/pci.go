package nfdsource

import (
	"fmt"
	"strconv"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/features"
	"gdr-features/internal/show"
	"gdr-features/source/pci"
)

// pciFeatures returns the raw features of the source gdr-pci: instances function, every PCI
// function. names are product names from the machine's pci.ids, by function; they
// take precedence over our own.
func pciFeatures(functions []pci.Function, names map[pci.Address]string) *v1alpha1.Features {
	f := v1alpha1.NewFeatures()
	f.Instances["function"] = features.Instances(functions, func(fn *pci.Function) features.Attrs {
		a := function(fn)
		a.Text("name", names[fn.Address])
		return a
	})
	return f
}

// function returns one PCI function:
//   - address, name, pcieRoot, numaNode, iommuGroup; vendor and device with four
//     hexadecimal digits, class with six;
//   - driver, "" for none; parent, the address of the bridge right above, "" on
//     a root bus; physfn, the address of a virtual function's physical one;
//   - linkSpeed and maxLinkSpeed in GT/s, linkWidth and maxLinkWidth in lanes;
//   - acs, the ACS control register with four hexadecimal digits, where there is
//     one and the worker may read it (it needs CAP_SYS_ADMIN);
//   - of GPUs and NICs family, and eligible: whether the product can do GPUDirect RDMA, where
//     that is known.
func function(f *pci.Function) features.Attrs {
	a := features.OfFunction(f)
	if features.Identified(f) {
		a["vendor"] = show.Hex(f.Vendor)
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
	a.Address("physfn", f.PhysFn)
	a.Number("iommuGroup", f.IOMMUGroup)
	if l := f.Link; l != nil {
		a.Amount("linkSpeed", l.Speed)
		a.Amount("maxLinkSpeed", l.MaxSpeed)
		a.Amount("linkWidth", float64(l.Width))
		a.Amount("maxLinkWidth", float64(l.MaxWidth))
	}
	if f.ACS != nil && f.ACS.Present {
		a["acs"] = show.Hex(f.ACS.Control)
	}
	if (f.GPU != nil || f.NIC != nil) && !f.Unidentified() {
		a["eligible"] = strconv.FormatBool(f.Counts())
	}
	return a
}
