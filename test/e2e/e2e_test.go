// Package e2e tests that what `gdr-features labels` prints gets onto a Node: by
// a feature file to an nfd-worker, by a NodeFeature to an nfd-master, in a real
// kube-apiserver on a real etcd. `make e2e` builds them all and runs it.
package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const prefix = "feature.node.kubernetes.io/"

// shared is the cluster of all tests.
var shared cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run runs the tests in a cluster. After a failure it keeps the logs.
func run(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "gdr-features-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared.dir = dir
	fmt.Fprintln(os.Stderr, "starting etcd, kube-apiserver and nfd-master ...")
	if err := shared.start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	} else {
		code = m.Run()
	}
	fmt.Fprintln(os.Stderr, "stopping them ...")
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "the logs are in", dir)
	} else if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// program gives the path of what build.sh has built.
func program(name string) string {
	path, err := filepath.Abs(filepath.Join(".bin", name))
	if err != nil {
		return name
	}
	return path
}

// A machine's labels are on its Node, and in the NodeFeature, which belongs to
// nobody as there is no pod.
func TestMachines(t *testing.T) {
	t.Parallel()
	for _, machine := range []string{"dell-xe9680-h100", "dgx-1v", "azure-ndv5-h100"} {
		t.Run(machine, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, &shared, machine)
			labels := n.update(t, machine, "ready")
			n.expect(t, labels)

			feature, err := shared.nfd.NfdV1alpha1().NodeFeatures(namespace).Get(t.Context(), n.name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(labels, feature.Spec.Labels); diff != "" {
				t.Errorf("labels of the NodeFeature (-want +got):\n%s", diff)
			}
			if len(feature.OwnerReferences) > 0 {
				t.Errorf("the NodeFeature belongs to %v", feature.OwnerReferences)
			}
		})
	}
}

// When a machine's state changes, so do its Node's labels: values change, labels
// come and go. Without the feature file they are all gone.
func TestStates(t *testing.T) {
	t.Parallel()
	n := newNode(t, &shared, "changing")
	var before map[string]string
	for _, state := range []string{"ready", "closed-no-peermem", "no-drivers", "ready"} {
		t.Logf("state %s", state)
		labels := n.update(t, "dell-xe9680-h100", state)
		if maps.Equal(labels, before) {
			t.Fatalf("%s: the same labels as before", state)
		}
		before = labels
		n.expect(t, labels)
	}
	t.Log("without feature file")
	if err := os.Remove(n.featureFile()); err != nil {
		t.Fatal(err)
	}
	n.expect(t, nil)
}
