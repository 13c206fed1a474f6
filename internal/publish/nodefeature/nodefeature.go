// Package nodefeature publishes labels as a NodeFeature, of which nfd-master labels the Node.
package nodefeature

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/journal"
	"gdr-features/internal/label"
	"gdr-features/internal/publish"
)

// Name returns the name of the object of a node.
func Name(node string) string { return "gdr-features-" + node }

// Publisher keeps the object as it should be, and writes only where it is not.
type Publisher struct {
	client *client
	token  Token
	node   string
	now    func() time.Time
	log    logrus.FieldLogger
	cache  *objectCache // nil where the object is not watched

	ownerKnown bool
	ownerUID   types.UID // of the Node; "" for none
	history    history
	omitted    []string // of the features, as last logged

	published    label.Set         // what was published last, by this agent or the one before
	codes        map[string]string // of findings, with their status, as published last
	journal      []journal.Change
	ownersKept   bool            // the API server lets the agent change no owner
	events       []*corev1.Event // to be sent
	eventsDenied bool            // logged already
}

var _ publish.Publisher = (*Publisher)(nil)

// New returns the publisher of a node, with its object in a namespace. token is what the
// requests of config are sent with.
func New(config *rest.Config, token Token, namespace, node string, now func() time.Time, log logrus.FieldLogger) (*Publisher, error) {
	c, err := newClient(config, namespace, Name(node))
	if err != nil {
		return nil, err
	}
	return &Publisher{client: c, token: token, node: node, now: now, log: log}, nil
}

// Watch begins to watch the object, until ctx ends; without a watch, it is read each
// time. Call it at most once, before any other method.
func (p *Publisher) Watch(ctx context.Context) {
	p.cache = newObjectCache(p.now, p.log)
	r := cache.NewReflectorWithOptions(p.client.listWatch(p.cache), &v1alpha1.NodeFeature{}, p.cache, cache.ReflectorOptions{
		Name: "NodeFeature of this node",
		// The object hardly ever changes, so a watch need not be renewed every five
		// minutes. HTTP/2 pings notice a dead connection.
		MinWatchTimeout: 30 * time.Minute,
		Backoff:         pauses(),
	})
	go r.RunWithContext(klog.NewContext(ctx, klog.Logger{})) // the cache logs failures, each once
}

// Name implements publish.Publisher.
func (*Publisher) Name() string { return "nodefeature" }

// Changed receives when others may have changed the object.
func (p *Publisher) Changed() <-chan struct{} {
	if p.cache == nil {
		return nil
	}
	return p.cache.changed
}

// Close does nothing: there is nothing to wait for.
func (*Publisher) Close(context.Context) error { return nil }

// Last returns the labels of the object, and the boot in which it was written.
func (p *Publisher) Last(ctx context.Context) (publish.Content, error) {
	now, err := p.current(ctx)
	if err != nil || now == nil {
		return publish.Content{}, err
	}
	p.published, p.codes = label.Published(now.Spec.Labels), codesOf(&now.Spec)
	return publish.Content{Labels: maps.Clone(p.published), BootID: now.Spec.Features.Attributes[stateFeature].Elements[bootID]}, nil
}

// current returns the object, nil for none: from the watch, or read where there is none.
func (p *Publisher) current(ctx context.Context) (*v1alpha1.NodeFeature, error) {
	if p.cache != nil {
		known, err := p.cache.await(ctx)
		if known || err != nil {
			return p.cache.current(), err
		}
	}
	now, err := p.client.object(do(ctx, p.client.request(p.client.rest.Get())))
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no object is not an error
	}
	return now, classify(err)
}

