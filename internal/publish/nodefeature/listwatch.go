package nodefeature

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// pauses has the pauses between requests that list or watch: 1 to 5 s at first, so that an
// agent that starts during a short outage soon knows the object; 12 to 60 s later, so that an
// API server that starts does not have to answer thousands of nodes at once.
func pauses() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 4, Steps: 4, Cap: 12 * time.Second}
}

// pace makes the watches begin at a distance from each other while they end soon. The
// reflector begins another without a pause when one has ended in order, or with 410 Gone.
type pace struct {
	pauses *wait.Backoff
	begun  time.Time // the last watch
	short  int       // watches in a row that lasted less than unwatchedLimit
	listed bool      // since then
}

// next waits until the next watch may begin. One that follows a list may at once, since the
// reflector pauses before it lists, and so may the first one that follows a short one.
func (p *pace) next(ctx context.Context) error {
	if time.Since(p.begun) >= unwatchedLimit {
		p.pauses, p.short = pauses(), 0
	} else if p.short++; p.short > 1 && !p.listed {
		select {
		case <-time.After(time.Until(p.begun.Add(p.pauses.Step()))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.begun, p.listed = time.Now(), false //nolint:forbidigo // the pauses are real
	return nil
}

// listWatch lists and watches the one object, and tells the cache how that goes.
func (c *client) listWatch(to *objectCache) cache.ListerWatcher {
	request := func(o metav1.ListOptions) *rest.Request {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", c.name).String()
		return c.rest.Get().Namespace(c.namespace).Resource(resource).MaxRetries(0).VersionedParams(&o, metav1.ParameterCodec)
	}
	var pace pace
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := do(ctx, request(o)).Get()
			if err != nil {
				to.failed(ctx, err, false)
			}
			pace.listed = err == nil
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if err := pace.next(ctx); err != nil {
				return nil, err
			}
			o.Watch = true
			w, err := request(o).Watch(ctx)
			resumes := o.SendInitialEvents == nil
			if err != nil {
				to.failed(ctx, err, false)
				if resumes {
					// After an error that is temporary to the reflector it pauses and resumes, and
					// pauses again before it lists where a restarted API server does not know the
					// version to resume from. After other errors it pauses once and lists.
					err = errors.New(err.Error())
				}
				return nil, err
			}
			return newWatching(ctx, w, to, resumes), nil
		},
	}
}

// forgotten makes the reflector list again, and not resume a watch that it cannot know the end of.
var forgotten = watch.Event{Type: watch.Error, Object: &apierrors.NewResourceExpired(errSilent.Error()).ErrStatus}

// resumedAfter is how long a watch that resumes another must last before it counts: it begins
// with an error event where the API server has forgotten the version to start from.
const resumedAfter = time.Second

// watching notes the beginning of a watch, errors that it sends, and its end: the reflector
// stops every watch before it starts another, also one that has ended by itself.
type watching struct {
	*watch.ProxyWatcher
	source watch.Interface
	to     *objectCache
	passed chan struct{} // closed when no more events are passed on
}

func newWatching(ctx context.Context, source watch.Interface, to *objectCache, resumes bool) *watching {
	events := make(chan watch.Event)
	w := &watching{watch.NewProxyWatcher(events), source, to, make(chan struct{})}
	if !resumes {
		to.opened(false)
	}
	go w.pass(ctx, events, resumes)
	return w
}

func (w *watching) pass(ctx context.Context, to chan<- watch.Event, resumes bool) {
	defer close(w.passed)
	defer close(to)
	var lasts <-chan time.Time
	if resumes {
		lasts = time.After(resumedAfter)
	}
	silence := time.NewTimer(maxSilence)
	defer silence.Stop()
	broke := false
	for {
		var event watch.Event
		select {
		case <-silence.C:
			w.to.fellSilent(ctx)
			event = forgotten
		case next, ok := <-w.source.ResultChan():
			if w.Stopping() { // which the source may tell as an error: "response body closed"
				return
			}
			if !ok {
				if !broke {
					w.to.endedInOrder()
				}
				return
			}
			silence.Reset(maxSilence)
			if event = next; event.Type == watch.Error {
				broke = true
				w.to.failed(ctx, apierrors.FromObject(event.Object), true)
			} else if resumes {
				w.to.heard()
			}
		case <-lasts:
			w.to.opened(true)
			continue
		case <-w.StopChan():
			return
		}
		select {
		case to <- event:
		case <-w.StopChan():
			return
		}
	}
}

// Stop implements watch.Interface.
func (w *watching) Stop() {
	w.ProxyWatcher.Stop()
	w.source.Stop()
	<-w.passed
	w.to.ended()
}
