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
	// keptFor is how long an object that was deleted and written again must stay
	// before it counts as published. The garbage collector needs milliseconds.
	keptFor = 2 * time.Second
	// deletedSoon is how long after a write a deletion counts as an answer to it. It is
	// longer than the default interval, at which an object is read that cannot be
	// watched.
	deletedSoon = 90 * time.Second
	// deletionsForDoubt is how many objects in a row must be deleted soon after they
	// were written before their owner is doubted.
	deletionsForDoubt = 2
	// repeatFor is how long an object without owner is written again, and repeatEvery
	// the least time between two such writes. nfd-master forgets an object whose Node
	// does not exist, and looks at it again only when it changes (NFD 0.19
	// pkg/nfd-master/updater-pool.go), or after an hour. Pods of a Node that does not
	// exist are deleted within a minute or two.
	repeatFor   = 10 * time.Minute
	repeatEvery = 5 * time.Second
)

// history is what happened to the objects that were written. It shows when their
// owner does not exist: the Kubernetes garbage collector deletes such an object each
// time it is written. That happens when a Node is deleted and registered again under
// its name while the agent runs: the token of the agent's Pod names the UID of the
// old Node until the kubelet renews it, which may take an hour. An object without
// owner stays. When the Node is deleted for good, nfd-gc deletes the object by the
// name of the node. Somebody who deletes the object by hand looks the same, so the
// doubt ends when the UID is confirmed: the API server reads the Node when it makes a
// token (kubernetes pkg/registry/core/serviceaccount/storage/token.go).
type history struct {
	written   time.Time // last; zero when that object is known to have stayed or not
	version   string    // the resource version of what was written
	owner     types.UID // of what was written
	deletions int       // in a row of objects that were deleted soon after they were written
	token     Bound     // as last read
	doubted   Bound     // the token whose Node is not used as owner any more; zero for none
	since     time.Time // when it was first doubted
}

func (h *history) wrote(version string, owner *metav1.OwnerReference, now time.Time) {
	h.written, h.version, h.owner = now, version, ""
	if owner != nil {
		h.owner = owner.UID
	}
}

// found notes whether the object is there. The error tells, once for each write, that
// the object was deleted soon after it was written.
func (h *history) found(there bool, now time.Time) error {
	age := now.Sub(h.written)
	switch {
	case h.written.IsZero():
		return nil
	case age > deletedSoon:
		h.written, h.deletions = time.Time{}, 0
		return nil
	case there:
		return nil
	}
	h.written = time.Time{}
	h.deletions++
	if h.deletions >= deletionsForDoubt && h.owner != "" {
		h.doubted, h.since = Bound{UID: h.owner, Issued: h.token.Issued}, now
	}
	return fmt.Errorf("the NodeFeature was deleted %v after it was written", age.Round(time.Millisecond))
}

// confirm notes the token that requests are sent with now. One that was made later than the
// one in doubt ends the doubt: the Node that it names was there then.
func (h *history) confirm(token Bound) {
	if h.token = token; h.doubts(token.UID) && token.Issued > h.doubted.Issued {
		h.trust()
	}
}

// doubts reports whether objects of an owner are deleted.
func (h *history) doubts(uid types.UID) bool { return uid != "" && uid == h.doubted.UID }

// trust ends the doubt.
func (h *history) trust() { h.doubted, h.deletions = Bound{}, 0 }

// repeats reports whether an object is to be written again although it is as it should
// be, since it may have been written before its Node was registered again.
func (h *history) repeats(now time.Time) bool {
	return h.doubted.UID != "" && h.owner == "" && now.Sub(h.since) < repeatFor && now.Sub(h.written) >= repeatEvery
}

// toggleAnnotation makes want differ from the object only in the annotation by which
// nfd-master recognizes a new publication of the same (NFD 0.19
// pkg/nfd-master/nfd-api-controller.go, nodeFeaturePublishMetadataChanged).
func toggleAnnotation(is, want *v1alpha1.NodeFeature) {
	if _, ok := is.Annotations[v1alpha1.WorkerPodUIDAnnotation]; !ok {
		want.Annotations = map[string]string{v1alpha1.WorkerPodUIDAnnotation: fieldManager}
	}
}

// checkKept waits until the object that was just written has been there for keptFor, or
// others have changed it, which Publish is to revert. The error tells that it was
// deleted. An object that is not watched is not waited for.
func (p *Publisher) checkKept(ctx context.Context) error {
	if p.cache == nil {
		return nil
	}
	end := time.NewTimer(keptFor)
	defer end.Stop()
	for {
		switch now := p.cache.current(); {
		case now == nil:
			return p.deleted()
		case now.ResourceVersion != p.history.version:
			notify(p.cache.changed)
			return nil
		}
		select {
		case <-p.cache.changed:
		case <-end.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// deleted is the error of a write whose object was deleted. If its owner is not the
// reason, others delete it deliberately, and trying again soon does not help.
func (p *Publisher) deleted() error {
	err := p.history.found(false, p.now())
	if p.history.deletions > deletionsForDoubt {
		return publish.Denied(err)
	}
	return err
}
