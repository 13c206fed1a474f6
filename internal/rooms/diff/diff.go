// Package diff says what changed on a machine between two readings of it: what is published
// and what check finds first, then what a job feels first. It is pure.
//
// The fleet compares what agents publish (internal/fleet/nodes/alike). Two readings of one machine
// have more: links, firmware, parameters, and places that stay what they are.
package diff

import (
	"cmp"

	"gdr-features/internal/report"
)

// Change is a fact that is not the same in both readings.
type Change struct {
	// Fact is "label" or "active MTU", and Of what has it: a label's name, a check's, a device.
	Fact string `json:"fact"`
	Of   string `json:"of"`
	// Old and New are what was read: "" where there is no such thing, Unknown where it could not
	// be read.
	Old string `json:"old"`
	New string `json:"new"`
	// Detail is what a check now finds; "" of other facts.
	Detail string `json:"detail,omitempty"`
}

// Unknown is what could not be read.
const Unknown = "unknown"

// entry is one fact of one reading.
type entry struct {
	fact, of string
	key      string // tells it from others of the same fact; a device's stays when names change
	value    string
	detail   string
	device   string // the key of the device whose fact it is; "" for others
	// always: that it is missing from one reading is a change. Other facts do not apply there,
	// as the MTU of a port that is down.
	always bool
}

// Compare returns what changed, in the order of the facts.
func Compare(before, after *report.Report) []Change {
	old, now := read(before), read(after)
	changes := []Change{}
	for _, fact := range facts {
		for _, key := range keys(fact, old, now) {
			a, inOld := old.find(fact, key)
			b, inNew := now.find(fact, key)
			one := inOld != inNew
			switch device := cmp.Or(a.device, b.device); {
			case one && (!a.always && !b.always || device != "" && !old.has(device, now)):
				continue
			case a.value == b.value && a.detail == b.detail:
				continue
			case fact == factCheck && !a.wrong() && !b.wrong():
				continue
			}
			changes = append(changes, Change{Fact: fact, Of: cmp.Or(a.of, b.of), Old: a.value, New: b.value, Detail: b.detail})
		}
	}
	return changes
}

// reading is what was read of a machine, in the order of its own lists.
type reading struct {
	entries []entry
	at      map[[2]string]int
}

func (r *reading) add(e entry) {
	id := [2]string{e.fact, e.key}
	if _, twice := r.at[id]; twice {
		return
	}
	r.at[id] = len(r.entries)
	r.entries = append(r.entries, e)
}

func (r *reading) find(fact, key string) (entry, bool) {
	i, ok := r.at[[2]string{fact, key}]
	if !ok {
		return entry{}, false
	}
	return r.entries[i], true
}

// has reports whether both readings have a device.
func (r *reading) has(device string, other *reading) bool {
	for _, list := range [...]*reading{r, other} {
		_, gpu := list.find(factGPU, device)
		_, nic := list.find(factNIC, device)
		if !gpu && !nic {
			return false
		}
	}
	return true
}

// keys are those of a fact in either reading, in the order of the first, then of the second.
func keys(fact string, first, second *reading) (list []string) {
	for _, e := range first.entries {
		if e.fact == fact {
			list = append(list, e.key)
		}
	}
	for _, e := range second.entries {
		if _, there := first.find(fact, e.key); e.fact == fact && !there {
			list = append(list, e.key)
		}
	}
	return list
}
