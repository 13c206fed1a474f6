package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	nfdv1alpha1 "sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

const journalKey = agentName + "/journal"

// attributes gives an object so many features.
func attributes(count int) func(*nfdv1alpha1.NodeFeature) {
	return func(f *nfdv1alpha1.NodeFeature) {
		f.Spec.Features.Attributes = map[string]nfdv1alpha1.AttributeFeatureSet{}
		for i := range count {
			f.Spec.Features.Attributes["gdr."+string(rune('a'+i))] = nfdv1alpha1.NewAttributeFeatures(map[string]string{"a": "b"})
		}
	}
}

// owners gives an object the Node as owner, by each of these UIDs.
func owners(node string, uids ...types.UID) func(*nfdv1alpha1.NodeFeature) {
	return func(f *nfdv1alpha1.NodeFeature) {
		for _, uid := range uids {
			f.OwnerReferences = append(f.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node, UID: uid})
		}
	}
}

// The admission policy bounds what an agent may write into its own NodeFeature, and keeps what others
// have in it. What a busy agent needs is allowed, also in an object that others have filled.
func TestPolicyBounds(t *testing.T) { testPolicyBounds(t, &shared) }

func testPolicyBounds(t *testing.T, c *cluster) {
	n := newNode(t, c, "bounds")
	agent := n.bearer(t)
	if err := agent.write(t.Context(), feature(n.name)); err != nil {
		t.Fatal(err)
	}
	// A megabyte of others: comparing it must not cost the API server more than it grants to a policy.
	devices := make([]nfdv1alpha1.InstanceFeature, 4000)
	for i := range devices {
		devices[i] = *nfdv1alpha1.NewInstanceFeature(map[string]string{"vendor": "10de", "filler": strings.Repeat("x", 200)})
	}
	const foreign = "example.com/theirs"
	theirs := map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{foreign: "1"}, "labels": map[string]string{foreign: "1"}},
		"spec": map[string]any{
			"labels": map[string]string{foreign: "1"},
			"features": map[string]any{
				"instances":  map[string]any{"pci.device": map[string]any{"elements": devices}},
				"attributes": map[string]any{"kernel.version": map[string]any{"elements": map[string]string{"major": "6"}}},
			},
		},
	}
	ours := func(edit func(*nfdv1alpha1.NodeFeature)) map[string]any {
		f := feature(n.name)
		edit(f)
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	labels := func(count, from int) map[string]string {
		all := map[string]string{}
		for i := range count {
			all[fmt.Sprintf("%sgdr.n%d", prefix, from+i)] = strings.Repeat("v", 63)
		}
		return all
	}
	patch := func(kind types.PatchType, body any, by access) error {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		options := metav1.PatchOptions{}
		if kind == types.ApplyPatchType {
			force := true
			options = metav1.PatchOptions{FieldManager: agentName, Force: &force}
		}
		_, err = by.nfd.NfdV1alpha1().NodeFeatures(agentName).Patch(t.Context(), feature(n.name).Name, kind, text, options)
		return err
	}
	if err := patch(types.MergePatchType, theirs, c.admin); err != nil {
		t.Fatal(err)
	}
	merge := func(text string) (types.PatchType, any) { return types.MergePatchType, json.RawMessage(text) }
	apply := func(edit func(*nfdv1alpha1.NodeFeature)) (types.PatchType, any) {
		return types.ApplyPatchType, ours(edit)
	}
	for _, test := range []struct {
		name string
		do   func() (types.PatchType, any)
		says string // "" where it is allowed
	}{
		{"64 labels", func() (types.PatchType, any) {
			return apply(func(f *nfdv1alpha1.NodeFeature) { f.Spec.Labels = labels(64, 0) })
		}, ""},
		{"65 labels", func() (types.PatchType, any) {
			return apply(func(f *nfdv1alpha1.NodeFeature) { f.Spec.Labels = labels(65, 0) })
		}, "at most 64 labels"},
		{"64 more labels", func() (types.PatchType, any) {
			return types.MergePatchType, map[string]any{"spec": map[string]any{"labels": labels(64, 100)}}
		}, "at most 64 labels"},
		{"8,000 labels", func() (types.PatchType, any) {
			return apply(func(f *nfdv1alpha1.NodeFeature) { f.Spec.Labels = labels(8000, 0) })
		}, "denied"},
		{"a journal", func() (types.PatchType, any) {
			return apply(func(f *nfdv1alpha1.NodeFeature) {
				f.Annotations = map[string]string{journalKey: strings.Repeat("x", 4096), nfdv1alpha1.WorkerPodUIDAnnotation: agentName}
			})
		}, ""},
		{"a longer journal", func() (types.PatchType, any) {
			return apply(func(f *nfdv1alpha1.NodeFeature) {
				f.Annotations = map[string]string{journalKey: strings.Repeat("x", 4097)}
			})
		}, "a journal of at most 4096 characters"},
		{"no journal any more", func() (types.PatchType, any) { return apply(func(*nfdv1alpha1.NodeFeature) {}) }, ""},
		{"another annotation", func() (types.PatchType, any) {
			return merge(`{"metadata": {"annotations": {"gdr-features/x": "1"}}}`)
		}, "no annotations but"},
		{"an annotation of others changed", func() (types.PatchType, any) {
			return merge(`{"metadata": {"annotations": {"` + foreign + `": "2"}}}`)
		}, "no annotations but"},
		{"an annotation of others removed", func() (types.PatchType, any) {
			return merge(`{"metadata": {"annotations": {"` + foreign + `": null}}}`)
		}, "may remove no annotations"},
		{"all annotations removed", func() (types.PatchType, any) { return merge(`{"metadata": {"annotations": null}}`) }, "may remove no annotations"},
		{"managed-by removed", func() (types.PatchType, any) {
			return merge(`{"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}`)
		}, "may leave out no label"},
		{"a label of others removed", func() (types.PatchType, any) {
			return merge(`{"metadata": {"labels": {"` + foreign + `": null}}}`)
		}, "may leave out no label"},
		{"a feature of others changed", func() (types.PatchType, any) {
			return merge(`{"spec": {"features": {"attributes": {"kernel.version": {"elements": {"major": "7"}}}}}}`)
		}, "no other features"},
		{"devices of others changed", func() (types.PatchType, any) {
			return merge(`{"spec": {"features": {"instances": {"pci.device": {"elements": []}}}}}`)
		}, "no other features"},
		{"a label of others changed", func() (types.PatchType, any) { return merge(`{"spec": {"labels": {"` + foreign + `": "2"}}}`) }, "no other labels"},
		{"16 features", func() (types.PatchType, any) { return apply(attributes(16)) }, ""},
		{"17 features", func() (types.PatchType, any) { return apply(attributes(17)) }, "at most 16 features"},
		{"its Node as owner", func() (types.PatchType, any) { return apply(owners(n.name, "1")) }, ""},
		{"two more owners", func() (types.PatchType, any) { return apply(owners(n.name, "1", "2", "3")) }, "no other owner"},
		{"an owner with a long uid", func() (types.PatchType, any) { return apply(owners(n.name, types.UID(strings.Repeat("x", 65)))) }, "no other owner"},
		{"its spec alone, without what others added", func() (types.PatchType, any) {
			f := feature(n.name)
			f.Spec.Labels = labels(30, 0)
			return types.JSONPatchType, []any{map[string]any{"op": "add", "path": "/spec", "value": f.Spec}}
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			kind, body := test.do()
			err := patch(kind, body, agent)
			if (err != nil) != (test.says != "") || err != nil && (!apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("the error is %v, not %q", err, test.says)
			}
		})
	}

	unmanaged := feature(n.name)
	delete(unmanaged.Labels, "app.kubernetes.io/managed-by")
	other := newNode(t, c, "bounds-other")
	beside := other.bearer(t)
	if err := beside.write(t.Context(), feature(other.name)); err != nil {
		t.Fatal(err)
	}
	features := agent.nfd.NfdV1alpha1().NodeFeatures(agentName)
	if err := features.Delete(t.Context(), feature(other.name).Name, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "may write the NodeFeature") {
		t.Errorf("delete another node's: %v", err)
	}
	if err := features.Delete(t.Context(), feature(n.name).Name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete its own: %v", err)
	}
	if err := agent.write(t.Context(), unmanaged); !apierrors.IsForbidden(err) {
		t.Errorf("create one without managed-by: %v", err)
	}
}
