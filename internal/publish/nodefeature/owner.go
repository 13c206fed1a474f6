package nodefeature

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Token returns the token that requests are sent with now; "" for none. The error tells
// that its file cannot be read.
type Token func() (string, error)

// TokenOf returns the token of a configuration. Its file, which the kubelet renews, is read
// each time.
func TokenOf(config *rest.Config) Token {
	return func() (string, error) {
		if config.BearerTokenFile == "" {
			return config.BearerToken, nil
		}
		text, err := os.ReadFile(config.BearerTokenFile)
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
	// Issued is when the token was made, in seconds since 1970 by the API server's clock; 0
	// where it does not say.
	Issued float64 `json:"-"`
}

// BoundNode reads the node claim of the token (KEP-4193, in the token of every Pod since
// Kubernetes 1.30). It leaves the signature to the API server. The error is that of the
// token.
func BoundNode(token Token) (Bound, error) {
	text, err := token()
	return boundNode(text), err
}

// boundNode reads the claim "kubernetes.io".node of a JSON web token; none where the
// text is not one.
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

// owner returns the reference to the Node with which the object is deleted; nil for
// none. It has no blockOwnerDeletion, which the API server allows only to those who may
// change the Node's finalizers. After an error trying again may help.
//
// A Node that is deleted and registered again has another UID, and the garbage
// collector deletes what belongs to the old one. So the token, which the kubelet
// renews, is read each time; the Node is read again when the object is gone; and a UID
// of the token whose objects are deleted is not used until a newer token or the Node
// itself confirms it (see history).
func (p *Publisher) owner(ctx context.Context, gone bool) (*metav1.OwnerReference, error) {
	bound, err := BoundNode(p.token)
	if err != nil {
		return nil, err
	}
	p.history.confirm(bound)
	uid := bound.UID
	if bound.Name != p.node || uid == "" || p.history.doubts(uid) {
		if p.ownerKnown && !gone {
			return p.ownerRef, nil
		}
		if uid, err = p.readUID(ctx, bound); err != nil {
			return nil, err
		}
	}
	p.ownerKnown, p.ownerRef = true, nil
	if uid != "" {
		p.ownerRef = &metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: p.node, UID: uid}
	}
	return p.ownerRef, nil
}

// readUID reads the UID of the Node where the token's cannot be used; "" where it may not be
// read.
func (p *Publisher) readUID(ctx context.Context, bound Bound) (types.UID, error) {
	uid, err := p.client.nodeUID(ctx, p.node)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err):
		uid = ""
	case err != nil:
		return "", err
	}
	switch {
	case uid != "" && p.history.doubts(uid):
		p.history.trust()
	case bound.UID != "" && p.ownerRef != nil && p.ownerRef.UID == bound.UID:
		p.log.Warnf("what belongs to the Node with UID %s, which the token names, is deleted each time: was %s registered again? "+
			"Or did somebody delete the NodeFeature? It is written without that owner until the token is renewed", bound.UID, p.node)
	case uid == "" && !p.ownerKnown:
		p.log.Warnf("the NodeFeature will outlive its node: the token is not bound to a pod on %s, and the node cannot be read: %v", p.node, err)
	}
	return uid, nil
}
