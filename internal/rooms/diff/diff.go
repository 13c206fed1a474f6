// Package diff says what changed on a machine between two readings of it: what is published
// and what check finds first, then what a job feels first. It is pure.
//
// The fleet compares what agents publish (internal/fleet/nodes/alike). Two readings of one machine
// have more: links, firmware, parameters, and places that stay what they are.
package diff

import (
	"cmp"
	"slices"

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
	all := slices.Concat(old.ids, slices.DeleteFunc(now.ids, old.has))
	for _, fact := range facts {
		for _, id := range all {
			a, inOld := old.at[id]
			b, inNew := now.at[id]
			one := inOld != inNew
			switch device := cmp.Or(a.device, b.device); {
			case id.fact != fact:
				continue
			case one && (!a.always && !b.always || device != "" && (!old.hasDevice(device) || !now.hasDevice(device))):
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

// id tells a fact from all others of a reading.
type id struct{ fact, key string }

// reading is what was read of a machine, with the order of its own lists.
type reading struct {
	ids []id
	at  map[id]entry
}

// add adds an entry; of two with one id, the first counts.
func (r *reading) add(e entry) {
	if id := (id{e.fact, e.key}); !r.has(id) {
		r.at[id] = e
		r.ids = append(r.ids, id)
	}
}

func (r *reading) has(id id) bool {
	_, ok := r.at[id]
	return ok
}

func (r *reading) hasDevice(key string) bool {
	return r.has(id{factGPU, key}) || r.has(id{factNIC, key})
}
