package nodefeature

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/publish"
)

const (
	// trial is how long an object that was deleted and written again must stay
	// before that counts as published. The garbage collector needs milliseconds.
	trial = 2 * time.Second
	// soon is how short after a write a deletion counts as an answer to it. It is
	// longer than the default interval, the time between two looks at an object
	// that cannot be watched.
	soon = 90 * time.Second
	// enough is how many objects in a row must be deleted soon after they were
	// written before their owner is doubted.
	enough = 2
	// repeating is how long an object without owner is written again, and
	// repeatAfter the least time between two such writes. nfd-master forgets an
	// object whose Node does not exist, and looks at it again only when it changes
	// (NFD 0.19 pkg/nfd-master/updater-pool.go), or after an hour. Pods of a Node
	// that does not exist are deleted within a minute or two.
	repeating   = 10 * time.Minute
	repeatAfter = 5 * time.Second
)

// fate is what became of the objects that were written. It tells when their
// owner does not exist: the Kubernetes garbage collector deletes such an object
// as often as it is written. That happens when a Node is deleted and registered
// again under its name while the agent runs: the token of the agent's Pod names
// the UID of the old Node until the kubelet renews it, which may take an hour.
// An object without owner stays. When the Node is deleted for good, nfd-gc deletes
// the object by the name of the node.
type fate struct {
	at      time.Time // of the last write; zero when it is known to have stayed or not
	version string    // the resource version of what was written
	owner   types.UID // and its owner
	undone  int       // writes in a row that were deleted soon after
	doubted types.UID // an owner that is not used any more
	since   time.Time // since when it is doubted
}

// wrote notes a write: what was written, with what owner.
func (f *fate) wrote(version string, owner *metav1.OwnerReference, now time.Time) {
	f.at, f.version, f.owner = now, version, ""
	if owner != nil {
		f.owner = owner.UID
	}
}

// found notes whether the object is there. The error tells that it was deleted
// soon after it was written, once for each write.
func (f *fate) found(there bool, now time.Time) error {
	age := now.Sub(f.at)
	switch {
	case f.at.IsZero():
		return nil
	case age > soon:
		f.at, f.undone = time.Time{}, 0
		return nil
	case there:
		return nil
	}
	f.at = time.Time{}
	f.undone++
	if f.undone >= enough && f.owner != "" {
		f.doubted, f.since = f.owner, now
	}
	return fmt.Errorf("the NodeFeature was deleted %v after it was written", age.Round(time.Millisecond))
}

// repeats tells whether an object that is right is to be written again, since it
// may have been written before its Node was registered again.
func (f *fate) repeats(now time.Time) bool {
	return f.doubted != "" && f.owner == "" && now.Sub(f.since) < repeating && now.Sub(f.at) >= repeatAfter
}

// nudge makes want differ from what is there in nothing but the annotation that
// nfd-master takes for a new publication of the same (NFD 0.19
// pkg/nfd-master/nfd-api-controller.go, nodeFeaturePublishMetadataChanged).
func nudge(is, want *v1alpha1.NodeFeature) {
	if _, ok := is.Annotations[v1alpha1.WorkerPodUIDAnnotation]; !ok {
		want.Annotations = map[string]string{v1alpha1.WorkerPodUIDAnnotation: fieldManager}
	}
}

// stays waits until an object that was written has been there for a while, or
// somebody else has changed it, which is to be undone at once. The error tells
// that it was deleted. Without a watch nobody would tell.
func (p *Publisher) stays(ctx context.Context) error {
	if !p.watch {
		return nil
	}
	end := time.NewTimer(trial)
	defer end.Stop()
	for {
		switch now := p.store.current(); {
		case now == nil:
			return p.undone()
		case now.ResourceVersion != p.fate.version:
			p.store.notify() // Publish is to look at it
			return nil
		}
		select {
		case <-p.store.changed:
		case <-end.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// undone is the error of a write that was undone. When it is not the owner that
// is to blame, somebody insists, and there is no hurry to try again.
func (p *Publisher) undone() error {
	err := p.fate.found(false, p.now())
	if p.fate.undone > enough {
		return &publish.Refusal{Err: err}
	}
	return err
}
