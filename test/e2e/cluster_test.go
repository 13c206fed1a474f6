package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	crdv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crds "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	nfd "sigs.k8s.io/node-feature-discovery/api/generated/clientset/versioned"
	"sigs.k8s.io/yaml"
)

// namespace holds the NodeFeatures, as in a usual deployment of NFD.
const namespace = "node-feature-discovery"

// cluster is an etcd, a kube-apiserver that knows NFD's resources, and an
// nfd-master. It has no kubelet: its nodes are what a test makes.
type cluster struct {
	dir, kubeconfig string
	processes       []*process
	kube            *kubernetes.Clientset
	nfd             *nfd.Clientset
}

// start starts the cluster and returns when it is ready. Whatever it returns,
// the cluster must be stopped.
func (c *cluster) start(ctx context.Context) error {
	config, err := c.startAPI(ctx)
	if err != nil {
		return err
	}
	if err := c.define(ctx, config); err != nil {
		return fmt.Errorf("defining NFD's resources: %w", err)
	}
	if c.nfd, err = nfd.NewForConfig(config); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: namespace}
	if _, err := c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return err
	}
	const name = "control-plane"
	if err := c.createNode(ctx, name); err != nil {
		return err
	}
	return c.run("nfd-master", nfdEnv(name), "-kubeconfig="+c.kubeconfig, "-config=", noPort)
}

// startAPI starts etcd and kube-apiserver and gives an administrator's access.
func (c *cluster) startAPI(ctx context.Context) (*rest.Config, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	etcd, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	if err := c.run("etcd", nil, "--data-dir=etcd", "--unsafe-no-fsync",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer); err != nil {
		return nil, err
	}
	token, err := c.credentials("https://127.0.0.1:" + ports[2])
	if err != nil {
		return nil, err
	}
	if err := c.run("kube-apiserver", nil, "--etcd-servers="+etcd,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+ports[2], "--cert-dir=cert",
		"--endpoint-reconciler-type=none", "--anonymous-auth=false", "--authorization-mode=RBAC", "--token-auth-file="+token,
		"--service-account-issuer=https://e2e", "--service-account-key-file=key.pem", "--service-account-signing-key-file=key.pem"); err != nil {
		return nil, err
	}
	var config *rest.Config
	err = until(ctx, time.Minute, func(ctx context.Context) error {
		// The server's certificate, which the file names, is there at some time.
		if config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
			return err
		}
		config.QPS, config.Timeout = -1, 5*time.Second // no limit of requests; each has one
		if c.kube, err = kubernetes.NewForConfig(config); err != nil {
			return err
		}
		return c.kube.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}, c.processes...)
	if err != nil {
		return nil, fmt.Errorf("waiting for kube-apiserver: %w", err)
	}
	return config, nil
}

// credentials writes a key to sign with, a file of tokens, whose name it gives,
// and the kubeconfig.
func (c *cluster) credentials(server string) (tokens string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", err
	}
	token := rand.Text()
	c.kubeconfig = filepath.Join(c.dir, "kubeconfig")
	for name, text := range map[string]string{
		"key.pem":    string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})),
		"tokens.csv": token + ",admin,admin,system:masters\n",
		"kubeconfig": fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: e2e, cluster: {server: %q, certificate-authority: cert/apiserver.crt}}]
users: [{name: admin, user: {token: %s}}]
contexts: [{name: e2e, context: {cluster: e2e, user: admin}}]
current-context: e2e
`, server, token),
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	return "tokens.csv", nil
}

// define creates NFD's resources and waits until they can be used.
func (c *cluster) define(ctx context.Context, config *rest.Config) error {
	client, err := crds.NewForConfig(config)
	if err != nil {
		return err
	}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	text, err := os.ReadFile(program("crds.yaml"))
	if err != nil {
		return err
	}
	for document := range strings.SplitSeq(strings.TrimPrefix(string(text), "---\n"), "\n---\n") {
		var crd crdv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict([]byte(document), &crd); err != nil {
			return err
		}
		if _, err := definitions.Create(ctx, &crd, metav1.CreateOptions{}); err != nil {
			return err
		}
		if err := until(ctx, 10*time.Second, func(ctx context.Context) error {
			now, err := definitions.Get(ctx, crd.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(now.Status.Conditions, func(c crdv1.CustomResourceDefinitionCondition) bool {
				return c.Type == crdv1.Established && c.Status == crdv1.ConditionTrue
			}) {
				return fmt.Errorf("%s is not established", crd.Name)
			}
			return nil
		}, c.processes...); err != nil {
			return err
		}
	}
	return nil
}

// createNode makes a Node as a kubelet does: nfd-master cannot patch one that
// has no label or no annotation.
func (c *cluster) createNode(ctx context.Context, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{corev1.LabelHostname: name},
		Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": "0"},
	}}
	_, err := c.kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}

// run starts a process of the cluster.
func (c *cluster) run(name string, env []string, args ...string) error {
	p, err := start(c.dir, name, env, args...)
	if err != nil {
		return err
	}
	c.processes = append(c.processes, p)
	return nil
}

// stop ends all processes, the last first.
func (c *cluster) stop() error {
	var all error
	for _, p := range slices.Backward(c.processes) {
		all = errors.Join(all, p.stop())
	}
	return all
}

// noPort keeps NFD's programs from listening, which they do on all addresses:
// they log that they cannot, and go on.
const noPort = "-port=-1"

// nfdEnv is what NFD's programs expect in their environment.
func nfdEnv(node string) []string {
	return []string{"NODE_NAME=" + node, "KUBERNETES_NAMESPACE=" + namespace}
}

// freePorts finds ports of 127.0.0.1 that nobody listens on.
func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all at once, so that no two are the same
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
