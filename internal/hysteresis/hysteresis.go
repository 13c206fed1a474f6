// Package hysteresis decides which labels are published, so that they follow the
// machine and not each short change of it. It is pure: what one reading found goes
// in, what is to be published comes out.
//
//   - Hardware labels change only after two equal readings.
//   - A state label turns true at once. It turns anything else, where it was
//     published before, only when it has not been true, or has not been the
//     published value, for the settle time without a break.
//   - A label whose facts could not be read stays as it was published.
package hysteresis

import (
	"maps"
	"time"

	"gdr-features/internal/label"
)

// Moment is how long after a reading that must be confirmed the next one is due,
// and how often something is looked at that has yet to settle.
const Moment = 500 * time.Millisecond

// Reading is what one look at the machine found.
type Reading struct {
	Labels  label.Set
	Unknown label.Names
	At      time.Time
	// Partial: the hardware was not looked at again, and is as in the reading
	// before.
	Partial bool
}

// Keeper remembers what is published and what is on its way to be. The zero
// value has published nothing and lets nothing settle.
type Keeper struct {
	// Settle is how long a cause must hold before it takes a state label away.
	Settle time.Duration

	published label.Set
	hardware  label.Set            // as last read, not yet published
	since     map[string]time.Time // when a state label stopped being what is published
}

// Published starts a keeper from what is published already.
func Published(settle time.Duration, last label.Set) *Keeper {
	return &Keeper{Settle: settle, published: maps.Clone(last)}
}

// Next takes a reading and gives the labels to publish. With none (ok is false),
// nothing can be said before the next reading. again is when that is due; 0
// means that there is no hurry.
func (k *Keeper) Next(r Reading) (labels label.Set, again time.Duration, ok bool) {
	next := label.Set{}
	confirmed := k.takeHardware(next, r)
	if !confirmed {
		again = Moment
		if len(k.published) == 0 {
			return nil, again, false
		}
	}
	if k.takeState(next, r) {
		again = Moment
	}
	k.published = next
	return maps.Clone(next), again, true
}

// takeHardware puts the hardware labels to publish into next: those of this
// reading if the one before had the same.
func (k *Keeper) takeHardware(next label.Set, r Reading) (confirmed bool) {
	read, old := label.Set{}, label.Set{}
	for name := range label.All() {
		if !label.Hardware(name) {
			continue
		}
		was, had := k.published[name]
		if had {
			old[name] = was
		}
		if value, ok := r.Labels[name]; ok {
			read[name] = value
		} else if had && r.Unknown[name] {
			read[name] = was
		}
	}
	if r.Partial { // the same once more confirms nothing
		maps.Copy(next, old)
		return maps.Equal(read, old)
	}
	confirmed = maps.Equal(read, old) || k.hardware != nil && maps.Equal(read, k.hardware)
	k.hardware = read
	if confirmed {
		maps.Copy(next, read)
	} else {
		maps.Copy(next, old)
	}
	return confirmed
}

// takeState puts the state labels to publish into next and tells whether one has
// yet to settle.
func (k *Keeper) takeState(next label.Set, r Reading) (settling bool) {
	if k.since == nil {
		k.since = map[string]time.Time{}
	}
	for name := range label.All() {
		if label.Hardware(name) || name == label.Reason {
			continue
		}
		value, changed := k.settled(name, r, &settling)
		if value != "" {
			next[name] = value
		}
		if name == label.Ready {
			k.takeReason(next, r, value, changed, &settling)
		}
	}
	return settling
}

// takeReason publishes the reason that belongs to what is published about
// readiness: none where that is true, the present one where it has just changed,
// and some reason as long as it is false.
func (k *Keeper) takeReason(next label.Set, r Reading, ready string, changed bool, settling *bool) {
	was := k.published[label.Reason]
	reason, ok := r.Labels[label.Reason]
	if !ok && r.Unknown[label.Reason] {
		reason = was
	}
	switch {
	case ready == "true":
		delete(k.since, label.Reason)
		return
	case ready == "", changed:
		delete(k.since, label.Reason)
	case !ok:
		reason = was // it goes when readiness goes
	default:
		reason, _ = k.settled(label.Reason, r, settling)
	}
	if reason != "" {
		next[label.Reason] = reason
	}
}

// settled gives the value of a state label to publish, "" for none, and whether
// that is another one than before.
func (k *Keeper) settled(name string, r Reading, settling *bool) (value string, changed bool) {
	was, had := k.published[name]
	value, ok := r.Labels[name]
	switch {
	case r.Unknown[name] && (!ok || had):
		return was, false // neither proves the old value nor another; what was seen before still counts
	case value == was:
		delete(k.since, name)
		return was, false
	case !had, value == "true":
		delete(k.since, name)
		return value, true
	}
	since, waiting := k.since[name]
	if !waiting {
		since = r.At
		k.since[name] = since
	}
	if r.At.Sub(since) >= k.Settle {
		delete(k.since, name)
		return value, true
	}
	*settling = true
	return was, false
}