// Publish writes the object if it is not as it should be. A node without labels gets no object,
// and an existing one is emptied. The error is publish.ErrUnconfirmed where nothing is to be
// written, as far as is known, but the object is not watched now.
func (p *Publisher) Publish(ctx context.Context, c publish.Content) (wrote bool, err error) {
	now, err := p.current(ctx)
	if err != nil {
		return false, err
	}
	if now == nil && len(c.Labels) == 0 {
		return false, nil
	}
	_ = p.history.found(now != nil, p.now()) // a deletion is reverted below
	spec, omitted, err := specOf(c, now)
	if err != nil {
		return false, err
	}
	if !slices.Equal(omitted, p.omitted) {
		p.omitted = omitted
		if len(omitted) > 0 {
			p.log.Warnf("too much for one NodeFeature; left out: %s", strings.Join(omitted, ", "))
		}
	}
	if wrote, err = p.write(ctx, now, spec); err != nil {
		return wrote, classify(err)
	}
	switch {
	case wrote && now == nil && len(p.published) > 0: // it was deleted, and may be deleted again
		err = p.checkKept(ctx)
	case !wrote && p.cache != nil:
		err = p.cache.confirmed()
	}
	if err != nil {
		return false, err
	}
	p.queueEvent(p.published, c.Labels, c.Seen)
	p.published, p.codes = maps.Clone(c.Labels), codesOf(&spec)
	p.sendEvents(ctx)
	return wrote, nil
}

// write makes the object have this spec, if it does not have it already.
func (p *Publisher) write(ctx context.Context, now *v1alpha1.NodeFeature, spec v1alpha1.NodeFeatureSpec) (wrote bool, err error) {
	owner, err := p.owner(ctx, now == nil)
	if err != nil {
		return false, err
	}
	want := object(p.client.namespace, p.client.name, p.node, owner, spec)
	if now != nil && p.ownersKept {
		want.OwnerReferences = now.OwnerReferences
	}
	if now != nil && matches(now, want) {
		if !p.history.repeats(p.now()) {
			return false, nil
		}
		toggleAnnotation(now, want)
	}
	changes := p.annotate(want, now)
	is, err := p.apply(ctx, want, now)
	if err != nil {
		return false, err
	}
	if !sameSpec(&is.Spec, &want.Spec) { // others have added to it
		if is, err = p.client.replaceSpec(ctx, &want.Spec); err != nil {
			return false, err
		}
	}
	if !matches(is, want) {
		return false, errNotWritten
	}
	if p.cache != nil {
		p.cache.wrote(is)
	}
	p.journal = changes
	p.history.wrote(is.ResourceVersion, owner, p.now())
	return true, nil
}

// apply applies want, and does without what an API server or an admission policy of an older version
// does not allow: labels matter more than an owner and a journal.
func (p *Publisher) apply(ctx context.Context, want, now *v1alpha1.NodeFeature) (*v1alpha1.NodeFeature, error) {
	is, err := p.client.apply(ctx, want)
	if mayNotAnnotate(err) {
		delete(want.Annotations, journal.Annotation)
		is, err = p.client.apply(ctx, want)
	}
	if now != nil && mayNotOwn(err) {
		p.log.WithError(err).Warn("the NodeFeature keeps the owners that it has: the role of the agent lacks the verb delete on nodefeatures, " +
			"which the API server's admission plugin OwnerReferencesPermissionEnforcement asks for")
		p.ownersKept, want.OwnerReferences = true, now.OwnerReferences
		is, err = p.client.apply(ctx, want)
	}
	return is, err
}

// errNotWritten means that something between agent and etcd changes or drops what is written,
// for example an admission webhook.
var errNotWritten = errors.New("the API server answers with another object than what was written")

// Remove deletes the object, or empties it where that is not allowed, so that no labels stay.
// It is not for a publisher that watches the object, since it would empty what it last saw.
func (p *Publisher) Remove(ctx context.Context) error {
	err := do(ctx, p.client.request(p.client.rest.Delete())).Error()
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case !apierrors.IsForbidden(err):
		return err
	}
	now, err := p.current(ctx)
	if err != nil || now == nil {
		return err
	}
	spec, _, err := specOf(publish.Content{}, now)
	if err != nil {
		return err
	}
	_, err = p.write(ctx, now, spec)
	return err
}
