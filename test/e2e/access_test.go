package e2e

import (
	"context"
	"encoding/json"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	nfd "sigs.k8s.io/node-feature-discovery/api/generated/clientset/versioned"
	nfdv1alpha1 "sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

// access has the clients of the bearer of a token.
type access struct {
	token   string
	config  *rest.Config
	kube    *kubernetes.Clientset
	nfd     *nfd.Clientset
	dynamic *dynamic.DynamicClient
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

// access returns the clients of the bearer of a token.
func (c *cluster) access(token string) (access, error) {
	config := &rest.Config{
		Host: c.server, BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.certificate()},
		QPS:             -1, // no limit of requests
		WarningHandler:  rest.NoWarnings{},
	}
	a := access{token: token, config: config}
	var err error
	if a.kube, err = kubernetes.NewForConfig(config); err != nil {
		return a, err
	}
	if a.nfd, err = nfd.NewForConfig(config); err != nil {
		return a, err
	}
	a.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(a.kube))
	a.dynamic, err = dynamic.NewForConfig(config)
	return a, err
}

// ready returns an error unless the API server says that it is ready.
func (a *access) ready(ctx context.Context) error {
	return a.kube.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// token returns a new token of a service account, bound to the Pod unless that is nil. The
// token of a Pod on a node names the node and its UID.
func (c *cluster) token(ctx context.Context, namespace, account string, pod *corev1.Pod) (string, error) {
	request := &authv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		}
	}
	answer, err := c.admin.kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return answer.Status.Token, nil
}

// write creates or changes a NodeFeature by server-side apply.
func (a *access) write(ctx context.Context, f *nfdv1alpha1.NodeFeature, dryRun ...string) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	_, err = a.nfd.NfdV1alpha1().NodeFeatures(f.Namespace).Patch(ctx, f.Name, types.ApplyPatchType, text,
		metav1.PatchOptions{FieldManager: agentName, DryRun: dryRun})
	return err
}
