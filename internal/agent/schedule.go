package agent

import (
	"slices"
	"time"

	"gdr-features/internal/report"
)

const (
	// eventQuiet is how long no event must come before the machine is read: one change
	// causes many events. eventMaxDelay limits the wait.
	eventQuiet    = 100 * time.Millisecond
	eventMaxDelay = 500 * time.Millisecond
	// rereadAfter is when the same parts are read once more: a driver may still be at
	// work when the kernel sends the event.
	rereadAfter = time.Second
)

// schedule decides when the machine is read next, and which parts of it.
type schedule struct {
	interval, poll time.Duration // poll 0: ports are not polled

	all   time.Time // when all parts are due
	ports time.Time // when a poll of the ports is due

	eventDue, firstEvent time.Time    // when the parts of events are due; zero for none
	eventParts           report.Parts // that the events are about
	rereads              []reread     // each part at most once, in the order of time
}

// reread is when parts that events were about are read once more.
type reread struct {
	due   time.Time
	parts report.Parts
}

func (s *schedule) event(parts report.Parts, now time.Time) {
	if s.eventParts == 0 {
		s.firstEvent = now
	}
	s.eventParts |= parts
	s.eventDue = now.Add(eventQuiet)
	if last := s.firstEvent.Add(eventMaxDelay); last.Before(s.eventDue) {
		s.eventDue = last
	}
}

func (s *schedule) readAllBy(by time.Time) {
	if by.Before(s.all) {
		s.all = by
	}
}

func (s *schedule) next() time.Time {
	next := s.all
	if !s.eventDue.IsZero() && s.eventDue.Before(next) {
		next = s.eventDue
	}
	if len(s.rereads) > 0 && s.rereads[0].due.Before(next) {
		next = s.rereads[0].due
	}
	if s.poll > 0 && s.ports.Before(next) {
		next = s.ports
	}
	return next
}

// due returns the parts that are due now and plans when they are due again. poll tells
// that the ports are to be polled, and are not read anyway.
func (s *schedule) due(now time.Time) (parts report.Parts, poll bool) {
	for len(s.rereads) > 0 && !s.rereads[0].due.After(now) {
		parts |= s.rereads[0].parts
		s.rereads = s.rereads[1:]
	}
	if !s.eventDue.IsZero() && !s.eventDue.After(now) {
		for i := range s.rereads { // those of other parts stay
			s.rereads[i].parts &^= s.eventParts
		}
		s.rereads = slices.DeleteFunc(s.rereads, func(r reread) bool { return r.parts == 0 })
		s.rereads = append(s.rereads, reread{now.Add(rereadAfter), s.eventParts})
		parts |= s.eventParts
		s.eventDue, s.eventParts = time.Time{}, 0
	}
	if !s.all.After(now) || parts&report.PCI != 0 {
		parts |= report.All
		s.all = now.Add(s.interval)
	}
	if s.poll > 0 && !s.ports.After(now) {
		poll = parts&report.RDMA == 0
		s.ports = now.Add(s.poll)
	}
	return parts, poll
}
