package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// tree is the files of a machine.
type tree struct {
	*testing.T
	dir string
}

func (tr tree) write(name, text string) {
	tr.Helper()
	path := filepath.Join(tr.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tr.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
		tr.Fatal(err)
	}
}

func (tr tree) must(err error) {
	tr.Helper()
	if err != nil {
		tr.Fatal(err)
	}
}

// roce gives each Ethernet port a network device with an mtu, and a GID table in which the
// entry of an IPv4 address and RoCE v2 has an index of 2 or more.
func (tr tree) roce(mtu string, index int) {
	tr.Helper()
	const class = "sys/class/infiniband/"
	devices, err := os.ReadDir(filepath.Join(tr.dir, class))
	tr.must(err)
	for i, d := range devices {
		port := class + d.Name() + "/ports/1/"
		layer, err := os.ReadFile(filepath.Join(tr.dir, port, "link_layer"))
		tr.must(err)
		if string(layer) != "Ethernet\n" {
			continue
		}
		netdev := fmt.Sprint("eth", i)
		tr.write(class+d.Name()+"/device/net/"+netdev+"/mtu", mtu)
		for n := range index + 1 {
			gid, kind := "0000:0000:0000:0000:0000:0000:0000:0000", ""
			switch n {
			case 0, 1:
				gid, kind = "fe80:0000:0000:0000:5a00:00ff:fe00:0001", []string{"IB/RoCE v1", "RoCE v2"}[n]
			case index:
				gid, kind = "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2"
			}
			tr.write(port+fmt.Sprint("gids/", n), gid)
			if kind != "" {
				tr.write(port+fmt.Sprint("gid_attrs/types/", n), kind)
				tr.write(port+fmt.Sprint("gid_attrs/ndevs/", n), netdev)
			}
		}
	}
}

// rename renames an RDMA device, as `rdma dev set NAME name NEW` does.
func (tr tree) rename(from, to string) {
	tr.Helper()
	class := filepath.Join(tr.dir, "sys/class/infiniband")
	target, err := os.Readlink(filepath.Join(class, from))
	tr.must(err)
	tr.must(os.Rename(filepath.Join(class, target), filepath.Join(class, filepath.Dir(target), to)))
	tr.must(os.Remove(filepath.Join(class, from)))
	tr.must(os.Symlink(filepath.Join(filepath.Dir(target), to), filepath.Join(class, to)))
}

// pull takes a NIC with one RDMA device out of the machine.
func (tr tree) pull(address, device string) {
	tr.Helper()
	tr.must(os.Remove(filepath.Join(tr.dir, "sys/class/infiniband", device)))
	link := filepath.Join(tr.dir, "sys/bus/pci/devices", address)
	target, err := filepath.EvalSymlinks(link)
	tr.must(err)
	tr.must(os.Remove(link))
	tr.must(os.RemoveAll(target))
}

const kernelFile = "proc/sys/kernel/osrelease"

// unlike are the nodes that differ, by the kind that they are of.
var unlike = map[string][]struct {
	state  string
	change func(tree)
}{
	"dell-xe9680-h100": {
		{"ready", func(tr tree) { tr.rename("mlx5_3", "mlx5_12") }},
		{"ready", func(tr tree) { tr.roce("1500", 3) }},
		{"ready", func(tr tree) { tr.pull("0000:5e:00.0", "mlx5_5") }},
		{"ready", func(tr tree) { tr.write(kernelFile, "6.8.0-49-generic") }},
	},
	"epyc-3gpu-phb-nccltests320": {
		{"closed-peermem", func(tr tree) { tr.roce("9000", 5) }},
		{"closed-no-peermem", func(tree) {}},
	},
	"dgx-a100-nps4": {{"ready", func(tr tree) { tr.write("sys/class/infiniband/mlx5_4/ports/1/state", "1: DOWN") }}},
}

// fleetOf is how many nodes there are of a kind, and their usual state.
var fleetOf = map[string]struct {
	n     int
	state string
}{"dell-xe9680-h100": {120, "ready"}, "epyc-3gpu-phb-nccltests320": {50, "closed-peermem"}, "dgx-a100-nps4": {30, "ready"}}

// alikeText is what `kubectl gdr diff` prints of the fleet.
const alikeText = `8x H100 SXM5 80GB, 8x ConnectX-7, 4x ConnectX-6 Dx: 120 nodes, 4 differ
FACT             JOB   HERE                                     MOST                            NODES
device names     yes   mlx5_12 on rail 3                        mlx5_3 (119 of 120)             dell-001
active MTU       yes   1024 on mlx5_1, mlx5_2, mlx5_7, mlx5_8   4096 (119 of 120)               dell-002
number of NICs   yes   11, without mlx5_5                       12 (119 of 120)                 dell-003
level            -     NODE                                     PIX (119 of 120)                dell-003
findings         -     BeyondNCCLDefault GPUWithoutNearNIC      none (119 of 120)               dell-003
kernel           -     6.8.0-49-generic                         6.8.0-45-generic (119 of 120)   dell-004
not known: active MTU of 120 nodes

2x RTX A6000, 1x A100 PCIe 40GB, 2x ConnectX-4 Lx: 50 nodes, 2 differ
FACT        JOB   HERE                                                                MOST                                                                NODES
GID index   yes   5 on mlx5_0, mlx5_1                                                 3 (49 of 50)                                                        epyc-001
ready       -     false PeermemNotLoaded                                              true (49 of 50)                                                     epyc-002
findings    -     BeyondNCCLDefault ClosedDriver GPUWithoutNearNIC PeermemNotLoaded   BeyondNCCLDefault GPUWithoutNearNIC MemoryPeersMissing (49 of 50)   epyc-002
peermem     -     false                                                               true (49 of 50)                                                     epyc-002

8x A100 SXM4 40GB, 11x ConnectX-6: 30 nodes, 1 differ
FACT         JOB   HERE             MOST                NODES
port state   yes   DOWN on mlx5_4   ACTIVE (29 of 30)   dgx--001
findings     -     PortDown         none (29 of 30)     dgx--001
not known: active MTU of 30 nodes

200 nodes of 3 kinds: 193 alike, 7 differ
`

