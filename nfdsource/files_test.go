//go:build worker

package nfdsource

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	nfdworker "sigs.k8s.io/node-feature-discovery/pkg/nfd-worker"
	"sigs.k8s.io/node-feature-discovery/source"
	nfdpci "sigs.k8s.io/node-feature-discovery/source/pci"
	"sigs.k8s.io/yaml"

	"gdr-features/internal/label"
	"gdr-features/internal/render"
)

// NFD reads from a feature file exactly the labels of the report. The directory
// of feature files is a variable that only the linker can set.
func TestFeatureFile(t *testing.T) {
	if testing.Short() {
		t.Skip("links a program")
	}
	const variable = "sigs.k8s.io/node-feature-discovery/source/local.featureFilesDir"
	dir := t.TempDir()
	parse := filepath.Join(t.TempDir(), "parse")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", parse, "-ldflags", "-X "+variable+"="+dir+"/", "./testdata/parse")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"dgx-a100-nps4", "kvm-h200-flat-passthrough", "vllm-1gpu-dualport-node"} {
		t.Run(name, func(t *testing.T) {
			r := collect(t, tree(t, load(t, machines+name+".txt"), "ready"))
			var file bytes.Buffer
			if err := render.Labels(&file, r.Labels, label.DefaultPrefix); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "gdr-features.features"), file.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), parse).Output()
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]string
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r.Labels.Prefixed(label.DefaultPrefix), got); diff != "" || len(got) == 0 {
				t.Errorf("labels (-report +NFD):\n%s", diff)
			}
		})
	}
}

// The worker's configuration has only options that NFD knows, except those for older
// versions.
func TestWorkerConf(t *testing.T) {
	text, err := os.ReadFile("../deploy/nfd-worker-conf.yaml")
	if err != nil {
		t.Fatal(err)
	}
	conf := nfdworker.NFDConfig{Sources: map[string]source.Config{}}
	for name, s := range source.GetAllConfigurableSources() {
		conf.Sources[name] = s.NewConfig()
	}
	if err := yaml.UnmarshalStrict(text, &conf); err != nil {
		t.Fatal(err)
	}
	if got := conf.Core.SleepInterval.Duration; got != time.Minute {
		t.Errorf("sleepInterval is %v", got)
	}
	want := &nfdpci.Config{DeviceClassWhitelist: []string{"0200", "0207", "0300", "0302"}, DeviceLabelFields: []string{"vendor"}}
	if diff := cmp.Diff(source.Config(want), conf.Sources["pci"]); diff != "" {
		t.Errorf("sources.pci (-want +got):\n%s", diff)
	}

	// NFD itself decodes the part of each source without complaint; we do not.
	var raw struct {
		Core    any `json:"core"`
		Sources struct {
			PCI   nfdpci.Config `json:"pci"`
			Local struct {
				HooksEnabled bool `json:"hooksEnabled"` // up to 0.16
			} `json:"local"`
		} `json:"sources"`
	}
	if err := yaml.UnmarshalStrict(text, &raw); err != nil {
		t.Fatal(err)
	}
	if !raw.Sources.Local.HooksEnabled {
		t.Error("hooks are not enabled")
	}
	for _, sources := range [][]string{conf.Core.FeatureSources, conf.Core.LabelSources} {
		if !slices.Equal(sources, []string{"all"}) {
			t.Errorf("sources %v leave some out", sources)
		}
	}
}
