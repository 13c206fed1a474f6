package e2e

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The configuration of Volcano's label discovery has only keys that Volcano's own types
// have. Volcano ignores others, silently.
func TestVolcanoDiscovery(t *testing.T) {
	objects := shipped(t, "examples/schedulers/volcano-discovery.yaml")
	text := only[corev1.ConfigMap](t, objects, "ConfigMap").Data["volcano-controller.conf"]
	if err := checkDiscovery(text); err != nil {
		t.Error(err)
	}
	for _, key := range []string{"networkTopologyDiscovery", "source", "config", "networkTopologyTypes", "nodeLabel", "label"} {
		if err := checkDiscovery(strings.Replace(text, key, key+"x", 1)); err == nil {
			t.Errorf("%sx is accepted", key)
		}
	}
}

// checkDiscovery returns an error for keys that Volcano does not know, and unless nodes are
// grouped by a label of ours.
func checkDiscovery(text string) error {
	const dir = "volcano/pkg/controllers/hypernode/"
	var config struct {
		Sources []map[string]any `json:"networkTopologyDiscovery"`
	}
	var top map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(text), &top), yaml.Unmarshal([]byte(text), &config)); err != nil {
		return err
	}
	if err := known(top, dir+"api/types.go", "NetworkTopologyConfig", "yaml"); err != nil {
		return err
	}
	if len(config.Sources) != 1 || config.Sources[0]["source"] != "label" || config.Sources[0]["enabled"] != true {
		return fmt.Errorf("sources %v", config.Sources)
	}
	if err := known(config.Sources[0], dir+"api/types.go", "DiscoveryConfig", "yaml"); err != nil {
		return err
	}
	types, ok := config.Sources[0]["config"].(map[string]any)
	if !ok {
		return errors.New("no config")
	}
	if err := known(types, dir+"discovery/label/label.go", "NetworkTopologyType", "mapstructure"); err != nil {
		return err
	}
	levels, ok := types["networkTopologyTypes"].(map[string]any)["gdr"].([]any)
	if !ok || len(levels) != 2 { // the last stands for the nodes
		return fmt.Errorf("levels %v", levels)
	}
	for i, want := range []string{prefix + "gdr.level", corev1.LabelHostname} {
		level, _ := levels[i].(map[string]any)
		if err := known(level, dir+"discovery/label/label.go", "NodeLabel", "mapstructure"); err != nil {
			return err
		}
		if level["nodeLabel"] != want {
			return fmt.Errorf("level %d is %v, want %s", i, level, want)
		}
	}
	return nil
}

// known returns an error for keys that a struct type of a Go file has no tag for.
func known(keys map[string]any, file, name, tag string) error {
	tags, err := tagsOf(program(filepath.FromSlash(file)), name, tag)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return fmt.Errorf("no key of %s", name)
	}
	for key := range keys {
		if !slices.Contains(tags, key) {
			return fmt.Errorf("%s has no key %q, but %q", name, key, tags)
		}
	}
	return nil
}

// tagsOf returns the names in the tags of a struct type's fields.
func tagsOf(file, name, tag string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var tags []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		of, ok := spec.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, field := range of.Fields.List {
			if field.Tag == nil {
				continue
			}
			if text, err := strconv.Unquote(field.Tag.Value); err == nil {
				key, _, _ := strings.Cut(reflect.StructTag(text).Get(tag), ",")
				tags = append(tags, key)
			}
		}
		return false
	})
	if len(tags) == 0 {
		return nil, fmt.Errorf("%s: no type %s with tags %s", file, name, tag)
	}
	return tags, nil
}
