// Package nodefeature publishes labels as a NodeFeature object, which the
// nfd-master makes labels of the Node from.
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/label"
	"gdr-features/internal/publish"
)

// Name gives the name of a node's object.
func Name(node string) string { return "gdr-features-" + node }

// Publisher keeps the object what it should be. It writes only where it is not.
type Publisher struct {
	config *rest.Config
	client *client
	node   string
	now    func() time.Time
	log    logrus.FieldLogger
	store  *store
	watch  bool // the object is to be watched
	sentry *sentry

	ownerKnown bool
	ownerRef   *metav1.OwnerReference
	fate       fate
	leftOut    []string // of the features, as last logged

	published label.Set // what was published last, by this agent or the one before
	pending   []*corev1.Event
	silenced  bool // that events are not allowed has been said
}

var _ publish.Publisher = (*Publisher)(nil)

// New publishes for a node in a namespace.
func New(config *rest.Config, namespace, node string, now func() time.Time, log logrus.FieldLogger) (*Publisher, error) {
	c, err := newClient(config, namespace, Name(node))
	if err != nil {
		return nil, err
	}
	known := newStore()
	return &Publisher{config: config, client: c, node: node, now: now, log: log, store: known, sentry: newSentry(now, log, known.known)}, nil
}

// Watch begins to watch the object, until ctx ends. Without, the object is read
// each time. To be called once, before anything else.
func (p *Publisher) Watch(ctx context.Context) {
	p.watch = true
	backoff := publish.Patience()
	r := cache.NewReflectorWithOptions(p.client.listWatch(p.sentry), &v1alpha1.NodeFeature{}, p.store, cache.ReflectorOptions{
		Name: "NodeFeature of this node",
		// An object that hardly ever changes need not be asked for every five
		// minutes. A connection that is dead is noticed without (HTTP/2 pings).
		MinWatchTimeout: 30 * time.Minute,
		Backoff:         &backoff,
	})
	go r.RunWithContext(klog.NewContext(ctx, klog.Logger{})) // the sentry says what is wrong, once
}

// Name implements publish.Publisher.
func (*Publisher) Name() string { return "nodefeature" }

// Changed receives when the object is another one than was written.
func (p *Publisher) Changed() <-chan struct{} { return p.store.changed }

// Close has nothing to wait for.
func (*Publisher) Close(context.Context) error { return nil }

// Last gives the labels of the object. The error may be that of ctx.
func (p *Publisher) Last(ctx context.Context) (label.Set, error) {
	now, err := p.current(ctx)
	if err != nil || now == nil {
		return nil, err
	}
	p.published = labelsOf(now)
	return maps.Clone(p.published), nil
}

// errUnheard: there is no answer to the watch, nor to the requests before it.
var errUnheard = errors.New("the API server does not tell what is published")

// current gives the object as it is, nil for none: as watched, or, where that
// does not work, as read. A server that is slow or away is not asked in one more
// way.
func (p *Publisher) current(ctx context.Context) (*v1alpha1.NodeFeature, error) {
	if p.watch && !p.sentry.lost() {
		denied, err := p.await(ctx)
		if !denied || err != nil {
			return p.store.current(), err
		}
	}
	now, err := p.client.get(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	return now, marked(err)
}

// await waits until the object is known from watching it.
func (p *Publisher) await(ctx context.Context) (denied bool, err error) {
	if p.store.known() {
		return false, nil
	}
	select {
	case <-p.store.synced:
		return false, nil
	case <-p.sentry.denied:
		return true, nil
	case <-time.After(requestLimit):
		return false, &publish.Busy{Err: errUnheard}
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Publish writes the object if it is not what it should be. A node without
// labels gets none, and one that was there is emptied. The error is
// publish.ErrUnconfirmed where nothing is to be written and the API server has
// not been heard for a moment.
func (p *Publisher) Publish(ctx context.Context, c publish.Content) (wrote bool, err error) {
	now, err := p.current(ctx)
	if err != nil {
		return false, err
	}
	if now == nil && len(c.Labels) == 0 {
		return false, nil
	}
	_ = p.fate.found(now != nil, p.now()) // that it was deleted is mended below
	spec, left, err := specOf(c, now)
	if err != nil {
		return false, err
	}
	if !slices.Equal(left, p.leftOut) {
		p.leftOut = left
		if len(left) > 0 {
			p.log.Warnf("too much for one NodeFeature, left out: %s", strings.Join(left, ", "))
		}
	}
	if wrote, err = p.write(ctx, now, spec); err != nil {
		return wrote, marked(err)
	}
	switch {
	case wrote && now == nil && len(p.published) > 0: // somebody has deleted it, and may do so again
		err = p.stays(ctx)
	case !wrote:
		err = p.confirmed()
	}
	if err != nil {
		return false, err
	}
	p.remember(p.published, c.Labels, c.Seen)
	p.published = maps.Clone(c.Labels)
	p.tell(ctx)
	return wrote, nil
}

// write makes the object have this spec, if it does not have it.
func (p *Publisher) write(ctx context.Context, now *v1alpha1.NodeFeature, spec v1alpha1.NodeFeatureSpec) (wrote bool, err error) {
	owner, err := p.owner(ctx, now == nil)
	if err != nil {
		return false, err
	}
	want := object(p.client.namespace, p.client.name, p.node, owner, spec)
	if now != nil && same(now, want) {
		if !p.fate.repeats(p.now()) {
			return false, nil
		}
		nudge(now, want)
	}
	is, err := p.client.apply(ctx, want)
	if err != nil {
		return false, err
	}
	if !sameSpec(&is.Spec, &want.Spec) { // somebody has added to it
		patch, err := difference(&is.Spec, &want.Spec)
		if err != nil {
			return false, err
		}
		if is, err = p.client.merge(ctx, patch); err != nil {
			return false, err
		}
	}
	p.store.wrote(is)
	p.fate.wrote(is.ResourceVersion, owner, p.now())
	return true, nil
}

// Remove deletes the object. Where that is not allowed, it is emptied, which
// takes the labels off the node all the same.
func (p *Publisher) Remove(ctx context.Context) error {
	err := p.client.delete(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case !apierrors.IsForbidden(err):
		return err
	}
	now, err := p.client.get(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	spec, _, err := specOf(publish.Content{}, now)
	if err != nil {
		return err
	}
	_, err = p.write(ctx, now, spec)
	return err
}
