package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nfdv1alpha1 "sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

// The agent's NodeFeature gives the Node exactly the labels that `labels` prints. The Node
// owns it from the first write. The agent requests nothing that its role does not allow,
// and no other object.
func TestNodeFeature(t *testing.T) {
	for _, name := range []string{"dell-xe9680-h100", "dgx-a100-nps4", "kvm-h200-flat-passthrough"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, &shared, "agent-"+name)
			tree := machine(t, name, "ready")
			from := shared.auditEnd(t)
			a := n.run(t, tree)
			want := labelsOf(t, tree)
			n.expect(t, want)

			got, err := a.published(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Spec.Labels); diff != "" {
				t.Errorf("labels of the NodeFeature (-want +got):\n%s", diff)
			}
			if on := got.Labels[nfdv1alpha1.NodeFeatureObjNodeNameLabel]; on != n.name {
				t.Errorf("the NodeFeature is of node %q", on)
			}
			owners := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.name, UID: n.uid}}
			if diff := cmp.Diff(owners, got.OwnerReferences); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			for _, kind := range []string{"gdr.gpu", "gdr.nic", "gdr.pair"} {
				if len(got.Spec.Features.Instances[kind].Elements) == 0 {
					t.Errorf("no %s", kind)
				}
			}
			for key, value := range want {
				if attribute := got.Spec.Features.Attributes["gdr.node"].Elements[strings.TrimPrefix(key, prefix)]; attribute != value {
					t.Errorf("%s is %s in the labels, %q in the features", key, value, attribute)
				}
			}
			checkRequests(t, a, from, owners)
		})
	}
}

// checkRequests checks all requests of the agent to the API server.
func checkRequests(t *testing.T, a *agent, from int64, owners []metav1.OwnerReference) {
	t.Helper()
	requests := shared.requests(t, from, a.name)
	for _, r := range requests {
		own := r.ObjectRef != nil && r.ObjectRef.Resource == "nodefeatures" && r.ObjectRef.Namespace == agentName &&
			(r.ObjectRef.Name == feature(a.name).Name || strings.Contains(r.RequestURI, "fieldSelector=metadata.name%3D"+feature(a.name).Name))
		if !own && (r.ObjectRef == nil || r.ObjectRef.Resource != "events") {
			t.Errorf("it asked for more than its object: %s", describe(&r))
		}
		if r.ResponseStatus != nil && r.ResponseStatus.Code == 403 {
			t.Errorf("it asked for what it may not: %s", describe(&r))
		}
	}
	written := writes(requests)
	if len(written) == 0 {
		t.Fatal("no write was audited")
	}
	first := written[0]
	var made nfdv1alpha1.NodeFeature
	if first.ResponseStatus.Code != 201 || first.ResponseObject == nil {
		t.Fatalf("the first write made nothing: %s", describe(&first))
	}
	if err := json.Unmarshal(first.ResponseObject.Raw, &made); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(owners, made.OwnerReferences); diff != "" {
		t.Errorf("owners after the first write (-want +got):\n%s", diff)
	}
	for _, later := range written[1:] {
		t.Errorf("a write too many: %s", describe(&later))
	}
}
