package nodefeature

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/publish"
)

const (
	// fieldManager owns what is applied.
	fieldManager = "gdr-features"
	resource     = "nodefeatures"
	// requestTimeout leaves an overloaded server the time to finish what it has begun.
	requestTimeout = 30 * time.Second
)

// client makes requests for one NodeFeature. NFD's generated clientset does the same
// but takes twice the memory, since it links every type of Kubernetes.
type client struct {
	rest            rest.Interface
	namespace, name string
}

func newClient(config *rest.Config, namespace, name string) (*client, error) {
	types := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(types); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(types, schema.GroupVersion{Version: "v1"}) // of the status of an error
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.SchemeGroupVersion
	config.NegotiatedSerializer = sparing{serializer.NewCodecFactory(types).WithoutConversion()}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
	to, err := rest.RESTClientFor(config)
	return &client{to, namespace, name}, err
}

func (c *client) request(r *rest.Request) *rest.Request {
	return r.Namespace(c.namespace).Resource(resource).Name(c.name)
}

// core points a request at the core API, that of Nodes and Events. Events share the limit of requests
// with the labels, and are sent after them.
func core(r *rest.Request, resource string) *rest.Request {
	return r.AbsPath("/api/v1").Resource(resource)
}

// do sends a request. Status 429 is an error like others: client-go would try again
// each second, at the same time on all nodes.
func do(ctx context.Context, r *rest.Request) rest.Result {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return r.MaxRetries(0).Do(ctx)
}

// object decodes the object of the client. Status 200 with any other is an error, and so is one that
// has not been stored: something before the API server returned what it was sent.
func (c *client) object(r rest.Result) (*v1alpha1.NodeFeature, error) {
	var got v1alpha1.NodeFeature
	if err := r.Into(&got); err != nil {
		return &got, err
	}
	if got.Name != c.name || got.Namespace != c.namespace {
		return &got, fmt.Errorf("the API server answers with the object %q instead of %q", got.Name, c.name)
	}
	if got.UID == "" || got.ResourceVersion == "" {
		return &got, fmt.Errorf("the API server answers with an object %q without uid or resourceVersion", got.Name)
	}
	return &got, nil
}

// apply is a server-side apply: it creates the object where there is none, and takes
// over fields that others have set.
func (c *client) apply(ctx context.Context, want *v1alpha1.NodeFeature) (*v1alpha1.NodeFeature, error) {
	return c.patch(ctx, types.ApplyPatchType, want, new(true))
}

// replaceSpec makes the spec as it should be, whatever others have added to it.
func (c *client) replaceSpec(ctx context.Context, spec *v1alpha1.NodeFeatureSpec) (*v1alpha1.NodeFeature, error) {
	patch := []any{map[string]any{"op": "add", "path": "/spec", "value": spec}} // "add" replaces, too: RFC 6902, 4.1
	return c.patch(ctx, types.JSONPatchType, patch, nil)
}

func (c *client) patch(ctx context.Context, kind types.PatchType, patch any, force *bool) (*v1alpha1.NodeFeature, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: fieldManager, Force: force}
	got, err := c.object(do(ctx, c.request(c.rest.Patch(kind)).VersionedParams(&options, metav1.ParameterCodec).Body(body)))
	if apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		err = fmt.Errorf("the API server knows no NodeFeatures, is Node Feature Discovery installed? %w", err)
	}
	return got, err
}

// denied reports whether an error stays the same until the cluster is changed. That the
// schema of the API server lacks a field of what was applied has status 500.
func denied(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) ||
		apierrors.IsBadRequest(err) || errors.Is(err, errNotWritten) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		err != nil && strings.Contains(err.Error(), "field not declared in schema")
}

// classify marks an error with how soon to try again.
func classify(err error) error {
	switch {
	case denied(err):
		return publish.Denied(err)
	case apierrors.IsTooManyRequests(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return publish.Overloaded(err)
	}
	return err
}
