package nodefeature

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/features"
	"gdr-features/internal/label"
	"gdr-features/internal/publish"
	"gdr-features/internal/report"
	"gdr-features/source/pci"
)

// maxSpecSize in bytes fits into any API server: etcd's limit for an object is 1.5 MiB,
// of which the managed fields take a part.
const maxSpecSize = 1 << 20

// managedBy is the usual label that names the creator of an object.
const managedBy = "app.kubernetes.io/managed-by"

// object is the object of a node, owned by the Node of a UID; "" for none. The owner has no
// blockOwnerDeletion, which the API server allows only to those who may change the Node's
// finalizers.
func object(namespace, name, node string, owner types.UID, spec v1alpha1.NodeFeatureSpec) *v1alpha1.NodeFeature {
	o := &v1alpha1.NodeFeature{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "NodeFeature"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace,
			Labels: map[string]string{v1alpha1.NodeFeatureObjNodeNameLabel: node, managedBy: fieldManager},
		},
		Spec: spec,
	}
	if owner != "" {
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node, UID: owner}}
	}
	return o
}

// matches reports whether the object is as it should be, but for more labels and owners.
func matches(is, should *v1alpha1.NodeFeature) bool {
	for key, value := range should.Labels {
		if is.Labels[key] != value {
			return false
		}
	}
	for _, owner := range should.OwnerReferences {
		if !slices.ContainsFunc(is.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner.UID && r.Kind == owner.Kind }) {
			return false
		}
	}
	return sameSpec(&is.Spec, &should.Spec)
}

func sameSpec(is, should *v1alpha1.NodeFeatureSpec) bool {
	return equality.Semantic.DeepEqual(is, should)
}

// specOf returns the spec to publish. What the report could not list stays as it is in
// old, which is nil for no object. omitted names what did not fit into one object.
func specOf(c publish.Content, old *v1alpha1.NodeFeature) (spec v1alpha1.NodeFeatureSpec, omitted []string, err error) {
	if len(c.Labels) == 0 {
		return v1alpha1.NodeFeatureSpec{Labels: map[string]string{}, Features: *v1alpha1.NewFeatures()}, nil, nil
	}
	features := features.Node(c.Report, "gdr.")
	features.Attributes["gdr.node"] = attributesOf(c, old)
	if c.BootID != "" {
		features.Attributes[stateFeature].Elements[bootID] = c.BootID
	}
	if old != nil {
		for _, name := range incomplete(c.Report) {
			if before, ok := old.Spec.Features.Instances[name]; ok {
				features.Instances[name] = before
			}
		}
		keepUnidentified(features.Instances, old.Spec.Features.Instances, &c.Report.PCI)
	}
	spec = v1alpha1.NodeFeatureSpec{Labels: c.Labels.Prefixed(label.DefaultPrefix), Features: *features}
	for _, name := range []string{"gdr.pair", "gdr.nic"} {
		text, err := json.Marshal(spec)
		if err != nil || len(text) <= maxSpecSize {
			return spec, omitted, err
		}
		omitted = append(omitted, fmt.Sprintf("%d instances of %s", len(features.Instances[name].Elements), name))
		delete(features.Instances, name)
	}
	return spec, omitted, nil
}

// attributesOf are the labels and the fingerprint, which stays as it is in old while it is not known.
func attributesOf(c publish.Content, old *v1alpha1.NodeFeature) v1alpha1.AttributeFeatureSet {
	all := features.LabelsOf(c.Report, c.Labels)
	if old != nil && all.Elements[features.FingerprintKey] == "" {
		if before := old.Spec.Features.Attributes["gdr.node"].Elements[features.FingerprintKey]; before != "" {
			all.Elements[features.FingerprintKey] = before
		}
	}
	return all
}

// keepUnidentified adds the old instances of functions that can no longer be identified, and that
// the new ones lack.
func keepUnidentified(now, old map[string]v1alpha1.InstanceFeatureSet, inv *pci.Inventory) {
	unidentified := map[string]bool{}
	for _, f := range inv.Functions {
		if f.Unidentified() {
			unidentified[f.Address.String()] = true
		}
	}
	if len(unidentified) == 0 {
		return
	}
	for feature, keys := range map[string][]string{"gdr.gpu": {"address"}, "gdr.nic": {"address"}, "gdr.pair": {"gpu", "nic"}} {
		set, listed := now[feature], map[string]bool{}
		of := func(e v1alpha1.InstanceFeature) (id string, kept bool) {
			for _, key := range keys {
				id += e.Attributes[key] + " "
				kept = kept || unidentified[e.Attributes[key]]
			}
			return id, kept
		}
		for _, e := range set.Elements {
			id, _ := of(e)
			listed[id] = true
		}
		for _, e := range old[feature].Elements {
			if id, kept := of(e); kept && !listed[id] {
				set.Elements = append(set.Elements, e)
			}
		}
		now[feature] = set
	}
}

// incomplete names the features of which the report may lack instances.
func incomplete(r *report.Report) []string {
	switch {
	case !r.PCIRead:
		return []string{"gdr.gpu", "gdr.nic", "gdr.pair"}
	case !r.RDMA.Complete:
		return []string{"gdr.nic", "gdr.pair"}
	}
	return nil
}
