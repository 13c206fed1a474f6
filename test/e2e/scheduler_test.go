package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/resourceclaim"
)

const (
	// schedulerName is the scheduler of our Pods; other tests' Pods name another.
	schedulerName = "gdr-scheduler"
	// claims is the namespace of the Pods and their claims.
	claims = "claims"
)

// classes are DeviceClasses: NVIDIA's and AMD's as their drivers bring them, dranet's as its
// own tests define it, since it brings none.
//   - kubernetes-sigs/dra-driver-nvidia-gpu 9593204, deployments/helm, deviceclass-gpu.yaml
//   - ROCm/k8s-gpu-dra-driver 2622427, helm-charts-k8s/templates/deviceclass.yaml
//   - kubernetes-sigs/dranet f258477, tests/manifests/deviceclass.yaml
var classes = map[string]string{
	"gpu.nvidia.com": "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'",
	"gpu.amd.com":    "device.driver == 'gpu.amd.com'",
	"dra.net":        `device.driver == "dra.net"`,
}

// startScheduler starts kube-scheduler and the controller that makes claims of their
// templates, which is a part of kube-controller-manager. Both end with the test.
func startScheduler(t *testing.T) {
	t.Helper()
	kubeconfig, err := shared.kubeconfig(t.TempDir(), "scheduler", shared.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "scheduler.yaml")
	text := fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: %q}
leaderElection: {leaderElect: false}
profiles: [{schedulerName: %s}]
`, kubeconfig, schedulerName)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	scheduler, err := start(shared.dir, "kube-scheduler", nil, "--config="+config, "--secure-port=0")
	if err != nil {
		t.Fatal(err)
	}
	stopAfter(t, scheduler)

	factory := informers.NewSharedInformerFactory(shared.admin.kube, 0)
	claims := factory.Resource().V1()
	controller, err := resourceclaim.NewController(klog.Logger{}, resourceclaim.Features{}, shared.admin.kube,
		factory.Core().V1().Pods(), claims.ResourceClaims(), claims.ResourceClaimTemplates())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{})) // which logs nothing
	ended := make(chan struct{})
	factory.Start(ctx.Done())
	go func() {
		defer close(ended)
		controller.Run(ctx, 4)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		factory.Shutdown()
	})
}

// create creates a template under a name.
func create(t *testing.T, name string, template *resourcev1.ResourceClaimTemplate) *resourcev1.ResourceClaimTemplate {
	t.Helper()
	template = template.DeepCopy()
	template.Name = name
	template, err := shared.admin.kube.ResourceV1().ResourceClaimTemplates(claims).Create(t.Context(), template, metav1.CreateOptions{FieldValidation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// pod creates a Pod with a claim of the template, for nodes with these labels.
func pod(t *testing.T, template *resourcev1.ResourceClaimTemplate, selector map[string]string) *corev1.Pod {
	t.Helper()
	pod, err := shared.admin.kube.CoreV1().Pods(claims).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: template.Name + "-"},
		Spec: corev1.PodSpec{
			SchedulerName: schedulerName, NodeSelector: selector,
			ResourceClaims: []corev1.PodResourceClaim{{Name: "pair", ResourceClaimTemplateName: &template.Name}},
			Containers: []corev1.Container{{
				Name: "job", Image: "job", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "pair"}}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// decision returns the node of a Pod, or "" and why it stays Pending. It is an error as long as the
// scheduler has decided nothing.
func decision(ctx context.Context, pod *corev1.Pod) (node, why string, err error) {
	now, err := shared.admin.kube.CoreV1().Pods(claims).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil || now.Spec.NodeName != "" {
		return now.Spec.NodeName, "", err
	}
	for _, c := range now.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return "", c.Message, nil
		}
	}
	return "", "", fmt.Errorf("%s: no decision: %v", pod.Name, now.Status.Conditions)
}

// scheduled waits until as many of the Pods as wanted have a node, and returns the nodes. The
// others must stay Pending for the reason.
func scheduled(t *testing.T, pods []*corev1.Pod, want int, reason string) (nodes []string) {
	t.Helper()
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		nodes = nil
		have := 0
		for _, p := range pods {
			node, why, err := decision(ctx, p)
			if err == nil && node == "" && !strings.Contains(why, reason) {
				err = fmt.Errorf("%s stays Pending because %q", p.Name, why)
			}
			if err != nil {
				return err
			}
			if nodes = append(nodes, node); node != "" {
				have++
			}
		}
		if have != want {
			return fmt.Errorf("%d of the Pods have a node, want %d", have, want)
		}
		return nil
	}, shared.processes()...); err != nil {
		t.Fatal(err)
	}
	return nodes
}

const (
	noDevices = "cannot allocate all claims"
	noNode    = "didn't match Pod's node affinity/selector"
)

// byAttribute is a claim of a pair with one attribute in common, whatever the node.
func byAttribute(gpuClass, attribute string) *resourcev1.ResourceClaimTemplate {
	request := func(name, class, expression string) resourcev1.DeviceRequest {
		return resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: class, Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}},
		}}
	}
	match := resourcev1.FullyQualifiedName("resource.kubernetes.io/" + attribute)
	return &resourcev1.ResourceClaimTemplate{Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests:    []resourcev1.DeviceRequest{request("gpu-0", gpuClass, "true"), request("nic-0", "dra.net", `device.attributes["dra.net"].?rdma.orValue(false)`)},
		Constraints: []resourcev1.DeviceConstraint{{MatchAttribute: &match}},
	}}}}
}
