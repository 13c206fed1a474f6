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

// Bound is the node that a service account token bound to a Pod names: the one that
// the Pod runs on. The zero value is none.
type Bound struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// BoundNode reads the node claim of the token of config (KEP-4193, in the token of
// every Pod since Kubernetes 1.30). It leaves the signature to the API server. The
// error tells that the file of the token cannot be read.
func BoundNode(config *rest.Config) (Bound, error) {
	token := config.BearerToken
	if config.BearerTokenFile != "" {
		text, err := os.ReadFile(config.BearerTokenFile)
		if err != nil {
			return Bound{}, fmt.Errorf("service account token: %w", err)
		}
		token = strings.TrimSpace(string(text))
	}
	return boundNode(token), nil
}

// boundNode reads the claim "kubernetes.io".node of a JSON web token; none where the
// text is not one.
func boundNode(token string) Bound {
	var claims struct {
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
	return claims.Kubernetes.Node
}

// owner returns the reference to the Node with which the object is deleted; nil for
// none. It has no blockOwnerDeletion, which the API server allows only to those who may
// change the Node's finalizers. After an error trying again may help.
//
// A Node that is deleted and registered again has another UID, and the garbage
// collector deletes what belongs to the old one. So the token, which the kubelet
// renews, is read each time; the Node is read again when the object is gone; and a UID
// of the token whose objects are deleted is not used (see history).
func (p *Publisher) owner(ctx context.Context, gone bool) (*metav1.OwnerReference, error) {
	bound, err := BoundNode(p.config)
	if err != nil {
		return nil, err
	}
	uid := bound.UID
	if bound.Name != p.node || uid == "" || uid == p.history.doubted {
		if p.ownerKnown && !gone {
			return p.ownerRef, nil
		}
		if uid != "" && p.ownerRef != nil && p.ownerRef.UID == uid {
			p.log.Warnf("the garbage collector deletes what belongs to the Node with UID %s, which the token names: "+
				"was %s registered again? The NodeFeature is written without that owner until the token is renewed", uid, p.node)
		}
		uid, err = p.client.nodeUID(ctx, p.node)
		switch {
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err):
			if !p.ownerKnown {
				p.log.Warnf("the NodeFeature will outlive its node: the token is not bound to a pod on %s, and the node cannot be read: %v", p.node, err)
			}
			uid = ""
		case err != nil:
			return nil, err
		}
	}
	p.ownerKnown, p.ownerRef = true, nil
	if uid != "" {
		p.ownerRef = &metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: p.node, UID: uid}
	}
	return p.ownerRef, nil
}
