package nodefeature

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"gdr-features/internal/publish"
)

// stale is how long the object may go unwatched before it is read each time.
const stale = time.Minute

// sentry knows whether the object is being watched.
type sentry struct {
	log logrus.FieldLogger

	mu      sync.Mutex
	failing *time.Timer // runs since watching fails, nil while it does not
	old     bool        // it has run out
	refused *wait.Backoff
}

// lost tells whether what is known from watching may be old.
func (s *sentry) lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.old
}

// expire makes what is known old.
func (s *sentry) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old = s.failing != nil
}

// rest waits before the next try where the last ones were refused: asking every
// few seconds from every node for what nobody allows would be a load for nothing.
func (s *sentry) rest(ctx context.Context) error {
	s.mu.Lock()
	var delay time.Duration
	if s.refused != nil {
		delay = s.refused.Step()
	}
	s.mu.Unlock()
	select {
	case <-time.After(delay):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failed notes a failure and says so when it is the first.
func (s *sentry) failed(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return
	case !refused(err):
		s.refused = nil
	case s.refused == nil:
		backoff := publish.Resignation()
		s.refused = &backoff
	}
	if s.failing == nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		s.failing = time.AfterFunc(stale, s.expire)
		s.log.WithError(err).Warn("the NodeFeature cannot be watched; trying again until it can")
	}
}

func (s *sentry) watching() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing != nil {
		s.failing.Stop()
		s.log.Info("the NodeFeature is watched again")
	}
	s.failing, s.old, s.refused = nil, false, nil
}

// refused tells an answer that will be the same the next time, unless somebody
// changes the cluster.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// refusal marks an error that is one.
func refusal(err error) error {
	if refused(err) {
		return &publish.Refusal{Err: err}
	}
	return err
}

// listWatch lists and watches the one object.
func (c *client) listWatch(s *sentry) cache.ListerWatcher {
	lw := cache.NewListWatchFromClient(c.nfd, resource, c.namespace, fields.OneTermEqualSelector("metadata.name", c.name))
	list, watch := lw.ListWithContextFunc, lw.WatchFuncWithContext
	lw.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		if err := s.rest(ctx); err != nil {
			return nil, err
		}
		got, err := list(ctx, o)
		if err != nil {
			s.failed(ctx, err)
		}
		return got, err
	}
	lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
		if err := s.rest(ctx); err != nil {
			return nil, err
		}
		got, err := watch(ctx, o)
		if err != nil {
			s.failed(ctx, err)
			return nil, err
		}
		s.watching()
		return got, nil
	}
	return lw
}
