package agent

import (
	"time"

	"gdr-features/internal/report"
)

const (
	// quiet is how long nothing more must be heard before the machine is read:
	// one thing that happens makes many events.
	quiet = 100 * time.Millisecond
	// patient is how long they may go on.
	patient = 500 * time.Millisecond
	// afterwards the same is read again: a driver may still be at work when the
	// kernel tells of it.
	afterwards = time.Second
)

// wake decides when the machine is read next, and which parts of it.
type wake struct {
	interval, poll time.Duration // poll 0: ports are not polled

	full  time.Time // when everything is due
	ports time.Time // when the ports are due

	event, first time.Time    // when what was heard of is due, and the first of it; zero for none
	heard        report.Parts // what it is about
	again        time.Time    // when that is due a second time; zero for never
	repeat       report.Parts
}

// hear takes an event.
func (w *wake) hear(parts report.Parts, now time.Time) {
	if w.heard == 0 {
		w.first = now
	}
	w.heard |= parts
	w.event = now.Add(quiet)
	if last := w.first.Add(patient); last.Before(w.event) {
		w.event = last
	}
}

// hurry makes everything due by a time.
func (w *wake) hurry(by time.Time) {
	if by.Before(w.full) {
		w.full = by
	}
}

// next is when something is due.
func (w *wake) next() time.Time {
	due := w.full
	for _, at := range []time.Time{w.event, w.again} {
		if !at.IsZero() && at.Before(due) {
			due = at
		}
	}
	if w.poll > 0 && w.ports.Before(due) {
		due = w.ports
	}
	return due
}

// take gives what is due now and sets when it is due again. polled tells that
// nothing is but a look at the ports.
func (w *wake) take(now time.Time) (parts report.Parts, polled bool) {
	due := func(at time.Time) bool { return !at.IsZero() && !at.After(now) }
	if due(w.event) {
		parts |= w.heard
		w.again, w.repeat = now.Add(afterwards), w.heard
		w.event, w.heard = time.Time{}, 0
	} else if due(w.again) {
		parts |= w.repeat
		w.again = time.Time{}
	}
	if !w.full.After(now) || parts&report.PCI != 0 {
		parts |= report.All
		w.full = now.Add(w.interval)
	}
	if w.poll > 0 && !w.ports.After(now) {
		polled = parts&report.RDMA == 0
		w.ports = now.Add(w.poll)
	}
	return parts, polled
}
