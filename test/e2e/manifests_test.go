package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

// deploy is the directory of our manifests.
const deploy = repository + "/deploy"

// decode returns the objects of a YAML text.
func decode(text []byte) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 { // not only comments
			all = append(all, &object)
		}
	}
}

// shipped returns the objects of a file below deploy.
func shipped(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, name))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// applyOperators installs the custom resources of other operators.
func applyOperators(t *testing.T) {
	t.Helper()
	install(t, "operators.yaml")
}

// install installs the custom resources in a file of .bin.
func install(t *testing.T, name string) {
	t.Helper()
	if err := shared.apply(t.Context(), built(t, name)); err != nil {
		t.Fatal(err)
	}
}

// built returns the objects in a file of .bin.
func built(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(program(name))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// convert converts an object to its Go type.
func convert[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true); err != nil {
		t.Fatal(err)
	}
	return into
}

// only returns the only object of the kind, converted.
func only[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) *T {
	t.Helper()
	found := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
	if len(found) != 1 {
		t.Fatalf("%d objects of kind %s", len(found), kind)
	}
	return convert[T](t, found[0])
}

// render returns the objects that a program of .bin prints: kustomize or helm.
func render(ctx context.Context, name string, args ...string) ([]*unstructured.Unstructured, error) {
	var complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, program(name), args...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w\n%s", name, args, err, &complaints)
	}
	if complaints.Len() > 0 {
		return nil, fmt.Errorf("%s %q: %s", name, args, &complaints)
	}
	return decode(out)
}

// apply applies objects by server-side apply, in their order, as an administrator, and
// waits until custom resources among them are served. Unknown fields are errors.
func (c *cluster) apply(ctx context.Context, objects []*unstructured.Unstructured, dryRun ...string) error {
	for _, o := range objects {
		if err := c.applyOne(ctx, o, dryRun...); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if o.GetKind() == "CustomResourceDefinition" && len(dryRun) == 0 {
			if err := c.established(ctx, o.GetName()); err != nil {
				return err
			}
		}
	}
	return nil
}

// applyOne applies an object.
func (c *cluster) applyOne(ctx context.Context, o *unstructured.Unstructured, dryRun ...string) error {
	resource, err := c.resource(o)
	if err != nil {
		return err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	force := true
	_, err = resource.Patch(ctx, o.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		FieldManager: "e2e", Force: &force, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun,
	})
	return err
}

// resource returns the administrator's client for the kind and namespace of this object.
func (c *cluster) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := c.admin.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		c.admin.mapper.Reset()
		mapping, err = c.admin.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return nil, err
	}
	all := c.admin.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return all, nil
	}
	return all.Namespace(o.GetNamespace()), nil
}

// established waits until a custom resource can be used.
func (c *cluster) established(ctx context.Context, name string) error {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	definitions, err := c.resource(crd)
	if err != nil {
		return err
	}
	return until(ctx, patience, func(ctx context.Context) error {
		now, err := definitions.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(now.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("%s is not established", name)
	}, c.processes()...)
}
