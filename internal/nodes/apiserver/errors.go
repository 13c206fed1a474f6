package apiserver

import (
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

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
