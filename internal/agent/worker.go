package agent

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"gdr-features/internal/features"
	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/internal/publish"
	"gdr-features/internal/report"
	"gdr-features/source/verbs"
)

const (
	// revertPause is how long a change by others that follows many waits to be reverted. It
	// doubles each time, up to maxRevertPause.
	revertPause    = 30 * time.Second
	maxRevertPause = 5 * time.Minute
	// peaceAfter is how long after the last revert the others count as having stopped.
	peaceAfter = 10 * time.Minute
)

// worker drives one publisher, so that none waits for another.
type worker struct {
	agent     *Agent
	publisher publish.Publisher
	samples   chan *sample         // holds the latest
	rescan    chan<- time.Duration // asks for the next sample within this time

	filter  *nodelabel.Filter
	details details
	unread  label.Names     // in the last reading
	content publish.Content // without Report until there is something to publish

	publication chan publication // receives the one under way when it ends; nil for none
	missed      bool             // a reading came since that one began
	backoff     publish.Backoff
	cause       publish.Cause    // of the failure, as last logged; zero where nothing fails
	retry       <-chan time.Time // receives at the next try; nil when nothing failed or is postponed
	// reverts limits how often changes by others are reverted: two writers that insist
	// would write for ever.
	reverts   *rate.Limiter
	postponed bool          // retry is for a revert
	pause     time.Duration // the last one before a revert; 0 while others do not insist
	reverted  time.Time     // last
}

// publication is one that has ended.
type publication struct {
	labels    int
	reverting bool
	wrote     bool
	err       error
}

// offer hands the worker a sample, which replaces one that it has not received yet.
func (w *worker) offer(s *sample) {
	select {
	case <-w.samples:
	default:
	}
	w.samples <- s
}

func (w *worker) run(ctx context.Context) {
	if !w.readBack(ctx) {
		return
	}
	for {
		reverting := false
		changes, retry := w.publisher.Changed(), w.retry
		if w.publication != nil { // these wait for its end, readings do not
			changes, retry = nil, nil
		}
		select {
		case s := <-w.samples:
			changed := w.update(s)
			if w.publication != nil {
				w.missed = true
				continue
			}
			if w.retry != nil && (!w.postponed || !changed) {
				continue
			}
		case p := <-w.publication:
			w.ended(ctx, p)
			if !w.missed || w.retry != nil {
				continue
			}
		case <-changes:
			if w.retry != nil {
				continue
			}
			reverting = true
		case <-retry:
			w.retry = nil
			if w.postponed && w.content.Report != nil {
				w.write(ctx, true)
				continue
			}
		case <-ctx.Done():
			if w.publication != nil {
				w.ended(ctx, <-w.publication)
			}
			return
		}
		if w.content.Report != nil {
			w.publish(ctx, reverting)
		}
	}
}

// readBack reads what is published, and tries until that works: facts that cannot be
// read of the machine stay as published. It gives false when ctx ends first.
func (w *worker) readBack(ctx context.Context) bool {
	for {
		last, err := w.publisher.Last(ctx)
		if err == nil {
			w.filter = nodelabel.NewFilter(w.agent.Settle, last.Labels)
			if now := w.agent.BootID; now != "" && last.BootID != "" && now != last.BootID {
				w.filter.Rebooted()
			}
			w.succeeded()
			return true
		}
		w.failed(ctx, err)
		select {
		case <-w.retry:
		case <-ctx.Done():
			return false
		}
	}
}

// update decides what is to be published now, and reports whether labels have changed.
func (w *worker) update(s *sample) (changed bool) {
	labels, wait, ok := w.filter.Next(s.reading())
	w.logUnread(s, labels)
	if ok {
		changed = !maps.Equal(labels, w.content.Labels)
		details, detailWait := w.details.filter(s, changed)
		w.content = publish.Content{Labels: labels, Report: details, BootID: w.agent.BootID, Seen: s.at}
		if wait == 0 {
			wait = detailWait
		}
	}
	if wait > 0 {
		select {
		case w.rescan <- wait:
		default: // another request for a sample is pending
		}
	}
	return changed
}

