package nodelabel

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/yaml"

	"gdr-features/internal/label"
	"gdr-features/source/family"
)

// TestKeepHardware: the shipped patch for the NodeFeatures of agents that will not
// come back keeps all hardware labels and nothing else.
func TestKeepHardware(t *testing.T) {
	text, err := os.ReadFile("../../deploy/examples/keep-hardware.patch")
	if err != nil {
		t.Fatal(err)
	}
	patch, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	type spec struct {
		Labels   map[string]string `json:"labels"`
		Features map[string]string `json:"features,omitempty"`
	}
	type object struct {
		Spec spec `json:"spec"`
	}
	all, kept := label.Set{}, label.Set{}
	for name := range All(family.Known()) {
		if all[name] = "x"; Hardware(name) {
			kept[name] = "x"
		}
	}
	before, err := json.Marshal(object{spec{Labels: all.Prefixed(label.DefaultPrefix), Features: map[string]string{"gdr.node": "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		t.Fatal(err)
	}
	var got object
	if err := json.Unmarshal(after, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object{spec{Labels: kept.Prefixed(label.DefaultPrefix)}}, got); diff != "" {
		t.Errorf("the patched object (-want +got):\n%s", diff)
	}
}