// TestAlike: 200 nodes of three kinds, of which seven differ. Agents publish a node of each
// kind and those that differ; the others have copies of the first.
func TestAlike(t *testing.T) {
	const pool, group = "pool", "alike-admins"
	for name, kind := range fleetOf {
		text := func(i int) string { return fmt.Sprintf("%s-%03d", name[:4], i) }
		publish := func(i int, state string, change func(tree)) {
			n := newNode(t, &shared, text(i))
			tr := tree{t, machine(t, name, state)}
			tr.write(kernelFile, "6.8.0-45-generic")
			tr.roce("9000", 3)
			change(tr)
			n.prepare(t, tr.dir).command(t, "--once")
			n.patch(t, `{"metadata": {"labels": {"`+pool+`": "alike"}}}`)
		}
		publish(0, kind.state, func(tree) {})
		for i, odd := range unlike[name] {
			publish(1+i, odd.state, odd.change)
		}
		features := shared.admin.nfd.NfdV1alpha1().NodeFeatures(agentName)
		first, err := features.Get(t.Context(), feature(text(0)).Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := 1 + len(unlike[name]); i < kind.n; i++ {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Name: text(i), Labels: map[string]string{pool: "alike"}, Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": "0"},
			}}
			if _, err := shared.admin.kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			copied := feature(text(i))
			copied.Labels, copied.Spec = map[string]string{}, first.Spec
			for key, value := range first.Labels {
				copied.Labels[key] = strings.ReplaceAll(value, text(0), text(i))
			}
			if _, err := features.Create(t.Context(), copied, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	kubeconfig := asGroup(t, group)
	const of = " -l pool=alike"
	rights := shipped(t, "examples/reader.yaml")
	grant(t, rights[:2], group)
	fails(t, kubeconfig, "kubectl gdr diff"+of, "you may not list the Nodes; bind the ClusterRole gdr-features-nodes of deploy/examples/reader.yaml: nodes is forbidden")
	grant(t, rights[2:], group)
	for _, how := range []string{"kubectl gdr diff --chunk-size=30", "gdr-features nodes diff"} {
		out, errs, status := shell(t, kubeconfig, how+of)
		if status != 2 || errs != "" {
			t.Errorf("%s: status %d, %s", how, status, errs)
		}
		if diff := cmp.Diff(alikeText, out); diff != "" {
			t.Errorf("%s (-want +got):\n%s", how, diff)
		}
	}
	t.Run("json", func(t *testing.T) { testAlikeJSON(t, kubeconfig, of) })
	if out, errs, status := shell(t, kubeconfig, "kubectl gdr diff dell-000 dell-050 dgx--000"); status != 0 || !strings.HasSuffix(out, "3 nodes of 2 kinds: 3 alike, 0 differ\n") {
		t.Errorf("nodes that are alike: status %d, %s%s", status, out, errs)
	}
	if out, errs, status := shell(t, kubeconfig, "kubectl gdr diff -o wide --no-headers dell-000 dell-002"); status != 2 || strings.Count(out, "active MTU") != 4 {
		t.Errorf("-o wide: status %d, %s%s", status, out, errs)
	}
	if out, errs, status := shell(t, kubeconfig, "kubectl gdr diff -l pool=none"); status != 0 || out != "" || errs != "no node matches\n" {
		t.Errorf("no node: status %d, %s%s", status, out, errs)
	}
	fails(t, kubeconfig, "kubectl gdr diff alike-z", "no agent has published a NodeFeature of alike-z")
}

func testAlikeJSON(t *testing.T, kubeconfig, of string) {
	t.Helper()
	out, errs, status := shell(t, kubeconfig, "kubectl gdr diff -o json"+of)
	if status != 2 || errs != "" {
		t.Fatalf("status %d, %s", status, errs)
	}
	var got struct {
		Alike bool
		Kinds []struct {
			Nodes       []string
			Differences []struct{ Node, Fact string }
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	var nodes []int
	var differ []string
	for _, k := range got.Kinds {
		nodes = append(nodes, len(k.Nodes))
		for _, d := range k.Differences {
			differ = append(differ, d.Node+" "+d.Fact)
		}
	}
	want := []string{
		"dell-001 names", "dell-002 mtu", "dell-003 nics", "dell-004 kernel",
		"epyc-001 gid", "epyc-002 ready", "dgx--001 port",
	}
	for _, w := range want {
		if !slices.Contains(differ, w) {
			t.Errorf("%s is not among %q", w, differ)
		}
	}
	if got.Alike || !slices.Equal(nodes, []int{120, 50, 30}) {
		t.Errorf("alike %v, kinds of %v nodes", got.Alike, nodes)
	}
}

// grant applies rights for another group than theirs, and waits until they count.
func grant(t *testing.T, objects []*unstructured.Unstructured, group string) {
	t.Helper()
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
			err = fmt.Errorf("the right to list %s does not count: %s", rule.Resources[0], review.Status.Reason)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
