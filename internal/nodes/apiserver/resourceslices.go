package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gdr-features/internal/dradriver"
	"gdr-features/internal/nodes/resourceslice"
)

var resourceSlices = resource{
	version: schema.GroupVersion{Group: "resource.k8s.io", Version: "v1"}, name: "resourceslices", kind: "ResourceSlice", clusterWide: true,
	right:  "bind the ClusterRole gdr-features-slices of deploy/examples/slices.yaml",
	source: "Kubernetes 1.34 and newer have it",
}

// slice is the part of a ResourceSlice (k8s.io/api, resource/v1) that is compared.
type slice struct {
	Spec struct {
		Driver string `json:"driver"`
		Pool   struct {
			Name       string `json:"name"`
			Generation int64  `json:"generation"`
			Count      int64  `json:"resourceSliceCount"`
		} `json:"pool"`
		NodeName string `json:"nodeName"`
		Devices  []struct {
			Name       string            `json:"name"`
			Attributes map[string]values `json:"attributes"`
		} `json:"devices"`
	} `json:"spec"`
}

// values are those of an attribute, as text. The attribute is an object with one key, which
// says the type: {"int": 1}, or from Kubernetes 1.36 on {"ints": [1, 2]}.
type values []string

func (v *values) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // large integers stay as they are
	var typed map[string]any
	if err := d.Decode(&typed); err != nil {
		return err
	}
	for _, value := range typed {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, one := range list {
			*v = append(*v, fmt.Sprint(one))
		}
	}
	return nil
}

// Slices reads the ResourceSlices of the drivers in package dradriver. Of the query,
// Namespace does not matter. An error says what to do.
func Slices(ctx context.Context, config *rest.Config, q Query) ([]resourceslice.Slice, error) {
	options := metav1.ListOptions{Limit: int64(q.PageSize)}
	if len(q.Names) == 1 {
		options.FieldSelector = "spec.nodeName=" + q.Names[0]
	}
	return readAll(ctx, config, resourceSlices, "", options, q.Progress, func(s *slice) (resourceslice.Slice, bool) {
		compared, ok := s.compared()
		return compared, ok && (len(q.Names) == 0 || slices.Contains(q.Names, compared.Node))
	})
}

// compared returns what is compared; ok is false for slices of other drivers and those that do
// not belong to one node.
func (s *slice) compared() (c resourceslice.Slice, ok bool) {
	spec := &s.Spec
	c = resourceslice.Slice{
		Node: spec.NodeName, Driver: dradriver.Find(spec.Driver),
		Pool: spec.Pool.Name, Generation: spec.Pool.Generation, Count: spec.Pool.Count,
	}
	if c.Driver == nil || c.Node == "" {
		return c, false
	}
	for _, d := range spec.Devices {
		device := resourceslice.Device{Name: d.Name, Attributes: map[string][]string{}}
		for name, values := range d.Attributes {
			if !strings.Contains(name, "/") { // the domain of a name without one is the driver's
				name = spec.Driver + "/" + name
			}
			device.Attributes[name] = values
		}
		c.Devices = append(c.Devices, device)
	}
	return c, true
}
