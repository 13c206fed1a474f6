package nodefeature

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"gdr-features/internal/publish"
)

const (
	// stale is how long the object may go unwatched before it is read each time,
	// where watching is refused, and before that is a failure to publish, where the
	// server is away.
	stale = time.Minute
	// between two watches there may be a moment without.
	between = 5 * time.Second
)

// sentry knows whether the object is being watched.
type sentry struct {
	now    func() time.Time
	log    logrus.FieldLogger
	known  func() bool   // the object is known from before
	denied chan struct{} // receives when watching was refused

	mu      sync.Mutex
	failing *time.Timer // runs since watching fails, nil while it does not
	old     bool        // it has run out
	mood    mood        // of the server, as its last answer shows
	backoff wait.Backoff
	alive   bool      // there is a watch
	heard   time.Time // when the server was last known to tell of the object, while there is none
	cause   error     // why there is none
	told    publish.Cause
}

// mood is why a server does not do what it is asked for.
type mood uint8

const (
	well     mood = iota
	troubled      // or not there at all
	busy
	refusing
)

func newSentry(now func() time.Time, log logrus.FieldLogger, known func() bool) *sentry {
	return &sentry{now: now, log: log, known: known, denied: make(chan struct{}, 1), heard: now(), cause: errUnheard}
}

// lost tells whether the object has to be read instead: where watching is refused,
// and what is known is old, or nothing is. A server that is away or busy would not
// answer that either.
func (s *sentry) lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mood == refusing && (s.old || !s.known())
}

// confirmed gives no error while the API server tells of every change of the
// object: what is known of it is what it is. Without a watch that is not so; the
// error is publish.ErrUnconfirmed at first, and after a while says why.
func (p *Publisher) confirmed() error {
	if !p.watch || p.sentry.lost() {
		return nil // it was read just now
	}
	return p.sentry.confirmed()
}

func (s *sentry) confirmed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := s.now().Sub(s.heard)
	switch {
	case s.alive, age < between:
		return nil
	case age < stale:
		return publish.ErrUnconfirmed
	}
	return fmt.Errorf("the NodeFeature has not been watched for %v: %w", age.Round(time.Second), s.cause)
}

// silent notes that a watch has ended.
func (s *sentry) silent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet()
}

// quiet is silent for those who hold the lock.
func (s *sentry) quiet() {
	if s.alive {
		s.alive, s.heard, s.cause = false, s.now(), errUnheard
	}
}

// expire makes what is known old.
func (s *sentry) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = s.failing != nil
}

// leisure is how long who knows the object waits before watching it again: up to a
// minute. It is for the rare case that somebody changes it, and an API server that
// starts has better things to do than to greet thousands at once.
func leisure() wait.Backoff {
	return wait.Backoff{Duration: 5 * time.Second, Factor: 2, Jitter: 1, Steps: 4, Cap: 30 * time.Second}
}

// patience of a server's mood. While the server is away and the object is not even
// known, what the reflector waits is enough.
func (s *sentry) patience() wait.Backoff {
	switch {
	case s.mood == refusing:
		return publish.Resignation()
	case s.known():
		return leisure()
	case s.mood == busy:
		return publish.Deference()
	}
	return wait.Backoff{}
}

// rest waits before the next try, beyond what the reflector waits, where the last
// ones failed: thousands of nodes that ask every few seconds are a load that helps
// nobody.
func (s *sentry) rest(ctx context.Context) error {
	s.mu.Lock()
	var delay time.Duration
	if s.mood != well {
		delay = s.backoff.Step()
	}
	s.mu.Unlock()
	select {
	case <-time.After(delay):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listed notes that the server has told what there is.
func (s *sentry) listed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = s.now()
}

// failed notes a failure and says so when it is the first or has another cause.
// That the server has forgotten what came after the last event is none.
func (s *sentry) failed(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet()
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	s.cause = err
	if now := moodOf(err); now != s.mood || s.backoff.Duration == 0 {
		s.mood = now
		s.backoff = s.patience()
	}
	if s.mood == refusing {
		select {
		case s.denied <- struct{}{}:
		default:
		}
	}
	news := s.told.News(err, s.now())
	switch {
	case s.failing == nil:
		s.failing = time.AfterFunc(stale, s.expire)
		s.log.WithError(err).Warn("the NodeFeature cannot be watched; trying again until it can")
	case news:
		s.log.WithError(err).Warn("the NodeFeature still cannot be watched, for another reason")
	}
}

func (s *sentry) watching() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing != nil {
		s.failing.Stop()
		s.log.Info("the NodeFeature is watched again")
	}
	s.failing, s.old, s.mood, s.alive, s.told = nil, false, well, true, publish.Cause{}
}

// moodOf tells why an error came. A refusal will be the same the next time, unless
// somebody changes the cluster.
func moodOf(err error) mood {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err), apierrors.IsInvalid(err),
		apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err):
		return refusing
	case apierrors.IsTooManyRequests(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return busy
	}
	return troubled
}

// marked marks an error as what it is.
func marked(err error) error {
	if err == nil {
		return nil
	}
	switch moodOf(err) {
	case refusing:
		return &publish.Refusal{Err: err}
	case busy:
		return &publish.Busy{Err: err}
	case well, troubled:
	}
	return err
}

// listWatch lists and watches the one object.
func (c *client) listWatch(s *sentry) cache.ListerWatcher {
	request := func(o metav1.ListOptions) *rest.Request {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", c.name).String()
		return c.all(c.nfd.Get()).VersionedParams(&o, metav1.ParameterCodec)
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if err := s.rest(ctx); err != nil {
				return nil, err
			}
			got, err := request(o).Do(ctx).Get()
			if err != nil {
				s.failed(ctx, err)
				return nil, err
			}
			s.listed()
			return got, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			if err := s.rest(ctx); err != nil {
				return nil, err
			}
			o.Watch = true
			got, err := request(o).Watch(ctx)
			if err != nil {
				s.failed(ctx, err)
				return nil, err
			}
			if o.SendInitialEvents == nil {
				s.watching()
			}
			return s.overhear(ctx, got), nil
		},
	}
}

// overhear hands the events of a watch on and hears them. It ends when it is
// stopped, whether somebody takes the next event or not: the reflector does not,
// after an error.
func (s *sentry) overhear(ctx context.Context, got apiwatch.Interface) apiwatch.Interface {
	events := make(chan apiwatch.Event)
	on := apiwatch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer got.Stop()
		for {
			select {
			case e, ok := <-got.ResultChan():
				if !ok {
					s.silent() // before the reflector, who may watch again, sees it
					return
				}
				s.hear(ctx, e)
				select {
				case events <- e:
				case <-on.StopChan():
					return
				}
			case <-on.StopChan():
				return
			}
		}
	}()
	return on
}

// hear notes what an event tells of the watch itself. A server that cannot yet
// answer begins with an answer all the same, and has the error follow.
func (s *sentry) hear(ctx context.Context, e apiwatch.Event) {
	if e.Type == apiwatch.Error {
		s.failed(ctx, apierrors.FromObject(e.Object))
	} else {
		s.watching()
	}
}
