package apiserver

import (
	"context"
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

type slice struct {
	Spec struct {
		resourceslice.Slice
		Driver string `json:"driver"`
	} `json:"spec"`
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
	c = s.Spec.Slice
	c.Driver = dradriver.Find(s.Spec.Driver)
	if c.Driver == nil || c.Node == "" {
		return c, false
	}
	for _, d := range c.Devices {
		for name, values := range d.Attributes {
			if !strings.Contains(name, "/") { // the domain of a name without one is the driver's
				delete(d.Attributes, name)
				d.Attributes[c.Driver.Name+"/"+name] = values
			}
		}
	}
	return c, true
}
