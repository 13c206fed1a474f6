package e2e

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// change is a new state of a Node's labels, or of an NVIDIADriver's nodeSelector. Versions of
// all objects are of one sequence: that of etcd.
type change struct {
	version    int64
	node, name string // name of a driver
	values     map[string]string
}

// watchDrivers watches which NVIDIADrivers match each node, from now on. The function that it
// gives ends that and tells when a node, by its name, had another driver than it should, or
// none.
func (f *fleetOfTwo) watchDrivers(t *testing.T, want map[string]string) (lost func() []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	kube := f.admin.kube.CoreV1().Nodes()
	nodes, err := kube.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	resource, err := f.resource(shipped(t, "gpu-operator/nvidiadrivers.yaml")[0])
	if err != nil {
		t.Fatal(err)
	}
	drivers, err := resource.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var lock sync.Mutex
	var changes []change
	add := func(c change) {
		lock.Lock()
		defer lock.Unlock()
		changes = append(changes, c)
	}
	var ended sync.WaitGroup
	ended.Go(func() { follow(nodes, add) })
	ended.Go(func() { follow(drivers, add) })

	list, err := kube.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	from, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return func() []string {
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
		cancel()
		ended.Wait()
		return replay(changes, from, want)
	}
}

// follow adds what a watch of Nodes or NVIDIADrivers shows, until it ends.
func follow(w watch.Interface, add func(change)) {
	for e := range w.ResultChan() {
		c := change{}
		switch o := e.Object.(type) {
		case *corev1.Node:
			c = change{version: version(o), node: o.Name, values: o.Labels}
		case *unstructured.Unstructured:
			c = change{version: version(o), name: o.GetName()}
			c.values, _, _ = unstructured.NestedStringMap(o.Object, "spec", "nodeSelector")
		}
		if e.Type == watch.Deleted {
			c.values = nil
		}
		add(c)
	}
}

func version(o metav1.Object) int64 {
	v, _ := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	return v
}

// replay goes through the changes in their order and says what is wrong after any of those
// after from.
func replay(changes []change, from int64, want map[string]string) (wrong []string) {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.version, b.version) })
	nodes, drivers := map[string]map[string]string{}, map[string]map[string]string{}
	seen := 0
	for _, c := range changes {
		if c.node != "" {
			nodes[c.node] = c.values
		} else {
			drivers[c.name] = c.values
			if c.values == nil {
				delete(drivers, c.name)
			}
		}
		if c.version <= from {
			continue
		}
		seen++
		for node, driver := range want {
			if got := matching(nodes[node], drivers); !slices.Equal(got, []string{driver}) {
				wrong = append(wrong, fmt.Sprintf("at version %d the node %s matches %q, not %s", c.version, node, got, driver))
			}
		}
	}
	if seen == 0 {
		wrong = append(wrong, "the watch has seen nothing")
	}
	return wrong
}

// A node that loses its driver, even for a moment, is found, in whatever order the two watches
// show it.
func TestReplay(t *testing.T) {
	l := func(value string) map[string]string { return map[string]string{"l": value} }
	first := []change{{1, "", "yes", l("true")}, {2, "", "no", l("false")}, {3, "n", "", l("true")}}
	for _, c := range []struct {
		name    string
		changes []change
		wrong   int
	}{
		{"nothing changes that matters", []change{{5, "n", "", map[string]string{"l": "true", "m": "1"}}}, 0},
		{"the label is gone for a moment", []change{{5, "n", "", nil}, {6, "n", "", l("true")}}, 1},
		{"the other driver", []change{{5, "n", "", l("false")}}, 1},
		{"the driver selects something else first", []change{{6, "n", "", map[string]string{"l": "true", "m": "1"}}, {5, "", "yes", map[string]string{"m": "1"}}}, 1},
		{"the driver selects something else afterwards", []change{{6, "", "yes", map[string]string{"m": "1"}}, {5, "n", "", map[string]string{"l": "true", "m": "1"}}}, 0},
		{"the driver is deleted", []change{{5, "", "yes", nil}}, 1},
		{"nothing is seen", nil, 1},
	} {
		if got := replay(append(slices.Clone(first), c.changes...), 4, map[string]string{"n": "yes"}); len(got) != c.wrong {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
