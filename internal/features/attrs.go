package features

import (
	"strconv"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/show"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// attrs are the attributes of one instance, or an attribute set. Its methods skip
// unknown facts.
type attrs map[string]string

func (a attrs) text(key, value string) {
	if value != "" {
		a[key] = value
	}
}

func (a attrs) state(key string, s tristate.State) {
	if s != tristate.Unknown {
		a[key] = s.String()
	}
}

// number skips pci.None and pci.Unread.
func (a attrs) number(key string, n int) {
	if n >= 0 {
		a[key] = strconv.Itoa(n)
	}
}

// amount skips 0, which is unknown.
func (a attrs) amount(key string, x float64) {
	if x != 0 {
		a[key] = strconv.FormatFloat(x, 'f', -1, 64)
	}
}

func (a attrs) address(key string, to *pci.Address) {
	if to != nil {
		a[key] = to.String()
	}
}

// ofFunction returns the attributes that every PCI function has: address, device,
// name, numaNode and pcieRoot; and family, those of GPUs and NICs; and vendor, those of NICs that are in no table.
func ofFunction(f *pci.Function) attrs {
	a := attrs{"address": f.Address.String()}
	if identified(f) {
		a["device"] = show.Hex(f.Device)
	}
	a.text("family", f.Family())
	if f.Other == family.Unlisted() { // no family tells its vendor
		a["vendor"] = show.Hex(f.Vendor)
	}
	a.text("name", f.Name())
	a.number("numaNode", f.NUMA)
	a.text("pcieRoot", f.RootBus)
	return a
}

// identified reports whether the function's IDs could be read: no vendor has ID 0000.
func identified(f *pci.Function) bool { return f.Vendor != 0 }

// instances makes a feature with one instance for each of list.
func instances[T any](list []T, of func(*T) attrs) v1alpha1.InstanceFeatureSet {
	elements := make([]v1alpha1.InstanceFeature, len(list))
	for i := range list {
		elements[i].Attributes = of(&list[i])
	}
	return v1alpha1.NewInstanceFeatures(elements...)
}
