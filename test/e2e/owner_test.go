package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// With the garbage collector of Kubernetes: an owner that does not exist is replaced while the
// agent runs. While it does not run, the NodeFeature of such an owner is collected, and the
// agent writes it again when it starts. The NodeFeature goes with its Node; that of the Node's
// successor of the same name is owned by the successor.
func TestOwner(t *testing.T) {
	t.Parallel()
	shared.collectGarbage(t)
	n := newNode(t, &shared, "owner")
	tree := machine(t, "dell-xe9680-h100", "ready")
	labels := labelsOf(t, tree)
	a := n.run(t, tree)
	n.expect(t, labels)
	right := func(ctx context.Context) error { return errors.Join(n.has(ctx, labels), a.owned(ctx)) }

	running := a.strained(t, "another owner")
	a.disown(t)
	running.recovers(t, 10, 4, right)

	if err := a.process.stop(); err != nil {
		t.Fatal(err)
	}
	a.disown(t)
	collected := func(ctx context.Context) error {
		if _, err := a.published(ctx); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the NodeFeature is there: error %w", err)
		}
		return n.has(ctx, nil)
	}
	if err := until(t.Context(), patience, collected, n.processes()...); err != nil {
		t.Fatal(err)
	}
	again := a.strained(t, "collected while the agent did not run")
	if err := a.process.start(); err != nil {
		t.Fatal(err)
	}
	again.recovers(t, 10, 2, right)

	a.deleteNode(t)
	made, err := n.cluster.createNode(t.Context(), n.name)
	if err != nil {
		t.Fatal(err)
	}
	n.uid = made.UID
	a = n.run(t, tree)
	successor := a.strained(t, "the Node's successor")
	successor.recovers(t, 10, 2, right)
}

// disown gives the NodeFeature an owner that does not exist, in place of the Node.
func (a *agent) disown(t *testing.T) {
	t.Helper()
	const text = `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "nobody", "uid": "nobody"}]}}`
	_, err := a.cluster.admin.nfd.NfdV1alpha1().NodeFeatures(agentName).Patch(t.Context(), feature(a.name).Name,
		types.MergePatchType, []byte(text), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// owned returns an error unless the Node alone owns the agent's NodeFeature.
func (a *agent) owned(ctx context.Context) error {
	now, err := a.published(ctx)
	if err != nil {
		return err
	}
	want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: a.name, UID: a.uid}}
	if diff := cmp.Diff(want, now.OwnerReferences); diff != "" {
		return fmt.Errorf("owners (-want +got):\n%s", diff)
	}
	return nil
}
