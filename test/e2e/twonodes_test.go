package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/job"
)

// torchrun is what the test has in its place. Files stand for the network: $NET has one for each
// address and port that somebody listens at. The process that hosts the rendezvous must be at the
// address that the others look for, and as many must come as --nnodes says.
const torchrun = `#!/bin/sh
set -eu
: "${NCCL_IB_HCA:?}"
conf= endpoint= nodes=
for arg; do
	case $arg in
	--rdzv-conf=*) conf=,${arg#*=}, ;;
	--rdzv-endpoint=*) endpoint=${arg#*=} ;;
	--nnodes=*) nodes=${arg#*=} ;;
	esac
done
address=$(getent hosts "${endpoint%:*}" | cut -d' ' -f1)
socket=$NET/$address:${endpoint##*:}
case $conf in
*,is_host=true,*) [ "$address" = "$POD_IP" ] && : >"$socket" ;;
*,is_host=false,*) while [ ! -e "$socket" ]; do sleep 0.05; done ;;
*) exit 3 ;;
esac
echo "$POD_IP" >>"$socket"
until [ "$(sort -u "$socket" | wc -l)" = "$nodes" ]; do sleep 0.05; done
`

// getent is what the test has in its place: it knows the names that the cluster's DNS would.
const getent = `#!/bin/sh
[ "$1" = hosts ] && grep " $2\$" "$NET/hosts"
`

// TestTwoNodes: the ranks of the example for two nodes find each other. Job and EndpointSlice
// controller are real; the test is kubelet, DNS and torchrun.
func TestTwoNodes(t *testing.T) {
	const namespace = "two-nodes"
	createNamespace(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, "default")
	startControllers(t, namespace)
	objects := shipped(t, "examples/nccl.yaml")
	for _, o := range objects {
		o.SetNamespace(namespace)
	}
	if err := shared.apply(t.Context(), objects); err != nil {
		t.Fatal(err)
	}

	kube := shared.admin.kube
	network, bin := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"torchrun": torchrun, "getent": getent} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var pods []corev1.Pod
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		list, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if pods = list.Items; err == nil && len(pods) != 2 {
			err = fmt.Errorf("%d Pods", len(pods))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}

	// As kubelet does, when the initContainer has run.
	status := func(pod *corev1.Pod, s corev1.PodStatus) {
		t.Helper()
		patch, err := json.Marshal(corev1.Pod{Status: s})
		if err == nil {
			_, err = kube.CoreV1().Pods(namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ranks := map[string]*exec.Cmd{}
	nodes := fleet(t)
	for i := range pods {
		pod := &pods[i]
		expectPicked(t, pod.Name, pod.Spec, nodes, "ready")
		address := fmt.Sprintf("192.0.2.%d", 10+i)
		status(pod, corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}})
		ranks[address] = rank(t, pod)
		ranks[address].Env = append(ranks[address].Env, "NET="+network, "POD_IP="+address, "PATH="+bin+":"+os.Getenv("PATH"))
	}
	hosts := hostNames(t, namespace, "gdr-nccl", len(pods))
	if err := os.WriteFile(filepath.Join(network, "hosts"), []byte(hosts), 0o644); err != nil {
		t.Fatal(err)
	}

	ended := make(chan error)
	for address, c := range ranks {
		go func() {
			out, err := c.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%s: %w\n%s\n%s", address, err, out, hosts)
			}
			ended <- err
		}()
	}
	var failures error
	for range ranks {
		failures = errors.Join(failures, <-ended)
	}
	if failures != nil {
		t.Fatal(failures)
	}
	for i := range pods {
		status(&pods[i], corev1.PodStatus{Phase: corev1.PodSucceeded})
	}
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		job, err := kube.BatchV1().Jobs(namespace).Get(ctx, "gdr-nccl", metav1.GetOptions{})
		if err == nil && !slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobComplete }) {
			err = fmt.Errorf("the Job is not complete: %v", job.Status)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// startControllers starts two parts of kube-controller-manager for a namespace: that for Jobs, and
// that for EndpointSlices. They end with the test.
func startControllers(t *testing.T, namespace string) {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{})) // which logs nothing
	t.Cleanup(cancel)
	factory := informers.NewSharedInformerFactoryWithOptions(shared.admin.kube, 0, informers.WithNamespace(namespace))
	core := factory.Core().V1()
	jobs, err := job.NewController(ctx, core.Pods(), factory.Batch().V1().Jobs(), shared.admin.kube)
	if err != nil {
		t.Fatal(err)
	}
	slices := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(), factory.Discovery().V1().EndpointSlices(), 100, shared.admin.kube, 0)
	factory.Start(ctx.Done())
	for _, run := range []func(context.Context, int){jobs.Run, slices.Run} {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			run(ctx, 2)
		}()
		t.Cleanup(func() {
			cancel()
			<-ended
		})
	}
}

// rank returns the command of a Pod of a Job, with the file that its initContainer writes.
func rank(t *testing.T, pod *corev1.Pod) *exec.Cmd {
	t.Helper()
	main := pod.Spec.Containers[0]
	index := slices.IndexFunc(main.Env, func(e corev1.EnvVar) bool { return e.Name == "JOB_COMPLETION_INDEX" })
	if index < 0 {
		t.Fatalf("the Job controller gives the Pod no index: %v", main.Env)
	}
	written := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(written, printedFile(t, &pod.Spec), 0o644); err != nil {
		t.Fatal(err)
	}
	args := pod.Spec.InitContainers[0].Args
	script := strings.ReplaceAll(main.Command[2], args[slices.Index(args, "-f")+1], written)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, main.Command[0], main.Command[1], script)
	c.Env = []string{"JOB_COMPLETION_INDEX=" + pod.Labels[batchv1.JobCompletionIndexAnnotation]}
	return c
}

// hostNames returns the names that the cluster's DNS has for the Pods of a headless Service, as lines
// of /etc/hosts.
func hostNames(t *testing.T, namespace, service string, want int) string {
	t.Helper()
	addresses := map[string]string{}
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		list, err := shared.admin.kube.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
		if err != nil {
			return err
		}
		for _, slice := range list.Items {
			for _, e := range slice.Endpoints {
				if e.Hostname != nil {
					addresses[*e.Hostname+"."+service] = e.Addresses[0]
				}
			}
		}
		if len(addresses) != want {
			return fmt.Errorf("the Service has the names %v", addresses)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var hosts strings.Builder
	for _, name := range slices.Sorted(maps.Keys(addresses)) {
		fmt.Fprintf(&hosts, "%s %s\n", addresses[name], name)
	}
	return hosts.String()
}
