package alike

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/fleet/nodes"
)

// place is the address of a NIC or a GPU, with "/1" and so on for its further RDMA devices.
type place string

type machine struct {
	node *nodes.Node
	// gpus and nics are its GPUs, and the NICs that jobs use, by place, in its order.
	gpus, nics []device
}

type device struct {
	*nodes.Function
	place place
}

func newMachine(n *nodes.Node) machine {
	m := machine{node: n}
	list := func(all []nodes.Function, counts func(*nodes.Function) bool) (devices []device) {
		seen := map[string]int{}
		for i := range all {
			if f := &all[i]; counts(f) {
				at := f.Address
				if n := seen[at]; n > 0 {
					at += "/" + strconv.Itoa(n)
				}
				seen[f.Address]++
				devices = append(devices, device{f, place(at)})
			}
		}
		return devices
	}
	m.gpus = list(n.Hardware.GPUs, func(*nodes.Function) bool { return true })
	m.nics = list(n.Hardware.NICs, func(f *nodes.Function) bool { return f.Rail != "" })
	return m
}

// layout names which devices a machine has where.
func (m *machine) layout() string {
	var text strings.Builder
	for _, list := range [...][]device{m.gpus, m.nics} {
		for _, d := range list {
			text.WriteString(string(d.place) + " " + d.Device + "\n")
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// kind are machines that are compared. The first has the layout that most of them have.
type kind struct {
	machines []machine
	// Those of the first one by their places.
	gpus, nics map[place]device
}

// kindsOf groups machines by layout: which GPUs and NICs are at which addresses. A layout that
// few have belongs to the kind of one that more have, if it is that one with devices missing,
// added or replaced.
func kindsOf(all []machine) []kind {
	layouts := map[string][]machine{}
	for _, m := range all {
		key := m.layout()
		layouts[key] = append(layouts[key], m)
	}
	groups := slices.SortedFunc(maps.Values(layouts), func(a, b []machine) int {
		size := func(g []machine) int { return len(g[0].gpus) + len(g[0].nics) }
		return cmp.Or(len(b)-len(a), size(b)-size(a), strings.Compare(a[0].node.Name, b[0].node.Name), strings.Compare(a[0].node.Namespace, b[0].node.Namespace))
	})
	var kinds []kind
	for _, g := range groups {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.near(&g[0]) })
		if i < 0 {
			kinds = append(kinds, kind{g, byPlace(g[0].gpus), byPlace(g[0].nics)})
			continue
		}
		kinds[i].machines = append(kinds[i].machines, g...)
	}
	slices.SortStableFunc(kinds, func(a, b kind) int { return len(b.machines) - len(a.machines) })
	return kinds
}

// near reports whether a machine is of this kind although it has another layout. Half of a machine is none: there are servers and virtual machines with four GPUs
// that are otherwise those with eight.
func (k *kind) near(a *machine) bool {
	b := &k.machines[0]
	gpus, nics := common(a.gpus, k.gpus), common(a.nics, k.nics)
	most := max(len(a.gpus)+len(a.nics), len(b.gpus)+len(b.nics))
	sameGPUs := len(a.gpus) > 0 && gpus == len(a.gpus) && gpus == len(b.gpus)
	onlyNICs := sameGPUs && nics == min(len(a.nics), len(b.nics)) // some NICs are missing, or all
	return 2*(gpus+nics) > most || onlyNICs || renumbered(a, b)
}

// renumbered reports whether a machine is another one with fewer or more NICs, on which all
// addresses are others, as firmware may number buses anew when a card is gone.
func renumbered(a, b *machine) bool {
	if len(a.gpus) != len(b.gpus) || len(a.gpus) == 0 || len(a.nics) == len(b.nics) {
		return false
	}
	few, many := counts(a.nics), counts(b.nics)
	if len(a.nics) > len(b.nics) {
		few, many = many, few
	}
	for id, n := range few {
		if n > many[id] {
			return false
		}
	}
	return maps.Equal(counts(a.gpus), counts(b.gpus)) && 2*min(len(a.nics), len(b.nics)) > max(len(a.nics), len(b.nics))
}

// common counts the devices that two lists have at the same place.
func common(a []device, at map[place]device) (n int) {
	for _, d := range a {
		if other, ok := at[d.place]; ok && other.Device == d.Device {
			n++
		}
	}
	return n
}

func byPlace(all []device) map[place]device {
	at := make(map[place]device, len(all))
	for _, d := range all {
		at[d.place] = d
	}
	return at
}

func counts(all []device) map[[2]string]int {
	n := map[[2]string]int{}
	for _, d := range all {
		n[[2]string{d.Family, d.Device}]++
	}
	return n
}

// align returns the devices of a list by their index in that of the kind: by place; where no
// place is the same, one after the other if there are as many, and otherwise by name.
func align(all, as []device) map[Rail]device {
	of := make(map[Rail]device, len(all))
	same := func(d, other device) bool { return d.place == other.place }
	if common(all, byPlace(as)) == 0 && len(all) > 0 {
		if len(all) == len(as) {
			for i, d := range all {
				of[Rail(i)] = d
			}
			return of
		}
		same = func(d, other device) bool { return d.RDMA == other.RDMA && d.RDMA != "" }
	}
	for _, d := range all {
		if i := slices.IndexFunc(as, func(other device) bool { return same(d, other) }); i >= 0 {
			of[Rail(i)] = d
		}
	}
	return of
}
