package nodelabel

import (
	"maps"
	"time"

	"gdr-features/internal/label"
	"gdr-features/verdict"
)

// RecheckDelay is when the next reading is due while a change of the hardware is to be
// confirmed or a state label has yet to settle.
const RecheckDelay = 500 * time.Millisecond

// Reading is what one reading of the machine found.
type Reading struct {
	Labels  label.Set
	Unknown label.Names
	At      time.Time
	// Partial tells that the hardware was not read again: its labels are those of the
	// reading before.
	Partial bool
}

// Filter decides which labels are published, so that they do not follow each short change of
// the machine. It remembers what is published and which changes are pending.
//
//   - Hardware labels change only after two equal readings.
//   - A state label becomes true at once, except gdr.degraded, which is bad news. A published value
//     is taken away or replaced by another one only after the machine has not had it for the settle
//     time without a break.
//   - A label whose facts could not be read stays as it was published.
//   - A node whose NIC is in no table is not called one without NIC when the NIC's driver goes.
type Filter struct {
	settle    time.Duration
	published label.Set
	hardware  label.Set            // as last read
	since     map[string]time.Time // when a state label stopped having the published value
}

// NewFilter returns a filter that starts from what is published already. settle is how long a
// condition must persist before a state label changes, other than to true.
func NewFilter(settle time.Duration, published label.Set) *Filter {
	return &Filter{settle: settle, published: maps.Clone(published), since: map[string]time.Time{}}
}

// Rebooted tells that what is published is from an earlier boot, before the first reading. A state
// label that this boot has not had yet need not settle.
func (f *Filter) Rebooted() {
	for name := range f.published {
		f.since[name] = time.Time{}
	}
}

// Next returns the labels to publish after a reading; ok is false when nothing is to
// be published before the next reading. wait is the time until that is due; 0 for
// none.
func (f *Filter) Next(r Reading) (labels label.Set, wait time.Duration, ok bool) {
	next := label.Set{}
	r = f.stillNotJudged(r)
	confirmed := f.addHardware(next, r)
	if !confirmed {
		wait = RecheckDelay
		if len(f.published) == 0 {
			return nil, wait, false
		}
	}
	if f.addState(next, r) {
		wait = RecheckDelay
	}
	f.published = next
	return maps.Clone(next), wait, true
}

// stillNotJudged changes a reading that found no NIC on a node whose NICs were published as not
// judged. A NIC that no table has is often seen by its RDMA device alone, which goes and comes with
// its driver, and no driver may move what is published about the hardware. So the answer stays
// unknown until a NIC is found that can be judged. It holds across restarts: gdr.reason is published.
func (f *Filter) stillNotJudged(r Reading) Reading {
	if f.published[label.Reason] != string(verdict.NICNotJudged) || r.Labels[label.Reason] != string(verdict.NoNIC) {
		return r
	}
	r.Labels = maps.Clone(r.Labels)
	delete(r.Labels, label.Capable)
	delete(r.Labels, label.Ready)
	r.Labels[label.Reason] = string(verdict.NICNotJudged)
	return r
}

// addHardware adds the hardware labels to publish to next: those of this reading if the
// one before had the same.
func (f *Filter) addHardware(next label.Set, r Reading) (confirmed bool) {
	old, read := HardwareOf(f.published), label.Set{}
	for name, was := range old {
		if r.Unknown[name] {
			read[name] = was
		}
	}
	maps.Copy(read, HardwareOf(r.Labels))
	if r.Partial { // the same reading once more confirms nothing
		maps.Copy(next, old)
		return maps.Equal(read, old)
	}
	confirmed = maps.Equal(read, old) || f.hardware != nil && maps.Equal(read, f.hardware)
	f.hardware = read
	if !confirmed {
		read = old
	}
	maps.Copy(next, read)
	return confirmed
}

// addState adds the state labels to publish to next and reports whether one has yet to
// settle.
func (f *Filter) addState(next label.Set, r Reading) (settling bool) {
	ready, changed := f.settled(label.Ready, r, &settling)
	if ready != "" {
		next[label.Ready] = ready
	}
	f.addReason(next, r, ready, changed, &settling)
	all := label.Set{} // published or read
	maps.Copy(all, f.published)
	maps.Copy(all, r.Labels)
	for name := range all {
		if Hardware(name) || name == label.Ready || name == label.Reason {
			continue
		}
		if value, _ := f.settled(name, r, &settling); value != "" {
			next[name] = value
		}
	}
	return settling
}

// addReason adds the reason for the readiness that is published: none if ready, the
// current one if readiness has just changed, and always one while not ready.
func (f *Filter) addReason(next label.Set, r Reading, ready string, changed bool, settling *bool) {
	was := f.published[label.Reason]
	reason, ok := r.Labels[label.Reason]
	if !ok && r.Unknown[label.Reason] {
		reason = was
	}
	switch {
	case ready == "true":
		delete(f.since, label.Reason)
		return
	case ready == "", changed:
		delete(f.since, label.Reason)
	case !ok:
		reason = was // it is removed together with readiness
	default:
		reason, _ = f.settled(label.Reason, r, settling)
	}
	if reason != "" {
		next[label.Reason] = reason
	}
}

// settled returns the value of a state label to publish, "" for none, and whether it has
// changed.
func (f *Filter) settled(name string, r Reading, settling *bool) (value string, changed bool) {
	was, had := f.published[name]
	value = r.Labels[name]
	switch {
	case r.Unknown[name] && had:
		return was, false // an unknown value does not interrupt: since stays
	case value == was:
		delete(f.since, name)
		return was, false
	case !had, value == "true" && name != label.Degraded:
		delete(f.since, name)
		return value, true
	}
	since, waiting := f.since[name]
	if !waiting {
		since = r.At
		f.since[name] = since
	}
	if r.At.Sub(since) >= f.settle {
		delete(f.since, name)
		return value, true
	}
	*settling = true
	return was, false
}
