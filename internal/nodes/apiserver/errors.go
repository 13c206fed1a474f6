package apiserver

import (
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// explain says what to do about an error of the API server, or of the way there.
func explain(err error, namespace string) error {
	where := "namespace " + namespace
	if namespace == "" {
		where = "all namespaces"
	}
	var unreachable *url.Error
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("no right to list the NodeFeatures of %s; the ClusterRole gdr-features-reader of deploy/examples/reader.yaml has it: %w", where, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server does not accept these credentials; log in again, or give another --context: %w", err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the API server knows no NodeFeatures; install Node Feature Discovery 0.14 or newer: %w", err)
	case apierrors.IsResourceExpired(err):
		return fmt.Errorf("the list could not be read before it changed, twice; ask for fewer nodes, by name: %w", err)
	case apierrors.IsInternalError(err), apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err):
		return fmt.Errorf("the API server has trouble of its own; try again in a while (kubectl get --raw /readyz?verbose tells more): %w", err)
	case errors.As(err, &unreachable):
		return fmt.Errorf("the API server cannot be reached; is this the right --context? %w", err)
	}
	return err
}

// Nothing is the error where there is not a single agent's object.
func Nothing(namespace string) error {
	if namespace == "" {
		return errors.New("no agent has published a NodeFeature; is the DaemonSet running? (kubectl get daemonsets -A -l app.kubernetes.io/name=gdr-features; agents with --publish file make none)")
	}
	return fmt.Errorf("no agent has published a NodeFeature in namespace %s; is the DaemonSet running there? "+
		"(kubectl -n %[1]s get daemonsets; -n or -A for another namespace; agents with --publish file make none)", namespace)
}
