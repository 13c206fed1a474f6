package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nfdNamespace is the namespace of NFD, to which its workers write.
const nfdNamespace = "node-feature-discovery"

// cluster is an etcd, a kube-apiserver, an nfd-master and nfd-gc with the rights that NFD's
// own manifests give them, and our manifests. It has no kubelet, no controllers, and no
// scheduler but that of TestScheduler: tests create its nodes and Pods.
type cluster struct {
	dir string
	// older is a directory below .bin with programs of other versions, which run in place of
	// those in .bin itself; "" for none.
	older             string
	flags             []string // further ones of kube-apiserver
	server            string
	admin             access
	etcd, api         *process
	master, collector *process
}

// ownCluster starts a cluster for one test in a new directory, with one of the cluster's
// methods, and stops it when the test ends. older is as in cluster, and must have been built.
func ownCluster(t *testing.T, name, older string, start func(*cluster, context.Context) error) *cluster {
	t.Helper()
	c := &cluster{dir: filepath.Join(shared.dir, name, older), older: older}
	if older != "" {
		if _, err := os.Stat(program(filepath.Join(older, "stamp"))); err != nil {
			t.Fatalf("%v: build-compatibility.sh builds it", err)
		}
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	if err := start(c, t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// start starts the cluster and returns when it is ready. Whatever it returns,
// the cluster must be stopped.
func (c *cluster) start(ctx context.Context) error {
	if err := c.startEmpty(ctx); err != nil {
		return err
	}
	if err := c.deployAgent(ctx); err != nil {
		return fmt.Errorf("deploying gdr-features: %w", err)
	}
	return nil
}

// startEmpty starts the cluster without our manifests.
func (c *cluster) startEmpty(ctx context.Context) error {
	if err := c.startAPI(ctx); err != nil {
		return err
	}
	text, err := os.ReadFile(program(c.file("nfd.yaml")))
	if err != nil {
		return err
	}
	objects, err := decode(text)
	if err != nil {
		return err
	}
	if err := c.apply(ctx, objects); err != nil {
		return fmt.Errorf("deploying NFD: %w", err)
	}
	const name = "control-plane"
	if _, err := c.createNode(ctx, name); err != nil {
		return err
	}
	if c.master, err = c.startNFD(ctx, "nfd-master", c.dir, name, "-config="); err != nil {
		return err
	}
	c.collector, err = c.startNFD(ctx, "nfd-gc", c.dir, name)
	return err
}

// file returns the path below .bin of a program or another file in the cluster's version.
func (c *cluster) file(name string) string {
	older := filepath.Join(c.older, name)
	if _, err := os.Stat(program(older)); err != nil {
		return name
	}
	return older
}

// startNFD starts a program of NFD in dir with the token of its service account.
func (c *cluster) startNFD(ctx context.Context, name, dir, node string, args ...string) (*process, error) {
	token, err := c.token(ctx, nfdNamespace, name, nil)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := c.kubeconfig(dir, name, token)
	if err != nil {
		return nil, err
	}
	args = slices.Concat([]string{"-kubeconfig=" + kubeconfig}, c.noPorts(name), args)
	return start(dir, c.file(name), []string{"NODE_NAME=" + node, "KUBERNETES_NAMESPACE=" + nfdNamespace}, args...)
}

// noPorts returns the flags that keep a program of NFD from listening on all addresses.
func (c *cluster) noPorts(name string) []string {
	switch {
	case c.file(name) == name:
		return []string{"-port=-1"} // invalid: they log an error and go on
	case name == "nfd-gc":
		return []string{"-metrics=0"}
	default:
		return []string{"-metrics=0", "-grpc-health=0"}
	}
}

// createNode creates a Node as a kubelet does: nfd-master cannot patch one without labels
// or annotations.
func (c *cluster) createNode(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{corev1.LabelHostname: name},
		Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": "0"},
	}}
	return c.admin.kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
}

// processes returns the running processes, in the order of their start.
func (c *cluster) processes() []*process {
	all := []*process{c.etcd, c.api, c.master, c.collector}
	return slices.DeleteFunc(all, func(p *process) bool { return p == nil })
}

// stop ends all processes, in the reverse order of their start.
func (c *cluster) stop() error {
	var all error
	for _, p := range slices.Backward(c.processes()) {
		all = errors.Join(all, p.stop())
	}
	return all
}

// freePorts finds unused ports of 127.0.0.1.
func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // at the end, so that no two ports are the same
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
