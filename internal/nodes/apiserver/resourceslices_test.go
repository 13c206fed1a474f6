package apiserver

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gdr-features/internal/dradriver"
	"gdr-features/internal/nodes"
	"gdr-features/internal/nodes/resourceslice"
)

// published returns a slice as Kubernetes' own type writes it.
func published(t *testing.T, driver, node string, devices ...resourcev1.Device) string {
	t.Helper()
	s := resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-" + driver},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, Pool: resourcev1.ResourcePool{Name: "p", Generation: 3, ResourceSliceCount: 2}, Devices: devices,
		},
	}
	if node != "" {
		s.Spec.NodeName = &node
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every type of attribute is read; slices of other drivers, and of no one node, are left out.
func TestSlices(t *testing.T) {
	text, number, yes := "pci0000:10", int64(1)<<62, true
	device := resourcev1.Device{Name: "d", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"resource.kubernetes.io/pcieRoot": {StringValue: &text},
		"number":                          {IntValue: &number},
		"dra.net/rdma":                    {BoolValue: &yes},
		"version":                         {VersionValue: &text},
		"resource.kubernetes.io/numaNode": {IntValues: []int64{1, 0}},
		"strings":                         {StringValues: []string{"a", "b"}},
		"versions":                        {VersionValues: []string{"1.0.0"}},
		"bools":                           {BoolValues: []bool{true, false}},
	}}
	a := api{items: []string{
		published(t, "dra.net", "n1", device), published(t, "compute-domain.nvidia.com", "n1", device),
		published(t, "gpu.nvidia.com", "", device), published(t, "gpu.nvidia.com", "n2"),
	}}
	ask := func(q Query) []resourceslice.Slice {
		server := httptest.NewServer(&a)
		defer server.Close()
		all, err := Slices(t.Context(), &rest.Config{Host: server.URL}, q)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	want := []resourceslice.Slice{
		{Node: "n1", Driver: dradriver.Find("dra.net"), Pool: resourceslice.Pool{Name: "p", Generation: 3, Count: 2}, Devices: []resourceslice.Device{{Name: "d", Attributes: map[string]resourceslice.Values{
			"resource.kubernetes.io/pcieRoot": {"pci0000:10"}, "dra.net/number": {"4611686018427387904"}, "dra.net/rdma": {"true"},
			"dra.net/version": {"pci0000:10"}, "resource.kubernetes.io/numaNode": {"1", "0"}, "dra.net/strings": {"a", "b"},
			"dra.net/versions": {"1.0.0"}, "dra.net/bools": {"true", "false"},
		}}}},
		{Node: "n2", Driver: dradriver.Find("gpu.nvidia.com"), Pool: resourceslice.Pool{Name: "p", Generation: 3, Count: 2}},
	}
	unexported := cmpopts.IgnoreUnexported(resourceslice.Device{})
	if diff := cmp.Diff(want, ask(Query{Namespace: "gdr", PageSize: 3}), unexported); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:], ask(Query{Names: []string{"n2", "n3"}}), unexported); diff != "" {
		t.Errorf("by names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:], ask(Query{Names: []string{"n2"}}), unexported); diff != "" {
		t.Errorf("by name (-want +got):\n%s", diff)
	}
	const path = "/apis/resource.k8s.io/v1/resourceslices"
	if want := []string{path + "  3 ", path + "  3 3", path + "   ", path + " spec.nodeName=n2  "}; !slices.Equal(a.requests, want) {
		t.Errorf("requests %q, want %q", a.requests, want)
	}
}

func TestSlicesErrors(t *testing.T) {
	for status, want := range map[int]string{
		403: "you may not list the ResourceSlices; bind the ClusterRole gdr-features-slices of deploy/examples/slices.yaml",
		404: "the API server has no resource ResourceSlice; Kubernetes 1.34 and newer have it",
	} {
		server := httptest.NewServer(&api{status: status, failing: 100})
		all, err := Slices(t.Context(), &rest.Config{Host: server.URL}, Query{Namespace: "gdr"})
		server.Close()
		if err == nil || all != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, error %v", status, all, err)
		}
	}
}

// Any slice can be compared.
func FuzzSlice(f *testing.F) {
	f.Add(`{"spec": {"driver": "dra.net", "nodeName": "n", "pool": {"generation": 1}, "devices": [{"name": "d", "attributes": {
		"dra.net/pciAddress": {"string": "0000:01:00.0"}, "dra.net/rdma": {"bool": true}, "x": {"ints": [1]}, "y": null}}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var p page[slice]
		if json.Unmarshal([]byte(`{"items": [`+text+`]}`), &p) != nil {
			return
		}
		var all []resourceslice.Slice
		for i := range p.Items {
			if s, ok := p.Items[i].compared(); ok {
				all = append(all, s)
			}
		}
		var out strings.Builder
		compared := resourceslice.Compare(nil, all)
		if err := resourceslice.Table(&out, compared, nodes.Style{}); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(out.String(), "\n"); lines != len(compared) {
			t.Errorf("%d lines for %d nodes: %q", lines, len(compared), out.String())
		}
	})
}
