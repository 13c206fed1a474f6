package features

import (
	"strconv"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/show"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/tristate"
)

// Attrs are the attributes of one instance, or an attribute set. Its methods skip
// unknown facts.
type Attrs map[string]string

// Text skips "".
func (a Attrs) Text(key, value string) {
	if value != "" {
		a[key] = value
	}
}

// State skips tristate.Unknown.
func (a Attrs) State(key string, s tristate.State) {
	if s != tristate.Unknown {
		a[key] = s.String()
	}
}

// Number skips pci.None and pci.Unread.
func (a Attrs) Number(key string, n int) {
	if n >= 0 {
		a[key] = strconv.Itoa(n)
	}
}

// Amount skips 0, which is unknown.
func (a Attrs) Amount(key string, x float64) {
	if x != 0 {
		a[key] = strconv.FormatFloat(x, 'f', -1, 64)
	}
}

// Address skips nil.
func (a Attrs) Address(key string, to *pci.Address) {
	if to != nil {
		a[key] = to.String()
	}
}

// OfFunction returns the attributes that every PCI function has: address, device,
// name, numaNode and pcieRoot; and family, those of GPUs and NICs; and vendor, those of NICs that are in no table.
func OfFunction(f *pci.Function) Attrs {
	a := Attrs{"address": f.Address.String()}
	if Identified(f) {
		a["device"] = show.Hex(f.Device)
	}
	a.Text("family", f.Family())
	if f.Other == family.Unlisted() { // no family tells its vendor
		a["vendor"] = show.Hex(f.Vendor)
	}
	a.Text("name", f.Name())
	a.Number("numaNode", f.NUMA)
	a.Text("pcieRoot", f.RootBus)
	return a
}

// Identified reports whether the function's IDs could be read: no vendor has ID 0000.
func Identified(f *pci.Function) bool { return f.Vendor != 0 }

// Instances makes a feature with one instance for each of list.
func Instances[T any](list []T, of func(*T) Attrs) v1alpha1.InstanceFeatureSet {
	elements := make([]v1alpha1.InstanceFeature, len(list))
	for i := range list {
		elements[i].Attributes = of(&list[i])
	}
	return v1alpha1.NewInstanceFeatures(elements...)
}

// Port adds the state of a port, its linkLayer, and rateGbps in Gbit/s.
func (a Attrs) Port(p rdma.Port) {
	a.Text("state", p.State)
	a.Text("linkLayer", p.LinkLayer)
	a.Amount("rateGbps", p.RateGbps)
}
