package nodefeature

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/publish"
)

// unwatchedLimit is how long the object may go unwatched before it is read each time, where
// watching is denied, or this counts as a failure to publish, where there is no answer.
const unwatchedLimit = time.Minute

// maxBreaks is how many watches in a row may end with an error before this is a failure.
const maxBreaks = 3

// maxSilence is how long a watch may send nothing, and count as alive. An API server sends a
// bookmark every minute (kubernetes staging/src/k8s.io/apiserver/pkg/storage/cacher/cacher.go,
// defaultBookmarkFrequency), but something on the way may hold it back.
const maxSilence = 3 * time.Minute

// errSilent is why such a watch is given up.
var errSilent = fmt.Errorf("the watch has sent nothing for %v", maxSilence)

// errNoWatch is the reason where the API server gave none.
var errNoWatch = errors.New("the API server does not answer the watch")

// objectCache is the store of a cache.Reflector. It holds the newest known state of the object,
// also from answers to our own writes, and knows whether the watch is alive.
type objectCache struct {
	now     func() time.Time
	log     logrus.FieldLogger
	changed chan struct{} // receives after a change by others, and when a watch begins
	settled chan struct{} // receives when the object becomes known or watching is denied

	mu      sync.Mutex
	known   bool                  // object has been listed
	object  *v1alpha1.NodeFeature // nil for none
	version string                // resource version of object, or of its deletion

	open   bool      // the API server has accepted a watch
	alive  bool      // and has sent the state that the watch starts from
	silent bool      // the last one that was alive fell silent, and none has sent anything since
	since  time.Time // when the last watch ended
	err    error     // why there is none since then; nil where no request failed
	breaks int       // watches in a row that sent an error and nothing else; see failed
	cause  publish.Cause
}

func newObjectCache(now func() time.Time, log logrus.FieldLogger) *objectCache {
	return &objectCache{now: now, log: log, since: now(), changed: make(chan struct{}, 1), settled: make(chan struct{}, 1)}
}

// notify makes a channel of capacity one receive, unless it is full.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// current returns the object, which is shared and must not be changed; nil for none.
func (c *objectCache) current() *v1alpha1.NodeFeature {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.object
}

// await waits until the object is known. Without an error, known is false where the
// object has to be read, since watching it is denied. An API server that is
// overloaded or cannot be reached is not sent another kind of request.
func (c *objectCache) await(ctx context.Context) (known bool, err error) {
	timeout := time.After(requestTimeout)
	for {
		c.mu.Lock()
		known, read := c.known, c.mustRead()
		c.mu.Unlock()
		if known || read {
			return !read, nil
		}
		select {
		case <-c.settled:
		case <-timeout:
			c.mu.Lock()
			defer c.mu.Unlock()
			return false, c.failure()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// confirmed returns no error where every change of the object is known: the watch is
// alive, or the object is read each time. Otherwise it gives publish.ErrUnconfirmed,
// and after unwatchedLimit the reason.
func (c *objectCache) confirmed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.alive, c.mustRead():
		return nil
	case !c.old():
		return publish.ErrUnconfirmed
	}
	return c.failure()
}

// mustRead reports whether the object has to be read. The lock is held.
func (c *objectCache) mustRead() bool { return c.silent || denied(c.err) && (!c.known || c.old()) }

// old reports whether what is known is old. The lock is held.
func (c *objectCache) old() bool { return !c.alive && c.now().Sub(c.since) >= unwatchedLimit }

// failure tells since when and why the object is not watched. The lock is held.
func (c *objectCache) failure() error {
	age := c.now().Sub(c.since).Round(time.Second)
	return fmt.Errorf("the NodeFeature has not been watched for %v: %w", age, cmp.Or(c.err, errNoWatch))
}

// wrote notes the answer to a write of our own. The event that the object was deleted again may
// have come before it.
func (c *objectCache) wrote(o *v1alpha1.NodeFeature) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newer(o) {
		c.object, c.version = o, o.ResourceVersion
	}
}

// newer reports whether a state is newer than the one known. The lock is held.
func (c *objectCache) newer(o *v1alpha1.NodeFeature) bool {
	order, err := resourceversion.CompareResourceVersion(o.ResourceVersion, c.version)
	return err != nil || order > 0
}

func (c *objectCache) event(event any, deleted bool) error {
	o, ok := event.(*v1alpha1.NodeFeature)
	if !ok {
		return fmt.Errorf("watching a NodeFeature gave %T", event)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.newer(o) {
		return nil
	}
	if c.object, c.version = o, o.ResourceVersion; deleted {
		c.object = nil
	}
	notify(c.changed)
	return nil
}

// Add implements cache.ReflectorStore, as do the methods below.
func (c *objectCache) Add(o any) error { return c.event(o, false) }

// Update notes a change.
func (c *objectCache) Update(o any) error { return c.event(o, false) }

// Delete notes a deletion.
func (c *objectCache) Delete(o any) error { return c.event(o, true) }

// Replace notes the state that a watch starts from: no object or one.
func (c *objectCache) Replace(list []any, version string) error {
	var object *v1alpha1.NodeFeature
	for _, item := range list {
		var ok bool
		if object, ok = item.(*v1alpha1.NodeFeature); !ok {
			return fmt.Errorf("listing NodeFeatures gave %T", item)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.object, c.version = true, object, version
	if c.open {
		c.breaks = 0
		c.begin()
	}
	notify(c.changed)
	notify(c.settled)
	return nil
}

// Resync has nothing to do.
func (c *objectCache) Resync() error { return nil }

// opened notes that the API server has accepted a watch. One that does not resume another
// is alive after Replace, one that follows a silent one, or several that broke, after its first event.
func (c *objectCache) opened(resumes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open = true; resumes && !c.silent && c.breaks < maxBreaks {
		c.begin()
	}
}

// heard notes an event of a watch that has begun with nothing.
func (c *objectCache) heard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.breaks = 0; c.open && !c.alive {
		c.begin()
	}
}

// endedInOrder notes that a watch has ended without an error: those before it are not in a row with the
// next ones.
func (c *objectCache) endedInOrder() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open {
		c.breaks = 0
	}
}

// fellSilent notes that a watch has sent nothing for maxSilence: nothing is known since then.
func (c *objectCache) fellSilent(ctx context.Context) {
	c.mu.Lock()
	news := !c.silent
	if c.silent = true; c.alive {
		c.alive, c.since = false, c.now().Add(-maxSilence)
	}
	notify(c.settled)
	c.mu.Unlock()
	if news {
		c.failed(ctx, errSilent, false)
	}
}

// begin notes that the watch reports changes from now on. The lock is held.
func (c *objectCache) begin() {
	if c.err != nil {
		c.log.Info("the NodeFeature is watched again")
	}
	c.alive, c.silent, c.err, c.cause = true, false, nil, publish.Cause{}
	notify(c.changed)
}

// ended notes the end of the watch, if there was one.
func (c *objectCache) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.alive {
		c.since = c.now()
	}
	c.open, c.alive = false, false
}

// failed notes that a request to list or watch failed, or a watch with an error that it sent,
// and logs the first failure in a row and those with another cause. Such a watch, and one that
// cannot begin since the API server has forgotten the version to start from, is no failure at
// first: the reflector lists again.
func (c *objectCache) failed(ctx context.Context, err error, sent bool) {
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		if c.breaks++; c.breaks < maxBreaks || c.err != nil {
			return
		}
	}
	if c.err = err; denied(err) {
		notify(c.settled)
	}
	if c.cause.News(err, c.now()) {
		c.log.WithError(err).Warn("cannot watch the NodeFeature; trying again until it works")
	}
}
