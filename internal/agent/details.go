package agent

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"gdr-features/internal/features"
	"gdr-features/internal/report"
	"gdr-features/source/verbs"
)

// details applies the settle time to what is published besides the labels: each
// function, device and port, versions and findings. A link that goes up and down every second would otherwise
// cause a write each time, and with it the labels of other people's rules would flap.
type details struct {
	settle time.Duration

	published *report.Report
	next      *report.Report // what may take its place
	since     time.Time      // since when the machine has looked like next
}

// filter returns the report whose details are to be published. Details change at once
// when the labels do, and otherwise when they have stayed the same for the settle time;
// wait is how long that still takes, 0 for no wait.
func (d *details) filter(s *sample, labelsChanged bool) (show *report.Report, wait time.Duration) {
	now := &s.report
	if d.published != nil && !labelsChanged && !sameDetails(d.published, now) {
		if d.next == nil || !sameDetails(d.next, now) {
			d.next, d.since = now, s.at
		}
		if wait = d.settle - s.at.Sub(d.since); wait > 0 {
			return d.published, wait
		}
	}
	d.published, d.next = now, nil
	return now, 0
}

func sameDetails(a, b *report.Report) bool {
	return a.PCIRead == b.PCIRead && a.RDMA.Complete == b.RDMA.Complete && reflect.DeepEqual(&a.Matrix, &b.Matrix) &&
		reflect.DeepEqual(features.State(a), features.State(b)) && slices.EqualFunc(a.Asked, b.Asked, sameMTUs)
}

func sameMTUs(a, b verbs.Answer) bool { return a.Device == b.Device && maps.Equal(a.MTUs, b.MTUs) }
