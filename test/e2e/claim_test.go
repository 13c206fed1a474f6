package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// claimMachines are the machines of the nodes that take Pods. Those of the names dra-free- are
// for TestScheduler/aligned.
var claimMachines = map[string]string{
	"dra-hgx":      "dell-xe9680-h100",
	"dra-a40":      "a40-8gpu-2cx7-nccl1343",
	"dra-gb300":    "gb300-datadirect",
	"dra-oke":      "oke-gb200-v3",
	"dra-aks":      "aks-gb300",
	"dra-kvm":      "kvm-h200-flat-passthrough",
	"dra-p4d":      "aws-p4d-a100",
	"dra-epyc":     "epyc-3gpu-phb-nccltests320",
	"dra-bnxt":     "bnxt-nvidia-phb",
	"dra-none":     "numa-far",
	"dra-pollara":  "amd-mi300x-pollara",
	"dra-aks-amd":  "aks-mi300x",
	"dra-free-hgx": "dell-xe9680-h100",
	"dra-free-oke": "oke-gb200-v3",
}

// claimant is a node of a machine, with what DRA drivers publish of it.
type claimant struct {
	*node
	machine string
	agent   *agent
	labels  map[string]string
	// addresses are the PCI addresses of the devices that are published, by driver and name.
	addresses map[string]string
	// devices are those that are published and may be one of a pair.
	devices []device
}

// device is a GPU, or a NIC with an RDMA device, as its driver publishes it.
type device struct {
	gpu        bool
	address    string
	attributes map[resourcev1.QualifiedName]resourcev1.DeviceAttribute
}

// value is that of a standard attribute, "" where the driver publishes none.
func (d *device) value(attribute string) string {
	a, ok := d.attributes[resourcev1.QualifiedName("resource.kubernetes.io/"+attribute)]
	switch {
	case !ok:
		return ""
	case a.IntValue != nil:
		return strconv.FormatInt(*a.IntValue, 10)
	default:
		return *a.StringValue
	}
}

// match is how many pairs with an equal attribute there can be at one time, and the level of the
// farthest of them.
func (c *claimant) match(t *testing.T, attribute string) (pairs int, level string) {
	t.Helper()
	at := levels(t, c.agent.tree)
	of := map[string][2][]string{} // addresses of GPUs and NICs, by the value
	for i := range c.devices {
		d := &c.devices[i]
		if value := d.value(attribute); value != "" {
			both, kind := of[value], 1
			if d.gpu {
				kind = 0
			}
			both[kind] = append(both[kind], d.address)
			of[value] = both
		}
	}
	for _, both := range of {
		pairs += min(len(both[0]), len(both[1]))
		for _, gpu := range both[0] {
			for _, nic := range both[1] {
				if l := at[[2]string{gpu, nic}]; level == "" || slices.Index(order, l) > slices.Index(order, level) {
					level = l
				}
			}
		}
	}
	return pairs, level
}

// align is the value of the label gdr.align.
func (c *claimant) align() string { return c.labels[prefix+"gdr.align"] }

// newClaimant creates a node of a machine. The agent that runs there gives it its labels.
func newClaimant(t *testing.T, name, of string) *claimant {
	t.Helper()
	c := &claimant{node: newNode(t, &shared, name), machine: of, addresses: map[string]string{}}
	c.makeReady(t)
	c.agent = c.run(t, machine(t, of, "ready"))
	c.labels = labelsOf(t, c.agent.tree)
	c.publish(t)
	return c
}

// makeReady gives the node room for Pods, as its kubelet does, and takes away the taint of a new
// node, as the node controller does then.
func (c *claimant) makeReady(t *testing.T) {
	t.Helper()
	c.patch(t, `{"spec":{"taints":null}}`)
	c.patch(t, `{"status":{"allocatable":{"pods":"110"}}}`, "status")
}

