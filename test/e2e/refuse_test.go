package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	nfdv1alpha1 "sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

// TestRefused refuses what agents write, or a part of it, by what holds for all agents of a
// cluster: a quota, and other schemas of the NodeFeature.
func TestRefused(t *testing.T) {
	slow(t)
	c := ownCluster(t, "refused", "", (*cluster).start)
	t.Parallel() // only now: a cluster that starts takes CPU time from other tests
	t.Run("quota", func(t *testing.T) { refuseByQuota(t, c) })
	n := newNode(t, c, "schema")
	tree := machine(t, "dell-xe9680-h100", "ready")
	a := n.run(t, tree, "--listen="+address(t))
	n.expect(t, labelsOf(t, tree))
	t.Run("no features", func(t *testing.T) {
		a.schemaRefuses(t, ".spec.features: field not declared", func(spec map[string]any) {
			unstructured.RemoveNestedField(spec, "properties", "features")
			unstructured.RemoveNestedField(spec, "required")
		})
	})
	t.Run("no labels", func(t *testing.T) {
		a.schemaRefuses(t, ".spec.labels: field not declared", func(spec map[string]any) { unstructured.RemoveNestedField(spec, "properties", "labels") })
	})
	t.Run("few labels", func(t *testing.T) {
		a.schemaRefuses(t, "must have at most 5 items", func(spec map[string]any) {
			_ = unstructured.SetNestedField(spec, int64(5), "properties", "labels", "maxProperties")
		})
	})
}

// While a quota allows no NodeFeature, the agent says so, and tries less and less often.
func refuseByQuota(t *testing.T, c *cluster) {
	quotas := c.admin.kube.CoreV1().ResourceQuotas(agentName)
	none := corev1.ResourceList{"count/nodefeatures.nfd.k8s-sigs.io": resource.MustParse("0")}
	quota, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // as its controller does
	if _, err := quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		if err := c.admin.write(ctx, feature("quota"), metav1.DryRunAll); err == nil {
			return errors.New("the quota does not count")
		}
		return nil
	}, c.processes()...); err != nil {
		t.Fatal(err)
	}

	n := newNode(t, c, "quota")
	tree := machine(t, "dell-xe9680-h100", "ready")
	a := n.run(t, tree, "--listen="+address(t))
	s := a.strained(t, "a quota of none")
	a.refused(t, "exceeded quota: none")
	if err := quotas.Delete(t.Context(), quota.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.mend()
	labels := labelsOf(t, tree)
	s.recovers(t, 30, 20, func(ctx context.Context) error { return n.has(ctx, labels) })
}

// refused waits until several publications have failed. The log must say why.
func (a *agent) refused(t *testing.T, why string) {
	t.Helper()
	failed := a.metric(t, failures)
	if err := until(t.Context(), patience, func(context.Context) error {
		if now := a.metric(t, failures); now < failed+3 {
			return fmt.Errorf("%s is %v, before %v", failures, now, failed)
		}
		return nil
	}, a.process); err != nil {
		t.Error(err)
	}
	if !a.said(t, why) {
		t.Errorf("the log does not say %q:\n%s", why, a.process.tail())
	}
}

// schemaRefuses changes the schema so that it does not allow what the agent writes.
func (a *agent) schemaRefuses(t *testing.T, why string, edit func(spec map[string]any)) {
	restore := a.cluster.changeSchema(t, edit)
	s := a.strained(t, "a schema with "+t.Name())
	a.change(t)
	a.refused(t, why)
	restore()
	s.mend()
	labels := labelsOf(t, a.tree)
	s.recovers(t, 40, 20, func(ctx context.Context) error { return a.has(ctx, labels) })
}

// change changes the machine so that a label changes.
func (a *agent) change(t *testing.T) {
	t.Helper()
	if labelsOf(t, a.tree)[prefix+"gpudirect.storage"] == "true" {
		unload(t, a.tree)
	} else {
		load(t, a.tree)
	}
}

// changeSchema edits the schema of the spec of NodeFeatures, and returns when the API server
// uses it. The function that it gives restores the schema.
func (c *cluster) changeSchema(t *testing.T, edit func(spec map[string]any)) (restore func()) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	definitions, err := c.resource(crd)
	if err != nil {
		t.Fatal(err)
	}
	const name = "nodefeatures.nfd.k8s-sigs.io"
	old, err := definitions.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// change replaces all versions; a sample of a NodeFeature shows when they are served.
	change := func(versions any) {
		t.Helper()
		before := c.sample(t.Context())
		text, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": versions}})
		if err == nil {
			_, err = definitions.Patch(t.Context(), name, types.MergePatchType, text, metav1.PatchOptions{})
		}
		if err == nil {
			err = until(t.Context(), patience, func(ctx context.Context) error {
				if c.sample(ctx) == before {
					return errors.New("the schema is not in use")
				}
				return nil
			}, c.processes()...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	edited := old.DeepCopy()
	versions, _, _ := unstructured.NestedSlice(edited.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		properties, found, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema", "properties", "spec")
		spec, ok := properties.(map[string]any)
		if !found || !ok {
			t.Fatalf("no schema of the spec: %v", version["schema"])
		}
		edit(spec)
	}
	change(versions)
	return func() {
		t.Helper()
		before, _, _ := unstructured.NestedSlice(old.Object, "spec", "versions")
		change(before)
	}
}

// sample is what the API server would make of a NodeFeature, or why it would not.
func (c *cluster) sample(ctx context.Context) string {
	f := feature("sample")
	for i := range 6 {
		f.Spec.Labels[fmt.Sprintf("%sgdr.sample-%d", prefix, i)] = "true"
	}
	f.Spec.Features.Attributes["sample"] = nfdv1alpha1.NewAttributeFeatures(map[string]string{"a": "b"})
	got, err := c.admin.nfd.NfdV1alpha1().NodeFeatures(agentName).Create(ctx, f, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(got.Spec)
	return fmt.Sprint(string(text), err)
}
