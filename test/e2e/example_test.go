package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// networkAttachments is the resource of Multus: k8snetworkplumbingwg/network-attachment-definition-client,
// artifacts/networks-crd.yaml.
const networkAttachments = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: network-attachment-definitions.k8s.cni.cncf.io}
spec:
  group: k8s.cni.cncf.io
  scope: Namespaced
  names: {plural: network-attachment-definitions, singular: network-attachment-definition, kind: NetworkAttachmentDefinition}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {config: {type: string}}}}}}
`

const network = `
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata:
  name: ib-rails
  namespace: %s
  annotations: {k8s.v1.cni.cncf.io/resourceName: openshift.io/ib}
spec: {config: '{"type": "ib-sriov"}'}
`

// exampleNodes are nodes as clusters have them: what they offer, and their taints.
var exampleNodes = map[string]struct {
	allocatable, taints string
	want                []string
}{
	"shared": {`"nvidia.com/gpu": "8", "rdma/hca_shared_devices_a": "63"`, `[]`, []string{"nvidia.com/gpu: 8", "rdma/hca_shared_devices_a: 1"}},
	"sriov": {
		`"nvidia.com/gpu": "4", "openshift.io/ib": "4"`, `[{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]`,
		[]string{"openshift.io/ib: 4", `networks: "ib-rails,ib-rails,ib-rails,ib-rails"`, `value: "present"`},
	},
	"efa":     {`"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"`, `[{"key": "pool", "value": "p5", "effect": "NoExecute"}]`, []string{"vpc.amazonaws.com/efa: 32", "effect: NoExecute"}},
	"gke":     {`"nvidia.com/gpu": "8", "networking.gke.io.networks/rdma-0": "1", "networking.gke.io.networks/rdma-1": "1"`, `[]`, []string{"networking.gke.io.networks/rdma-1: 1"}},
	"amd":     {`"amd.com/gpu": "8", "rdma/hca": "100"`, `[{"key": "amd.com/gpu", "effect": "NoSchedule"}]`, []string{"amd.com/gpu: 8"}},
	"nothing": {`"nvidia.com/gpu": "8"`, `[]`, []string{"TODO: RDMA devices: these nodes offer none"}},
}

// TestExample: what kubectl gdr example prints applies on the API server, for nodes as clusters
// have them. A TODO is a comment, so the file applies before it is filled in, too.
func TestExample(t *testing.T) {
	slow(t)
	t.Parallel()
	install(t, "mpijobs.yaml")
	applyText(t, networkAttachments)
	createNamespace(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "example-jobs"}}, "default")
	applyText(t, fmt.Sprintf(network, "example-jobs"))
	kubeconfig, err := shared.kubeconfig(t.TempDir(), "example", shared.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	list, _, _ := shell(t, kubeconfig, "kubectl gdr example")
	names := strings.Fields(list)
	if len(names) != 9 {
		t.Fatalf("examples %q", names)
	}
	applied := 0
	for kind, tt := range exampleNodes {
		n := newNode(t, &shared, "example-"+kind)
		n.patch(t, fmt.Sprintf(`{"metadata": {"labels": {"example": %q, "feature.node.kubernetes.io/gpudirect.rdma": "true", "feature.node.kubernetes.io/gdr.level": "PIX", "feature.node.kubernetes.io/gdr.rate": "400"}}, "spec": {"taints": %s}}`, kind, tt.taints))
		n.patch(t, fmt.Sprintf(`{"status": {"allocatable": {"cpu": "100", "memory": "2000Gi", "pods": "110", %s}}}`, tt.allocatable), "status")
		for _, name := range names {
			out, errs, status := shell(t, kubeconfig, "kubectl gdr example "+name+" -l example="+kind+",gdr.level=PIX --job-namespace example-jobs")
			if status != 0 || errs != "" {
				t.Fatalf("%s, %s: status %d, %s", kind, name, status, errs)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s, %s lacks %s", kind, name, want)
				}
			}
			objects, err := decode([]byte(out))
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects {
				o.SetNamespace("example-jobs")
			}
			if err := shared.apply(t.Context(), objects, metav1.DryRunAll); err != nil {
				t.Errorf("%s, %s: %v\n%s", kind, name, err, out)
			}
			applied += len(objects)
		}
	}
	t.Logf("%d objects applied for %d kinds of nodes", applied, len(exampleNodes))
	fails(t, kubeconfig, "kubectl gdr example nccl -l example=none", "no node that is ready matches")
	fails(t, kubeconfig, "kubectl gdr example nccl2", "no example \"nccl2\": there are env-job, mpi")
}

func applyText(t *testing.T, text string) {
	t.Helper()
	objects, err := decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := shared.apply(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
}

// TestLevelsOfExamples: the Pods of each example that names a level of Pod Security at its head are
// allowed at that level, and refused at the next stricter one.
func TestLevelsOfExamples(t *testing.T) {
	t.Parallel()
	stricter := map[string]string{"privileged": "baseline", "baseline": "restricted"}
	for level := range map[string]bool{"privileged": true, "baseline": true, "restricted": true} {
		createNamespace(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "level-" + level, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level},
		}}, "default")
	}
	says := regexp.MustCompile(`(?m)^# The namespace needs Pod Security (privileged|baseline|restricted)`)
	pods := 0
	kubeconfig, err := shared.kubeconfig(t.TempDir(), "levels", shared.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	list, _, _ := shell(t, kubeconfig, "ls ../../deploy/examples/*.yaml ../../deploy/examples/*/*.yaml")
	for file := range strings.FieldsSeq(list) {
		text, _, _ := shell(t, kubeconfig, "cat "+file)
		objects, err := decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			specs := podSpecs(t, o.Object)
			if o.GetKind() == "Pod" {
				specs = append(specs, convert[corev1.Pod](t, o).Spec)
			}
			for i, spec := range specs {
				level := says.FindStringSubmatch(text)
				if level == nil {
					t.Errorf("%s has Pods and names no level", file)
					continue
				}
				pods++
				spec.PriorityClassName = "" // there is none before the file is applied
				pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", o.GetName(), i)}, Spec: spec}
				for _, try := range []struct {
					level   string
					allowed bool
				}{{level[1], true}, {stricter[level[1]], false}} {
					if try.level == "" || !try.allowed && level[1] == "privileged" && !strings.Contains(fmt.Sprint(spec), "IPC_LOCK") {
						continue // a launcher beside the workers that need the level
					}
					_, err := shared.admin.kube.CoreV1().Pods("level-"+try.level).Create(t.Context(), &pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
					if try.allowed != (err == nil) {
						t.Errorf("%s, %s in a %s namespace: %v", file, pod.Name, try.level, err)
					}
				}
			}
		}
	}
	t.Logf("%d Pods of examples", pods)
}