// publish creates the ResourceSlices.
func (c *claimant) publish(t *testing.T) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), program("slices"), c.agent.tree, c.name).Output()
	if err != nil {
		t.Fatalf("slices: %v", err)
	}
	var list resourcev1.ResourceSliceList
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		spec := &list.Items[i].Spec
		for _, d := range spec.Devices {
			for _, name := range []resourcev1.QualifiedName{"resource.kubernetes.io/pciBusID", "dra.net/pciAddress", "pciAddr"} {
				if a, ok := d.Attributes[name]; ok {
					c.addresses[spec.Driver+"/"+d.Name] = *a.StringValue
					rdma := d.Attributes["dra.net/rdma"].BoolValue
					if gpu := spec.Driver != "dra.net"; gpu || rdma != nil && *rdma {
						c.devices = append(c.devices, device{gpu: gpu, address: *a.StringValue, attributes: d.Attributes})
					}
				}
			}
		}
		if _, err := shared.admin.kube.ResourceV1().ResourceSlices().Create(t.Context(), &list.Items[i], metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
			t.Fatal(err)
		}
	}
}

// template creates the template that `gdr-features claim` prints on the machine, under a name of
// its own.
func (c *claimant) template(t *testing.T) *resourcev1.ResourceClaimTemplate {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program("gdr-features"), "claim", "--root", c.agent.tree)
	text, err := cmd.Output()
	status := 0
	if c.align() == "none" {
		status = 2
	}
	if cmd.ProcessState.ExitCode() != status {
		t.Fatalf("gdr-features claim: %v, not status %d", err, status)
	}
	var template resourcev1.ResourceClaimTemplate
	if err := yaml.UnmarshalStrict(text, &template); err != nil {
		t.Fatal(err)
	}
	return create(t, c.name, &template)
}

// pair is the addresses of the GPU and the NIC that a Pod has been given.
func (c *claimant) pair(t *testing.T, pod *corev1.Pod) (gpu, nic string) {
	t.Helper()
	resources := shared.admin.kube.ResourceV1()
	now, err := shared.admin.kube.CoreV1().Pods(claims).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil || len(now.Status.ResourceClaimStatuses) != 1 {
		t.Fatalf("claims of %s: %v, error %v", pod.Name, now.Status.ResourceClaimStatuses, err)
	}
	claim, err := resources.ResourceClaims(claims).Get(t.Context(), *now.Status.ResourceClaimStatuses[0].ResourceClaimName, metav1.GetOptions{})
	if err != nil || claim.Status.Allocation == nil || len(claim.Status.Allocation.Devices.Results) != 2 {
		t.Fatalf("allocation of %s: %+v, error %v", pod.Name, claim.Status.Allocation, err)
	}
	for _, d := range claim.Status.Allocation.Devices.Results {
		if address := c.addresses[d.Driver+"/"+d.Device]; d.Request == "gpu-0" {
			gpu = address
		} else {
			nic = address
		}
	}
	return gpu, nic
}

// levels are those that `gdr-features topo` prints, by the addresses of GPU and NIC.
func levels(t *testing.T, tree string) map[[2]string]string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), program("gdr-features"), "topo", "-o", "json", "--root", tree).Output()
	if err != nil {
		t.Fatal(err)
	}
	var topo struct {
		Pairs []struct{ GPU, NIC, Level string }
	}
	if err := json.Unmarshal(text, &topo); err != nil {
		t.Fatal(err)
	}
	levels := map[[2]string]string{}
	for _, p := range topo.Pairs {
		levels[[2]string{p.GPU, p.NIC}] = p.Level
	}
	return levels
}

// order is that of the levels, the nearest first.
var order = []string{"PIX", "PXB", "PHB", "NODE", "SYS"}

// given and refused count the Pods of all machines.
var given, refused atomic.Int64

// give creates as many Pods as can get a pair, and one more. Each pair must be at the promised
// level or nearer. It returns the Pods.
func (c *claimant) give(t *testing.T, template *resourcev1.ResourceClaimTemplate, pairs int, promised string) (pods []*corev1.Pod) {
	t.Helper()
	for range pairs + 1 {
		pods = append(pods, pod(t, template, map[string]string{corev1.LabelHostname: c.name}))
	}
	at, got := levels(t, c.agent.tree), []string{}
	for i, node := range scheduled(t, pods, pairs, noDevices) {
		if node == "" {
			refused.Add(1)
			continue
		}
		given.Add(1)
		gpu, nic := c.pair(t, pods[i])
		level := at[[2]string{gpu, nic}]
		if got = append(got, level); !slices.Contains(order, level) || slices.Index(order, level) > slices.Index(order, promised) {
			t.Errorf("%s was given %s and %s, at %q; promised is %s", pods[i].Name, gpu, nic, level, promised)
		}
	}
	t.Logf("%s: pairs at %v; promised is %q", template.Name, got, promised)
	return pods
}

