package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	nfdv1alpha1 "sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

// Any change of the agent's NodeFeature by others is reverted within two seconds, although
// the agent reads the machine only once a minute.
func TestRestored(t *testing.T) {
	n := newNode(t, &shared, "restored")
	tree := machine(t, "dell-xe9680-h100", "ready")
	a := n.run(t, tree, "--interval=1m")
	labels := labelsOf(t, tree)
	n.expect(t, labels)
	want, err := a.published(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const limit = 2 * time.Second
	busy, longest := watchLoad(t), time.Duration(0)
	features := shared.admin.nfd.NfdV1alpha1().NodeFeatures(agentName)
	patch := func(text string) func(context.Context) error {
		return func(ctx context.Context) error {
			return second(features.Patch(ctx, want.Name, types.MergePatchType, []byte(text), metav1.PatchOptions{}))
		}
	}
	for _, harm := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"deleted", func(ctx context.Context) error { return features.Delete(ctx, want.Name, metav1.DeleteOptions{}) }},
		{"label changed", patch(`{"spec": {"labels": {"` + prefix + `gpudirect.rdma": "false"}}}`)},
		{"label removed", patch(`{"spec": {"labels": {"` + prefix + `gdr.level": null}}}`)},
		{"label added", patch(`{"spec": {"labels": {"` + prefix + `gdr.foreign": "true"}}}`)},
		{"feature added", patch(`{"spec": {"features": {"attributes": {"foreign": {"elements": {"a": "b"}}}}}}`)},
		{"owner removed", patch(`{"metadata": {"ownerReferences": null}}`)},
		{"node changed", patch(`{"metadata": {"labels": {"` + nfdv1alpha1.NodeFeatureObjNodeNameLabel + `": "control-plane"}}}`)},
		{"emptied", func(ctx context.Context) error {
			now, err := a.published(ctx)
			if err != nil {
				return err
			}
			now.Labels, now.Spec = nil, feature(n.name).Spec
			return second(features.Update(ctx, now, metav1.UpdateOptions{}))
		}},
	} {
		t.Run(harm.name, func(t *testing.T) {
			if err := harm.do(t.Context()); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := until(t.Context(), patience, func(ctx context.Context) error {
				now, err := a.published(ctx)
				if err != nil {
					return err
				}
				return errors.Join(
					same("labels", want.Labels, now.Labels),
					same("owners", want.OwnerReferences, now.OwnerReferences),
					same("content", want.Spec, now.Spec))
			}, a.process); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began).Round(time.Millisecond)
			t.Logf("restored after %v", took)
			longest = max(longest, took)
		})
	}
	n.expect(t, labels)
	within(t, "restored after", longest, limit, busy)
}

// same returns an error unless two things are the same.
func same(what string, want, got any) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s (-want +got):\n%s", what, diff)
	}
	return nil
}
