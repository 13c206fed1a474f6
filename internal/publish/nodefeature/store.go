package nodefeature

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

// store is the newest state of the object that is known, from watching it and
// from the answers to what was written. It is the store of a cache.Reflector.
type store struct {
	mu      sync.Mutex
	object  *v1alpha1.NodeFeature // nil for none
	version string                // the resource version of that, or of its end
	synced  chan struct{}         // closed once the object is known
	changed chan struct{}         // receives after somebody else's change
}

func newStore() *store {
	return &store{synced: make(chan struct{}), changed: make(chan struct{}, 1)}
}

// current gives the object, which nobody may change, or nil.
func (s *store) current() *v1alpha1.NodeFeature {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.object
}

// known tells whether the object is known.
func (s *store) known() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

// wrote takes the answer to a write.
func (s *store) wrote(o *v1alpha1.NodeFeature) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newer(o) {
		s.object, s.version = o, o.ResourceVersion
	}
}

// newer tells whether a state is newer than what is known. The answer to a write
// may come after the event that the object is gone again.
func (s *store) newer(o *v1alpha1.NodeFeature) bool {
	if s.version == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(o.ResourceVersion, s.version)
	return err != nil || order > 0
}

// seen takes an event, unless it is older than what is known already.
func (s *store) seen(event any, deleted bool) error {
	o, ok := event.(*v1alpha1.NodeFeature)
	if !ok {
		return fmt.Errorf("watching a NodeFeature gave %T", event)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.newer(o) {
		return nil
	}
	if s.object, s.version = o, o.ResourceVersion; deleted {
		s.object = nil
	}
	s.notify()
	return nil
}

func (s *store) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Add implements cache.ReflectorStore, as do the others below.
func (s *store) Add(o any) error { return s.seen(o, false) }

// Update takes a change.
func (s *store) Update(o any) error { return s.seen(o, false) }

// Delete takes a deletion.
func (s *store) Delete(o any) error { return s.seen(o, true) }

// Replace takes the state at the beginning of a watch.
func (s *store) Replace(list []any, version string) error {
	var o *v1alpha1.NodeFeature
	for _, item := range list {
		var ok bool
		if o, ok = item.(*v1alpha1.NodeFeature); !ok {
			return fmt.Errorf("listing NodeFeatures gave %T", item)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.object, s.version = o, version
	select {
	case <-s.synced:
	default:
		close(s.synced)
	}
	s.notify()
	return nil
}

// Resync has nothing to do.
func (s *store) Resync() error { return nil }
