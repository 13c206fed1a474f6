package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nfdv1alpha1 "sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

// A driver is loaded and unloaded five times a second for twenty seconds. No label changes
// meanwhile, since no state lasts as long as --settle. Once it stays away the state labels say
// so, and the hardware labels have never changed.
func TestReloads(t *testing.T) {
	slow(t)
	t.Parallel()
	n := newNode(t, &shared, "reloads")
	tree := machine(t, "dell-xe9680-h100", "ready")
	a := n.run(t, tree, "--settle=10s")
	with := labelsOf(t, tree)
	n.expect(t, with)
	d := newDriver(t, tree)
	d.toggle(t)
	without := labelsOf(t, tree)
	d.toggle(t)
	hardware := map[string]string{}
	for name, value := range with {
		if without[name] == value {
			hardware[name] = value
		}
	}
	if _, ok := hardware[prefix+"gpudirect.rdma"]; ok || hardware[prefix+"gpudirect.rdma.capable"] == "" || hardware[prefix+"gdr.level"] == "" {
		t.Fatalf("with the driver %v, without %v", with, without)
	}

	moved := a.changes(t, hardware)
	stateMoved := a.changes(t, with)
	s := a.strained(t, "a driver that reloads")
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for range 101 { // an odd number: it is away then
		<-tick.C
		d.toggle(t)
	}
	if changed := stateMoved(); len(changed) > 0 {
		t.Errorf("while the driver reloads, labels are %v", changed[0])
	}
	s.mend()
	s.recovers(t, 20, 6, func(ctx context.Context) error { return n.has(ctx, without) })
	if changed := moved(); len(changed) > 0 {
		t.Errorf("hardware labels moved: %v", changed[0])
	}
}

// driver is the GPUs' driver of the machine in a tree.
type driver struct {
	tree  string
	links []string
	away  bool
}

func newDriver(t *testing.T, tree string) *driver {
	t.Helper()
	d := &driver{tree: tree}
	all, err := filepath.Glob(filepath.Join(tree, "sys/bus/pci/devices/*/driver"))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range all {
		if to, err := os.Readlink(link); err == nil && filepath.Base(to) == "nvidia" {
			d.links = append(d.links, link)
		}
	}
	if len(d.links) == 0 {
		t.Fatal("no GPU has a driver")
	}
	return d
}

// toggle unbinds the GPUs and removes nvidia_peermem, or undoes that, in several steps.
func (d *driver) toggle(t *testing.T) {
	t.Helper()
	pairs := [][2]string{{filepath.Join(d.tree, "sys/module/nvidia_peermem"), filepath.Join(d.tree, "away")}}
	for _, link := range d.links {
		pairs = append(pairs, [2]string{link, link + ".away"})
	}
	for _, pair := range pairs {
		from, to := pair[0], pair[1]
		if d.away {
			from, to = to, from
		}
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	d.away = !d.away
}

// changes watches the agent's NodeFeature. The function that it gives ends that and returns all
// states in which these labels were not as given.
func (a *agent) changes(t *testing.T, labels map[string]string) (seen func() []map[string]string) {
	t.Helper()
	now, err := a.published(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	one := metav1.SingleObject(metav1.ObjectMeta{Name: now.Name, ResourceVersion: now.ResourceVersion})
	w, err := a.cluster.admin.nfd.NfdV1alpha1().NodeFeatures(agentName).Watch(ctx, one)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var wrong []map[string]string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			now, ok := e.Object.(*nfdv1alpha1.NodeFeature)
			if !ok {
				continue
			}
			for name, value := range labels {
				if now.Spec.Labels[name] != value {
					wrong = append(wrong, now.Spec.Labels)
					break
				}
			}
		}
	}()
	return func() []map[string]string {
		cancel()
		<-ended
		return wrong
	}
}
