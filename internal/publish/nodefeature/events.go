package nodefeature

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gdr-features/internal/label"
)

// Reasons of events on the Node.
const (
	becameReady = "GPUDirectRDMAReady"
	lostReady   = "GPUDirectRDMALost"
)

// mostPending is how many events wait for an API server that does not take them.
const mostPending = 8

// turned tells whether readiness turned between two publications, and what to
// say about it. That it is published for the first time is no turn.
func turned(before, after label.Set) (kind, reason, message string, ok bool) {
	was, had := before[label.Ready]
	is := after[label.Ready]
	switch {
	case !had || was == is:
		return "", "", "", false
	case is == "true":
		return corev1.EventTypeNormal, becameReady, "GPUDirect RDMA works: every prerequisite is in place", true
	case was != "true":
		return "", "", "", false
	}
	why := after[label.Reason]
	if why == "" {
		why = "no NVIDIA GPU is seen any more"
	}
	return corev1.EventTypeWarning, lostReady, "GPUDirect RDMA does not work any more: " + why, true
}

// event is about the Node. Events about what has no namespace lie in default,
// where `kubectl describe node` looks for them.
func (p *Publisher) event(kind, reason, message string, at time.Time, uid types.UID) *corev1.Event {
	if uid == "" {
		uid = types.UID(p.node) // as the kubelet gives it
	}
	when := metav1.NewTime(at)
	return &corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", Name(p.node), at.UnixNano()), Namespace: metav1.NamespaceDefault},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: p.node, UID: uid},
		Type:           kind, Reason: reason, Message: message,
		Source:         corev1.EventSource{Component: fieldManager, Host: p.node},
		FirstTimestamp: when, LastTimestamp: when, Count: 1,
		ReportingController: fieldManager, ReportingInstance: p.node,
	}
}

// remember notes an event if what was published turns readiness.
func (p *Publisher) remember(before, after label.Set, at time.Time) {
	kind, reason, message, ok := turned(before, after)
	if !ok {
		return
	}
	var uid types.UID
	if p.ownerRef != nil {
		uid = p.ownerRef.UID
	}
	p.pending = append(p.pending, p.event(kind, reason, message, at, uid))
	if len(p.pending) > mostPending {
		p.pending = p.pending[1:]
	}
}

// tell sends the events that wait. What cannot be sent waits for the next time;
// what is not allowed is dropped, after saying so once.
func (p *Publisher) tell(ctx context.Context) {
	for len(p.pending) > 0 {
		err := p.client.create(ctx, p.pending[0])
		if apierrors.IsForbidden(err) {
			err = p.client.create(ctx, here(p.pending[0], p.client.namespace))
		}
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsNotFound(err):
			if !p.silenced {
				p.log.WithError(err).Warn("events about the Node cannot be written")
				p.silenced = true
			}
		default:
			return
		}
		p.pending = p.pending[1:]
	}
}

// here is the event for an agent that may write none in default: in its own
// namespace, where `kubectl get events` finds it. The API server wants the
// namespaces of the event and of what it is about to agree.
func here(e *corev1.Event, namespace string) *corev1.Event {
	e = e.DeepCopy()
	e.Namespace, e.InvolvedObject.Namespace = namespace, namespace
	return e
}

// create makes an event.
func (c *client) create(ctx context.Context, e *corev1.Event) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return c.core.Post().Namespace(e.Namespace).Resource("events").MaxRetries(0).Body(body).SetHeader("Content-Type", "application/json").Do(ctx).Error()
}
