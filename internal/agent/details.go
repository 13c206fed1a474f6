package agent

import (
	"reflect"
	"time"

	"gdr-features/internal/report"
)

// details keeps what is published beside the labels as calm as they are: the
// functions, devices and ports one by one. A link that goes up and down every
// second, or a driver that is loaded again, would otherwise be a write each time,
// and make the labels flap that other people's rules rest on it.
type details struct {
	settle time.Duration

	shown *report.Report
	next  *report.Report // what may take its place
	since time.Time      // since when the machine has looked like that
}

// take gives the report whose details are to be published. They follow at once
// when the labels change (news), and otherwise when they have been the same for
// the settle time; again is how long that still takes, 0 for no time.
func (d *details) take(s *sight, news bool) (show *report.Report, again time.Duration) {
	switch now := &s.report; {
	case d.shown == nil, news, d.settle == 0, alikeInDetail(d.shown, now):
		d.shown, d.next = now, nil
	case d.next == nil, !alikeInDetail(d.next, now):
		d.next, d.since = now, s.at
		again = d.settle
	default:
		again = d.settle - s.at.Sub(d.since)
		if again <= 0 {
			d.shown, d.next, again = now, nil, 0
		}
	}
	return d.shown, again
}

// alikeInDetail tells whether two reports list the same.
func alikeInDetail(a, b *report.Report) bool {
	return a.PCIRead == b.PCIRead && a.RDMA.Complete == b.RDMA.Complete && reflect.DeepEqual(&a.Matrix, &b.Matrix)
}
