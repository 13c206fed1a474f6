package agent

import (
	"context"
	"errors"
	"maps"
	"time"

	"golang.org/x/time/rate"

	"gdr-features/internal/hysteresis"
	"gdr-features/internal/publish"
)

// worker serves one publisher, so that none waits for another.
type worker struct {
	agent     *Agent
	publisher publish.Publisher
	sights    chan *sight          // holds the latest
	hurry     chan<- time.Duration // asks for the next sight soon

	keeper  *hysteresis.Keeper
	details details
	content publish.Content
	ready   bool // there is content to publish

	backoff publish.Backoff
	failing bool
	cause   publish.Cause // of what fails, as last logged
	retry   *time.Timer   // nil when nothing failed or is put off
	// restores limits how often what somebody else changes is set right: two
	// who each insist would write for ever.
	restores  *rate.Limiter
	postponed bool // retry is for a restoration
}

func newWorker(a *Agent, p publish.Publisher, hurry chan<- time.Duration) *worker {
	return &worker{
		agent: a, publisher: p, sights: make(chan *sight, 1), hurry: hurry,
		details: details{settle: a.Settle}, restores: rate.NewLimiter(rate.Every(10*time.Second), 10),
		backoff: publish.Backoff{},
	}
}

// show hands a sight over; one that was not looked at yet is forgotten.
func (w *worker) show(s *sight) {
	select {
	case <-w.sights:
	default:
	}
	w.sights <- s
}

func (w *worker) run(ctx context.Context) {
	if !w.readBack(ctx) {
		return
	}
	for {
		restoring := false
		select {
		case s := <-w.sights:
			news := w.take(s)
			if w.retry != nil && (!w.postponed || !news) {
				continue
			}
		case <-w.publisher.Changed():
			if w.retry != nil {
				continue
			}
			restoring = true
		case <-w.waiting():
			w.retry = nil
		case <-ctx.Done():
			return
		}
		if w.ready {
			w.publish(ctx, restoring)
		}
	}
}

// readBack asks what is published, until there is an answer: what cannot be read
// of the machine stays as that is.
func (w *worker) readBack(ctx context.Context) bool {
	for {
		last, err := w.publisher.Last(ctx)
		if err == nil {
			w.keeper = hysteresis.Published(w.agent.Settle, last)
			w.succeeded()
			return true
		}
		w.tell(ctx, false, err)
		w.failed(ctx, err)
		select {
		case <-w.waiting():
		case <-ctx.Done():
			return false
		}
	}
}

// take decides what is to be published now, and tells whether that is new.
func (w *worker) take(s *sight) (news bool) {
	labels, again, ok := w.keeper.Next(s.reading())
	if ok {
		news = !maps.Equal(labels, w.content.Labels)
		show, later := w.details.take(s, news)
		w.content, w.ready = publish.Content{Labels: labels, Report: show, Seen: s.at}, true
		if again == 0 {
			again = later
		}
	}
	if again > 0 {
		select {
		case w.hurry <- again:
		default: // the next sight is due as soon already
		}
	}
	return news
}

func (w *worker) publish(ctx context.Context, restoring bool) {
	if restoring && !w.mayRestore() {
		return
	}
	wrote, err := w.publisher.Publish(ctx, w.content)
	if errors.Is(err, publish.ErrUnconfirmed) {
		return // the next sight asks again
	}
	w.tell(ctx, wrote, err)
	if err != nil {
		w.failed(ctx, err)
		return
	}
	w.succeeded()
	if !wrote {
		return
	}
	log := w.agent.log(w.publisher).WithField("labels", len(w.content.Labels))
	if restoring {
		w.restores.Allow()
		log.Warn("somebody changed what is published; restored it")
		return
	}
	log.Info("published")
}

// tell tells the monitor how it went.
func (w *worker) tell(ctx context.Context, wrote bool, err error) {
	if m := w.agent.Monitor; m != nil && ctx.Err() == nil {
		m.Published(w.publisher.Name(), wrote, err)
	}
}

// mayRestore puts a restoration off that comes too soon after many others. News
// of the machine do not wait for it.
func (w *worker) mayRestore() bool {
	if w.restores.Tokens() >= 1 {
		return true
	}
	w.retry, w.postponed = time.NewTimer(30*time.Second), true
	return false
}

func (w *worker) waiting() <-chan time.Time {
	if w.retry == nil {
		return nil
	}
	return w.retry.C
}

// failed logs the first of a row of failures, and those with another cause, and
// sets the time of the next try.
func (w *worker) failed(ctx context.Context, err error) {
	delay := w.backoff.Next(err)
	w.retry, w.postponed = time.NewTimer(delay), false
	if ctx.Err() != nil {
		return
	}
	log := w.agent.log(w.publisher).WithError(err)
	news := w.cause.News(err, w.agent.Now())
	switch {
	case !w.failing:
		log.Warn("publishing fails; what is published stays as it is; trying again until it works")
	case news:
		log.Warn("publishing still does not work, for another reason")
	default:
		log.Debugf("failed again; next try in %v", delay.Round(time.Millisecond))
	}
	w.failing = true
}

func (w *worker) succeeded() {
	w.retry, w.postponed = nil, false
	clear(w.backoff)
	if w.failing {
		w.failing, w.cause = false, publish.Cause{}
		w.agent.log(w.publisher).Info("publishing works again")
	}
}