// takeBack deletes Pods and, as the garbage collector does, their claims. It waits until the
// devices are free.
func takeBack(t *testing.T, pods []*corev1.Pod) {
	t.Helper()
	now := int64(0)
	for _, p := range pods {
		if err := shared.admin.kube.CoreV1().Pods(claims).Delete(t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Fatal(err)
		}
	}
	resources := shared.admin.kube.ResourceV1().ResourceClaims(claims)
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		all, err := resources.List(ctx, metav1.ListOptions{})
		for i := range all.Items {
			claim := &all.Items[i]
			if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return metav1.IsControlledBy(claim, p) }) {
				continue
			}
			err = fmt.Errorf("%s is still there", claim.Name)
			if claim.DeletionTimestamp == nil {
				err = errors.Join(err, resources.Delete(ctx, claim.Name, metav1.DeleteOptions{}))
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// claim tests the claim that is printed for a machine, and those by attributes that do not
// serve all of its GPUs.
func (c *claimant) claim(t *testing.T) {
	template := c.template(t)
	class := template.Spec.Spec.Devices.Requests[0].Exactly.DeviceClassName
	way := "address"
	if constraints := template.Spec.Spec.Devices.Constraints; len(constraints) > 0 {
		way = strings.TrimPrefix(string(*constraints[0].MatchAttribute), "resource.kubernetes.io/")
	}
	if way == "address" != (c.align() == "none") || way != "address" && way != c.align() {
		t.Errorf("gdr.align is %s, and the claim is by %s", c.align(), way)
	}
	for _, attribute := range []string{"pcieRoot", "numaNode"} {
		if attribute == way {
			break
		}
		// Some GPUs may have a NIC with the same attribute.
		pairs, level := c.match(t, attribute)
		takeBack(t, c.give(t, create(t, c.name+"-by-"+strings.ToLower(attribute), byAttribute(class, attribute)), pairs, level))
	}
	pairs := 1 // by address it names two devices
	if way != "address" {
		pairs, _ = c.match(t, way)
	}
	c.give(t, template, pairs, template.Annotations["gdr.level"])
}

// aligned tests that the label gdr.align chooses nodes on which a claim can be met.
func aligned(t *testing.T, claimants []*claimant) {
	for _, attribute := range []string{"pcieRoot", "numaNode"} {
		template := create(t, "aligned-"+strings.ToLower(attribute), byAttribute("gpu.nvidia.com", attribute))
		label := map[string]string{prefix + "gdr.align": attribute}
		node := scheduled(t, []*corev1.Pod{pod(t, template, label)}, 1, "")[0]
		i := slices.IndexFunc(claimants, func(c *claimant) bool { return c.name == node })
		if i < 0 || claimants[i].align() != attribute {
			t.Errorf("a claim by %s is met on node %s", attribute, node)
		}
		label[corev1.LabelHostname] = "dra-none"
		scheduled(t, []*corev1.Pod{pod(t, template, label)}, 0, noNode)
	}
}

// A real kube-scheduler gives the claims that `gdr-features claim` prints pairs at the level
// promised, as many as the published attributes allow, and no more.
func TestScheduler(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	createNamespace(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: claims}}, "default")
	for name, expression := range classes {
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}},
		}}
		if _, err := shared.admin.kube.ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	startScheduler(t)
	var all []*claimant
	for name, of := range claimMachines {
		all = append(all, newClaimant(t, name, of))
	}
	for _, c := range all {
		c.expect(t, c.labels)
		if err := c.agent.process.stop(); err != nil { // other tests need the CPUs
			t.Fatal(err)
		}
	}
	prepared, tested := time.Now(), 0
	t.Run("machines", func(t *testing.T) {
		for _, c := range all {
			if strings.HasPrefix(c.name, "dra-free-") { // for aligned
				continue
			}
			tested++
			t.Run(c.machine, func(t *testing.T) {
				t.Parallel()
				c.claim(t)
			})
		}
	})
	aligned(t, all)
	t.Logf("%d machines, %d pairs at the promised level or nearer, %d Pods that stayed Pending; %v until all nodes had labels and slices, then %v",
		tested, given.Load(), refused.Load(), prepared.Sub(begun).Round(time.Millisecond), time.Since(prepared).Round(time.Millisecond))
}
