package nodefeature

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/publish"
	"gdr-features/internal/regular"
)

// Token returns the token that requests are sent with now, "" for none, if it can be read.
type Token func() (string, error)

// TokenOf returns that of a configuration. Its file, which the kubelet renews, is read each time.
func TokenOf(config *rest.Config) Token {
	return func() (string, error) {
		if config.BearerTokenFile == "" {
			return config.BearerToken, nil
		}
		text, err := regular.ReadFile(config.BearerTokenFile, maxToken)
		if err != nil {
			return "", fmt.Errorf("service account token: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
}

// Bound is the node that a service account token bound to a Pod names: the one that
// the Pod runs on. The zero value is none.
type Bound struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// Issued is in seconds since 1970 by the API server's clock; 0 where the token lacks it.
	Issued float64 `json:"-"`
}

// BoundNode reads the node claim of the token (KEP-4193, in that of every Pod since Kubernetes
// 1.30). It leaves the signature to the API server. The error is that of the token.
func BoundNode(token Token) (Bound, error) {
	text, err := token()
	return boundNode(text), err
}

// boundNode reads the claim "kubernetes.io".node; none where the text is no JSON web token.
func boundNode(token string) Bound {
	var claims struct {
		Issued     any `json:"iat"`
		Kubernetes struct {
			Node Bound `json:"node"`
		} `json:"kubernetes.io"`
	}
	_, rest, _ := strings.Cut(token, ".")
	payload, _, ok := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if !ok || err != nil || json.Unmarshal(text, &claims) != nil {
		return Bound{}
	}
	bound := claims.Kubernetes.Node
	bound.Issued, _ = claims.Issued.(float64)
	return bound
}

// owner returns the UID of the Node with which the object is deleted; "" for none. The token,
// which the kubelet renews, is read each time, the Node again when the object is gone. A UID of
// the token that is in doubt (see history) is not used.
func (p *Publisher) owner(ctx context.Context, gone bool) (types.UID, error) {
	bound, err := BoundNode(p.token)
	if err != nil {
		return "", err
	}
	p.history.confirm(bound)
	uid := bound.UID
	if bound.Name != p.node || uid == "" || p.history.doubts(uid) {
		if p.ownerKnown && !gone {
			return p.ownerUID, nil
		}
		if uid, err = p.readUID(ctx, bound); err != nil {
			return "", err
		}
	}
	p.ownerKnown, p.ownerUID = true, uid
	return uid, nil
}

// readUID reads the UID of the Node where the token's is of no use; "" where it may not.
func (p *Publisher) readUID(ctx context.Context, bound Bound) (types.UID, error) {
	raw, err := do(ctx, core(p.client.rest.Get(), "nodes").Name(p.node).
		SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")).Raw()
	var meta metav1.PartialObjectMetadata
	if err == nil {
		err = json.Unmarshal(raw, &meta)
	}
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsNotFound(err) {
		return "", err
	}
	uid := meta.UID
	switch {
	case uid != "" && p.history.doubts(uid):
		p.history.trust()
	case bound.UID != "" && p.ownerUID == bound.UID:
		p.log.Warnf("what belongs to the Node with UID %s, which the token names, is deleted each time: was %s registered again? "+
			"Or did somebody delete the NodeFeature? It is written without that owner until the token is renewed", bound.UID, p.node)
	case uid == "" && !p.ownerKnown:
		p.log.Warnf("the NodeFeature will outlive its node: the token is not bound to a pod on %s, and the node cannot be read: %v", p.node, err)
	}
	return uid, nil
}

// mayNotOwn reports whether a write was refused because it changes the owners of an object. Where
// the admission plugin OwnerReferencesPermissionEnforcement is on, as in OpenShift, only those who
// may delete an object may do that; who creates it may give it any (kubernetes
// plugin/pkg/admission/gc/gc_admission.go, Validate).
func mayNotOwn(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot set an ownerRef")
}

const (
	// keptFor is how long an object that was deleted and written again must stay
	// before it counts as published. The garbage collector needs milliseconds.
	keptFor = 2 * time.Second
	// deletedSoon is how long after a write a deletion counts as an answer to it: longer than
	// the default interval, at which an object is read that cannot be watched.
	deletedSoon = 90 * time.Second
	// deletionsForDoubt is how many objects in a row must be deleted soon after they
	// were written before their owner is doubted.
	deletionsForDoubt = 2
	// repeatFor is how long an object without owner is written again, every repeatEvery at most:
	// nfd-master forgets an object whose Node does not exist until it changes, or for an hour
	// (NFD 0.19 pkg/nfd-master/updater-pool.go). Pods of such a Node are deleted within a minute or two.
	repeatFor   = 10 * time.Minute
	repeatEvery = 5 * time.Second
)

// history is what happened to the objects that were written. Where a Node is deleted and
// registered again under its name, the agent's token names the UID of the old one for up to an
// hour, and the garbage collector deletes each object of that owner. One without owner stays;
// nfd-gc deletes it by name when the Node is gone for good. Somebody who deletes objects by hand
// looks the same, so a newer token or the Node itself ends the doubt: the API server reads the
// Node when it makes a token (kubernetes pkg/registry/core/serviceaccount/storage/token.go).
type history struct {
	written   time.Time // last; zero when that object is known to have stayed or not
	version   string    // the resource version of what was written
	owner     types.UID // of what was written
	deletions int       // in a row of objects that were deleted soon after they were written
	token     Bound     // as last read
	doubted   Bound     // the token whose Node is not used as owner any more; zero for none
	since     time.Time // when it was first doubted
}

func (h *history) wrote(version string, owner types.UID, now time.Time) {
	h.written, h.version, h.owner = now, version, owner
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
	ctx, cancel := context.WithTimeout(ctx, keptFor)
	defer cancel()
	for {
		switch now := p.cache.current(); {
		case now == nil:
			err := p.history.found(false, p.now())
			if p.history.deletions > deletionsForDoubt { // by others, deliberately: the owner is not the reason
				err = publish.Denied(err)
			}
			return err
		case now.ResourceVersion != p.history.version:
			notify(p.cache.changed)
			return nil
		}
		select {
		case <-p.cache.changed:
		case <-ctx.Done():
			return nil
		}
	}
}