// logUnread logs which published labels can no longer be read, once until they can be again: what is
// published stays as it was.
func (w *worker) logUnread(s *sample, labels label.Set) {
	var gone []string
	unread := label.Names{}
	for name := range s.report.Unknown {
		if _, read := s.report.Labels[name]; read {
			continue
		}
		unread[name] = true
		if labels[name] != "" && !w.unread[name] {
			gone = append(gone, name)
		}
	}
	w.unread = unread
	if len(gone) > 0 {
		slices.Sort(gone)
		w.agent.log(w.publisher).WithField("labels", strings.Join(gone, " ")).
			Warn("these labels cannot be read any more; they stay as they were published")
	}
}

// publish publishes now, or later if it would revert what others insist on.
func (w *worker) publish(ctx context.Context, reverting bool) {
	if !reverting || !w.insisted() { // changes of the machine do not wait for it
		w.write(ctx, reverting)
		return
	}
	if w.pause == 0 {
		w.agent.log(w.publisher).Warn("others change what is published again and again: is there a second agent for this node, or another writer? " +
			"Their changes are reverted less and less often")
	}
	w.pause = min(max(2*w.pause, revertPause), maxRevertPause)
	w.retry, w.postponed = time.After(w.pause), true
}

// insisted reports whether others repeat changes that were reverted.
func (w *worker) insisted() bool {
	if w.agent.Now().Sub(w.reverted) >= peaceAfter {
		w.pause = 0
	}
	return w.pause > 0 || w.reverts.Tokens() < 1
}

// write begins a publication. It may take long, and meanwhile no reading must be missed: what is
// between two of them counts for the settle time.
func (w *worker) write(ctx context.Context, reverting bool) {
	content, ended := w.content, make(chan publication, 1)
	w.publication, w.missed = ended, false
	go func() {
		wrote, err := w.publisher.Publish(ctx, content)
		ended <- publication{len(content.Labels), reverting, wrote, err}
	}()
}

// ended is called when the publication under way has ended.
func (w *worker) ended(ctx context.Context, p publication) {
	w.publication = nil
	if errors.Is(p.err, publish.ErrUnconfirmed) {
		return // the next sample asks again
	}
	if p.err != nil {
		w.failed(ctx, p.err)
		return
	}
	w.report(ctx, p.wrote, nil)
	w.succeeded()
	if !p.wrote {
		return
	}
	log := w.agent.log(w.publisher).WithField("labels", p.labels)
	if p.reverting {
		w.reverts.Allow()
		w.reverted = w.agent.Now()
		if m := w.agent.Monitor; m != nil {
			m.Reverted(w.publisher.Name())
		}
		log.Warn("what is published was changed by others; reverted it")
		return
	}
	log.Info("published")
}

func (w *worker) report(ctx context.Context, wrote bool, err error) {
	if m := w.agent.Monitor; m != nil && ctx.Err() == nil {
		m.Published(w.publisher.Name(), wrote, err)
	}
}

// failed sets the time of the next try, and logs the first failure in a row and new causes.
func (w *worker) failed(ctx context.Context, err error) {
	w.report(ctx, false, err)
	delay := w.backoff.Next(err)
	w.retry, w.postponed = time.After(delay), false
	if ctx.Err() != nil {
		return
	}
	log := w.agent.log(w.publisher).WithError(err)
	first := w.cause == publish.Cause{}
	switch news := w.cause.News(err, w.agent.Now()); {
	case first:
		log.Warn("publishing fails; what is published stays as it is; trying again until it works")
	case news:
		log.Warn("publishing still fails, for another reason")
	default:
		log.Debugf("failed again; next try in %v", delay.Round(time.Millisecond))
	}
}

func (w *worker) succeeded() {
	w.retry, w.postponed = nil, false
	clear(w.backoff)
	if w.cause != (publish.Cause{}) {
		w.cause = publish.Cause{}
		w.agent.log(w.publisher).Info("publishing works again")
	}
}

// details applies the settle time to what is published besides the labels: functions, devices,
// ports, versions and findings. Otherwise a link that goes up and down every second would cause a
// write each time, and the labels of other people's rules would flap.
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
	sameMTUs := func(a, b verbs.Answer) bool { return a.Device == b.Device && maps.Equal(a.MTUs, b.MTUs) }
	return a.PCIRead == b.PCIRead && a.RDMA.Complete == b.RDMA.Complete && reflect.DeepEqual(&a.Matrix, &b.Matrix) &&
		reflect.DeepEqual(features.State(a), features.State(b)) &&
		slices.Equal(features.Findings(a), features.Findings(b)) && features.Fingerprint(a) == features.Fingerprint(b) && slices.EqualFunc(a.Asked, b.Asked, sameMTUs)
}
