// Package apiserver reads what agents have published in an API server.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Query is what to list.
type Query struct {
	// Namespace is where the agents publish, "" for all namespaces.
	Namespace string
	// Names are the nodes wanted, none for all.
	Names []string
	// Hardware asks for the GPUs, NICs and software of each node.
	Hardware bool
	// PageSize is how many objects are asked for at a time, 0 for all at once.
	PageSize int
	// Progress is called after each page with how many objects have been read; may be nil.
	Progress func(int)
}

type resource struct {
	version schema.GroupVersion
	name    string // "nodefeatures"
	kind    string // "NodeFeature"
	// clusterWide: it is in no namespace.
	clusterWide bool
	// accept is the form to ask for; "" for whole objects.
	accept string
	// right and source tell in errors how to get the right to list it, and the resource itself.
	right, source string
}

// readAll reads all objects that a label selector selects, "" for all, in the namespace of a query, and
// keeps what take makes of those that it wants. An error says what to do.
func readAll[T, U any](ctx context.Context, config *rest.Config, r resource, q Query, selector string, take func(*T) (U, bool)) ([]U, error) {
	client, err := open(config, r.version)
	if err != nil {
		return nil, err
	}
	if r.clusterWide {
		q.Namespace = ""
	}
	all, err := readPages(ctx, client, r, q, selector, take)
	if apierrors.IsResourceExpired(err) { // the list took so long that its version is gone
		all, err = readPages(ctx, client, r, q, selector, take)
	}
	if err != nil {
		return nil, r.explain(err, q.Namespace)
	}
	return all, nil
}

// open returns a client for an API. It decodes no types but those of errors.
func open(config *rest.Config, version schema.GroupVersion) (rest.Interface, error) {
	types := runtime.NewScheme()
	metav1.AddToGroupVersion(types, version)
	c := rest.CopyConfig(config)
	if c.APIPath = "/apis"; version.Group == "" {
		c.APIPath = "/api"
	}
	c.GroupVersion = &version
	c.NegotiatedSerializer = serializer.NewCodecFactory(types).WithoutConversion()
	c.QPS = -1 // one request at a time, as fast as they are answered
	c.WarningHandler = rest.NoWarnings{}
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return errorBounded{next} })
	return rest.RESTClientFor(c)
}

// readPages reads page by page. client-go's pager would follow continue tokens that form
// a loop for ever, and reads everything at once when a token expires.
func readPages[T, U any](ctx context.Context, client rest.Interface, r resource, q Query, selector string, take func(*T) (U, bool)) ([]U, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listLimit, fmt.Errorf("the list of %ss takes longer than %v", r.kind, listLimit))
	defer cancel()
	var all []U
	asked := map[string]bool{}
	options := metav1.ListOptions{LabelSelector: selector, Limit: int64(q.PageSize)}
	read, left := 0, &meter{left: maxList}
	each := func(item *T) error {
		if read++; read > maxObjects {
			return fmt.Errorf("there are more than %d %ss", maxObjects, r.kind)
		}
		if kept, ok := take(item); ok {
			all = append(all, kept)
		}
		return nil
	}
	for range maxPages {
		next, err := readPage(ctx, client, r, q.Namespace, options, left, each)
		if err != nil {
			return nil, err
		}
		if q.Progress != nil {
			q.Progress(read)
		}
		switch {
		case next == "":
			return all, nil
		case len(next) > maxToken: // all of them are kept
			return nil, fmt.Errorf("the list of %ss has a continue token of more than %d KiB; a proxy in between may be broken", r.kind, maxToken>>10)
		case asked[next]:
			return nil, errors.New("the API server returns the same part of the list again and again; a proxy in between may be broken")
		}
		asked[next], options.Continue = true, next
	}
	return nil, fmt.Errorf("the list of %ss has more than %d parts; give a larger --chunk-size", r.kind, maxPages)
}

// readPage calls each with the objects of a page, and returns the token for the next one.
func readPage[T any](ctx context.Context, client rest.Interface, r resource, namespace string, options metav1.ListOptions, left *meter, each func(*T) error) (next string, err error) {
	request := client.Get().Namespace(namespace).Resource(r.name).VersionedParams(&options, metav1.ParameterCodec)
	if r.accept != "" {
		request.SetHeader("Accept", r.accept)
	}
	body, err := request.Stream(ctx)
	if err == nil {
		defer body.Close()
		left.from = body
		if next, err = decode(left, each); err == nil {
			return next, nil
		}
		err = fmt.Errorf("the answer of the API server is not a list of %ss: %w", r.kind, err)
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return "", err
}

// explain adds what to do about an error of the API server, or of the connection to it.
func (r *resource) explain(err error, namespace string) error {
	where := " of namespace " + namespace
	switch {
	case r.clusterWide:
		where = ""
	case namespace == "":
		where = " of all namespaces"
	}
	var unreachable *url.Error
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you may not list the %ss%s; %s: %w", r.kind, where, r.right, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server does not accept these credentials; log in again, or give another --context: %w", err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the API server has no resource %s; %s: %w", r.kind, r.source, err)
	case apierrors.IsResourceExpired(err):
		return fmt.Errorf("the list expired twice while it was read; ask for fewer nodes, by name: %w", err)
	case apierrors.IsInternalError(err), apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err):
		return fmt.Errorf("the API server returned a temporary error; try again later (kubectl get --raw /readyz?verbose tells more): %w", err)
	case errors.As(err, &unreachable):
		return fmt.Errorf("cannot reach the API server; is this the right --context? %w", err)
	}
	return err
}

// Nothing is the error when no agent has published anything.
func Nothing(namespace string) error {
	if namespace == "" {
		return errors.New("no agent has published a NodeFeature; is the DaemonSet running? (kubectl get daemonsets -A -l app.kubernetes.io/name=gdr-features; agents with --publish file write none)")
	}
	return fmt.Errorf("no agent has published a NodeFeature in namespace %s; is the DaemonSet running there? "+
		"(kubectl -n %[1]s get daemonsets; -n or -A for another namespace; agents with --publish file write none)", namespace)
}
