package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// comparison is what `kubectl gdr slices -o json` says of a node.
type comparison struct {
	Node, Align string
	Drivers     []string
	Matches     map[string]struct {
		GPUs, Pairs int
		Level       string
	}
	Findings []struct{ Code string }
}

// claimTable is what `kubectl gdr slices` prints of the nodes, before the findings.
const claimTable = `NODE           GPUS   NICS    PCIEROOT   NUMANODE   ADDRESS    FINDINGS
dra-a40        8/8    2/2     4/8 PIX    8/8 NODE   8/8 NODE   NoMatch
dra-aks        4/4    4/4     0/4        4/4 NODE   4/4 NODE   NoMatch,AttributeMissing
dra-aks-amd    8/8    8/8     0/8        0/8        8/8 NODE   NoMatch,AttributeMissing
dra-bnxt       5/5    2/2     1/5 PHB    2/5 NODE   5/5 SYS    NoMatch
dra-epyc       3/3    2/2     1/3 PHB    3/3 NODE   3/3 NODE   NoMatch
dra-free-hgx   8/8    12/12   8/8 PIX    8/8 NODE   8/8 PIX    -
dra-free-oke   4/4    8/8     0/4        4/4 NODE   4/4 NODE   NoMatch
dra-gb300      2/2    2/2     0/2        2/2 NODE   2/2 NODE   NoMatch
dra-hgx        8/8    12/12   8/8 PIX    8/8 NODE   8/8 PIX    -
dra-kvm        8/8    8/8     8/8 PHB    0/8        8/8 PHB    -
dra-none       2/2    1/1     0/2        0/2        1/2 SYS    NoMatch
dra-oke        4/4    8/8     0/4        4/4 NODE   4/4 NODE   NoMatch
dra-p4d        8/8    4/4     8/8 PHB    8/8 NODE   8/8 PHB    -
dra-pollara    8/8    8/8     8/8 PXB    0/8        8/8 PXB    AttributeMissing
`

// testSlices compares what `kubectl gdr slices` prints of the nodes, with the rights of our
// examples, and returns its JSON by node.
func testSlices(t *testing.T) map[string]comparison {
	t.Helper()
	const group = "dra-admins"
	kubeconfig := asGroup(t, group)
	names := " " + strings.Join(slices.Sorted(maps.Keys(claimMachines)), " ")
	fails(t, kubeconfig, "kubectl gdr slices"+names, "you may not list the NodeFeatures of namespace gdr-features; bind the ClusterRole gdr-features-reader")
	grant(t, "examples/reader.yaml", group)
	fails(t, kubeconfig, "kubectl gdr slices"+names, "you may not list the ResourceSlices; bind the ClusterRole gdr-features-slices of deploy/examples/slices.yaml: resourceslices.resource.k8s.io is forbidden")
	grant(t, "examples/slices.yaml", group)

	out, errs, status := shell(t, kubeconfig, "kubectl gdr slices --chunk-size=3"+names)
	if status != 0 || errs != "" {
		t.Fatalf("status %d: %s%s", status, out, errs)
	}
	table, findings, _ := strings.Cut(out, "\n\n")
	if diff := cmp.Diff(claimTable, table+"\n"); diff != "" {
		t.Errorf("kubectl gdr slices (-want +got):\n%s", diff)
	}
	const azure = "AttributeMissing: dra-aks: dra.net publishes no resource.kubernetes.io/pcieRoot of 0101:00:00.0, 0102:00:00.0, 0103:00:00.0, 0104:00:00.0\n" +
		"    fix: claim by numaNode, which gives NODE or nearer;"
	if !strings.Contains(findings, azure) {
		t.Errorf("kubectl gdr slices does not print %q, but\n%s", azure, findings)
	}
	if again, _, _ := shell(t, kubeconfig, "gdr-features slices"+names); again != out {
		t.Errorf("gdr-features slices prints %s", again)
	}
	example := commandsBelow(t, repository+"/docs/dra.md", "## What drivers publish")[0]
	command, table, _ := strings.Cut(strings.TrimPrefix(example, "$ "), "\n")
	if out, _, _ := shell(t, kubeconfig, command); out != table {
		t.Errorf("docs/dra.md shows (-) and the program prints (+):\n%s", cmp.Diff(table, out))
	}
	out, _, _ = shell(t, kubeconfig, "kubectl gdr slices -o json"+names)
	var got struct{ Nodes []comparison }
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	published := map[string]comparison{}
	for _, n := range got.Nodes {
		published[n.Node] = n
	}
	return published
}

// grant applies one of our examples for another group than theirs, and waits until it counts.
func grant(t *testing.T, example, group string) {
	t.Helper()
	objects := shipped(t, example)
	for _, o := range objects {
		if subjects, ok, _ := unstructured.NestedSlice(o.Object, "subjects"); ok {
			o.SetName(o.GetName() + "-" + group)
			subjects[0].(map[string]any)["name"] = group
			if err := unstructured.SetNestedSlice(o.Object, subjects, "subjects"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := shared.apply(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
	rule := only[rbacv1.ClusterRole](t, objects, "ClusterRole").Rules[0]
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		review, err := shared.admin.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "somebody", Groups: []string{group}, ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: rule.APIGroups[0], Resource: rule.Resources[0], Verb: "list", Namespace: agentName,
				},
			},
		}, metav1.CreateOptions{})
		if err == nil && !review.Status.Allowed {
			err = fmt.Errorf("%s does not count: %s", example, review.Status.Reason)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
