package nodefeature

import (
	"cmp"
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

const (
	// Reasons of events on the Node.
	becameReady = "GPUDirectRDMAReady"
	lostReady   = "GPUDirectRDMALost"
	// maxQueued is how many events are kept for an API server that does not accept them.
	maxQueued = 8
	// eventsTimeout is how long sending events may hold up the next labels.
	eventsTimeout = 5 * time.Second
)

// readyChange returns the event for a change of readiness between two publications; no reason
// where there is none, and when readiness is published for the first time.
func readyChange(before, after label.Set) (kind, reason, message string) {
	was, had := before[label.Ready]
	switch is := after[label.Ready]; {
	case had && was != "true" && is == "true":
		return corev1.EventTypeNormal, becameReady, "GPUDirect RDMA works: every prerequisite is in place"
	case was == "true" && is != "true":
		why := cmp.Or(after[label.Reason], "no GPU is found any more")
		return corev1.EventTypeWarning, lostReady, "GPUDirect RDMA does not work any more: " + why
	}
	return "", "", ""
}

// queueEvent queues an event if a publication has changed readiness. Events about objects
// without namespace belong to default, where `kubectl describe node` looks for them.
func (p *Publisher) queueEvent(before, after label.Set, at time.Time) {
	kind, reason, message := readyChange(before, after)
	if reason == "" {
		return
	}
	uid := cmp.Or(p.ownerUID, types.UID(p.node)) // the latter as the kubelet gives it
	when := metav1.NewTime(at)
	p.events = append(p.events, &corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", Name(p.node), at.UnixNano()), Namespace: metav1.NamespaceDefault},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: p.node, UID: uid},
		Type:           kind, Reason: reason, Message: message,
		Source:         corev1.EventSource{Component: fieldManager, Host: p.node},
		FirstTimestamp: when, LastTimestamp: when, Count: 1,
		ReportingController: fieldManager, ReportingInstance: p.node,
	})
	if len(p.events) > maxQueued {
		p.events = p.events[1:]
	}
}

// sendEvents sends the queued events. What cannot be sent now is kept; what is not
// allowed is dropped, which is logged once.
func (p *Publisher) sendEvents(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	for len(p.events) > 0 {
		err := p.client.create(ctx, p.events[0])
		if apierrors.IsForbidden(err) {
			// The agent may not write to default. In its own namespace `kubectl get events` finds
			// the event; the API server demands that the object it is about is there, too.
			here := p.events[0].DeepCopy()
			here.Namespace, here.InvolvedObject.Namespace = p.client.namespace, p.client.namespace
			err = p.client.create(ctx, here)
		}
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
		case denied(err):
			if !p.eventsDenied {
				p.log.WithError(err).Warn("cannot write events about the Node")
				p.eventsDenied = true
			}
		default:
			return
		}
		p.events = p.events[1:]
	}
}

func (c *client) create(ctx context.Context, e *corev1.Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return do(ctx, core(c.rest.Post(), "events").Namespace(e.Namespace).Body(body).SetHeader("Content-Type", "application/json")).Error()
}
