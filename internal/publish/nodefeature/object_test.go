package nodefeature

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/host"
	"gdr-features/internal/label"
	"gdr-features/internal/publish"
	"gdr-features/internal/report"
	"gdr-features/source/pci"
	"gdr-features/test/machine"
	"gdr-features/topology"
)

// spec of what is to be published, from scratch.
func spec(t *testing.T, c publish.Content, old *v1alpha1.NodeFeature) (s v1alpha1.NodeFeatureSpec, left []string) {
	t.Helper()
	s, left, err := specOf(c, old)
	if err != nil {
		t.Fatal(err)
	}
	return s, left
}

func TestSpec(t *testing.T) {
	s, left := spec(t, small(t, "ready"), nil)
	if len(left) > 0 {
		t.Errorf("left out %v", left)
	}
	for feature, want := range map[string]int{"gdr.gpu": 1, "gdr.nic": 2, "gdr.pair": 2, "gdr.finding": 2} {
		if got := len(s.Features.Instances[feature].Elements); got != want {
			t.Errorf("%d of %s, want %d", got, feature, want)
		}
	}
	if len(s.Features.Attributes) != 2 || len(s.Features.Flags) != 0 || len(s.Features.Instances) != 4 {
		t.Errorf("features %v", s.Features)
	}
	for _, rate := range elements(&s, "gdr.nic", "rateGbps") {
		if rate == "" {
			t.Error("no rate of a port")
		}
	}
	empty, _ := spec(t, publish.Content{Report: &report.Report{}}, nil)
	if len(empty.Labels)+len(empty.Features.Attributes)+len(empty.Features.Instances) > 0 {
		t.Errorf("without labels: %v", empty)
	}
}

// What the report could not list stays as published; what it has listed is replaced.
func TestUnlisted(t *testing.T) {
	old := &v1alpha1.NodeFeature{Spec: v1alpha1.NodeFeatureSpec{Features: *v1alpha1.NewFeatures()}}
	for _, feature := range []string{"gdr.gpu", "gdr.nic", "gdr.pair", "gdr.more"} {
		old.Spec.Features.Instances[feature] = v1alpha1.NewInstanceFeatures(*v1alpha1.NewInstanceFeature(map[string]string{"address": "old"}))
	}
	for _, test := range []struct {
		name      string
		pci, rdma bool
		kept      []string
	}{
		{"all listed", true, true, nil},
		{"RDMA devices not listed", true, false, []string{"gdr.nic", "gdr.pair"}},
		{"PCI bus not listed", false, true, []string{"gdr.gpu", "gdr.nic", "gdr.pair"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := small(t, "ready")
			c.Report.PCIRead, c.Report.RDMA.Complete = test.pci, test.rdma
			s, _ := spec(t, c, old)
			for _, feature := range []string{"gdr.gpu", "gdr.nic", "gdr.pair"} {
				kept := slices.Contains(elements(&s, feature, "address"), "old")
				if kept != slices.Contains(test.kept, feature) {
					t.Errorf("%s kept: %v", feature, kept)
				}
			}
			if _, ok := s.Features.Instances["gdr.more"]; ok {
				t.Error("kept what is no feature of ours")
			}
			fresh, _ := spec(t, c, nil)
			if slices.Contains(elements(&fresh, "gdr.nic", "address"), "old") {
				t.Error("kept from nowhere")
			}
		})
	}
	if slices.Contains(elements(&old.Spec, "gdr.gpu", "address"), "0000:00:00.0") {
		t.Error("the old object was changed")
	}
}

// What can no longer be identified stays as published, and nothing else does.
func TestUnidentified(t *testing.T) {
	const addresses = "0000:04:00.0 0000:05:00.0 0000:09:00.0 0000:0a:00.0"
	m, err := machine.Parse(`
nodes 1
pci0000:01
  0000:01:00.0 port 8086:352a
    0000:02:00.0 switch 1000:c030
      0000:03:00.0 switch 1000:c030
        0000:04:00.0 gpu 10de:2330 name=GPU0
      0000:03:01.0 switch 1000:c030
        0000:05:00.0 ib 15b3:1021 rdma=mlx5_0
      0000:03:02.0 switch 1000:c030
        0000:09:00.0 gpu 10de:2330 name=GPU1
      0000:03:03.0 switch 1000:c030
        0000:0a:00.0 ib 15b3:1021 rdma=mlx5_1
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, lost := range []string{"", "0000:04:00.0", "0000:0a:00.0", "0000:04:00.0 0000:09:00.0", addresses} {
		dir := m.Tree(t, m.Ready())
		read := func() publish.Content {
			fs, err := host.Open(host.Options{Root: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer fs.Close()
			r := report.Collect(t.Context(), fs, report.ForPublishing)
			return publish.Content{Labels: label.Set{label.GPUs: "2"}, Report: &r}
		}
		before, _ := spec(t, read(), nil)
		for function := range strings.FieldsSeq(lost) {
			for _, name := range []string{"modalias", "vendor"} {
				if err := os.WriteFile(filepath.Join(dir, "sys/bus/pci/devices", function, name), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		after, _ := spec(t, read(), &v1alpha1.NodeFeature{Spec: before})
		for feature, keys := range map[string][]string{"gdr.gpu": {"address"}, "gdr.nic": {"address", "rdma"}, "gdr.pair": {"gpu", "nic", "level"}} {
			for _, key := range keys {
				if diff := cmp.Diff(elements(&before, feature, key), elements(&after, feature, key)); diff != "" {
					t.Errorf("without %q: %s of %s (-before +after):\n%s", lost, key, feature, diff)
				}
			}
		}
		var gone report.Report
		gone.PCIRead, gone.RDMA.Complete = true, true
		empty, _ := spec(t, publish.Content{Labels: label.Set{label.GPUs: "2"}, Report: &gone}, &v1alpha1.NodeFeature{Spec: before})
		if n := len(elements(&empty, "gdr.gpu", "address")); n != 0 {
			t.Errorf("%d GPUs of a machine that has none", n)
		}
	}
}

// large is a report with many pairs, each about 110 bytes.
func large(gpus, nics int, name string) *report.Report {
	r := &report.Report{}
	r.PCIRead = true
	r.RDMA.Complete = true
	f := &pci.Function{RootBus: name}
	for range gpus {
		r.Matrix.GPUs = append(r.Matrix.GPUs, topology.GPU{Function: f})
	}
	for range nics {
		r.Matrix.NICs = append(r.Matrix.NICs, topology.NIC{Function: f})
	}
	for g := range gpus {
		for n := range nics {
			r.Matrix.Pairs = append(r.Matrix.Pairs, topology.Pair{GPU: g, NIC: n, Level: topology.PIX, NCCL: topology.PIX})
		}
	}
	return r
}

// What is too much for one object is left out, the pairs first, but never the labels.
func TestLarge(t *testing.T) {
	for _, test := range []struct {
		name             string
		gpus, nics       int
		root             string
		left             []string
		pair, nic, gpus2 bool
	}{
		{"fits", 16, 300, "", nil, true, true, true},
		{"too many pairs", 128, 200, "", []string{"25600 instances of gdr.pair"}, false, true, true},
		{"too many NICs", 1, 30, strings.Repeat("x", 50000), []string{"30 instances of gdr.pair", "30 instances of gdr.nic"}, false, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := publish.Content{Labels: label.Set{label.Capable: "true"}, Report: large(test.gpus, test.nics, test.root)}
			s, left := spec(t, c, nil)
			if diff := cmp.Diff(test.left, left); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
			for feature, want := range map[string]bool{"gdr.pair": test.pair, "gdr.nic": test.nic, "gdr.gpu": test.gpus2} {
				if _, ok := s.Features.Instances[feature]; ok != want {
					t.Errorf("%s: %v", feature, ok)
				}
			}
			if text, err := json.Marshal(s); err != nil || len(text) > maxSpecSize {
				t.Errorf("%d bytes, error %v", len(text), err)
			}
			if len(s.Labels) != 1 {
				t.Errorf("labels %v", s.Labels)
			}
		})
	}
}

// What is left out is logged when that changes; nothing left out is not logged.
func TestLargeLogged(t *testing.T) {
	a := newAPI(t)
	p, hook := a.publisher(node)
	labels := label.Set{label.Capable: "true"}
	big, little := large(128, 200, ""), large(1, 1, "")
	for _, step := range []struct {
		report   *report.Report
		warnings int
	}{{big, 1}, {big, 1}, {little, 1}, {little, 1}, {big, 2}} {
		if _, err := p.Publish(t.Context(), publish.Content{Labels: labels, Report: step.report}); err != nil {
			t.Fatal(err)
		}
		if n := len(hook.AllEntries()); n != step.warnings {
			t.Errorf("%d warnings, want %d; the last: %s", n, step.warnings, hook.LastEntry().Message)
		}
	}
	if want := "left out: 25600 instances of gdr.pair"; !strings.HasSuffix(hook.LastEntry().Message, want) {
		t.Errorf("%q, want %q", hook.LastEntry().Message, want)
	}
}

// An object from which all is left out that is not used differs from what should be as the
// whole one does, also where others have only added to it.
func TestReduced(t *testing.T) {
	should, _ := spec(t, small(t, "ready"), nil)
	empty, _ := spec(t, publish.Content{}, nil)
	for name, edit := range map[string]func(*v1alpha1.NodeFeatureSpec){
		"nothing":      func(*v1alpha1.NodeFeatureSpec) {},
		"label":        func(s *v1alpha1.NodeFeatureSpec) { s.Labels["example.com/x"] = "1" },
		"other value":  func(s *v1alpha1.NodeFeatureSpec) { s.Labels[label.DefaultPrefix+label.Ready] = "false" },
		"no labels":    func(s *v1alpha1.NodeFeatureSpec) { s.Labels = nil },
		"flag":         func(s *v1alpha1.NodeFeatureSpec) { s.Features.Flags["x"] = v1alpha1.NewFlagFeatures("a") },
		"attribute":    func(s *v1alpha1.NodeFeatureSpec) { s.Features.Attributes["gdr.node"].Elements["x"] = "1" },
		"instances":    func(s *v1alpha1.NodeFeatureSpec) { s.Features.Instances["x"] = v1alpha1.NewInstanceFeatures() },
		"more of ours": func(s *v1alpha1.NodeFeatureSpec) { s.Features.Instances["gdr.nic"] = s.Features.Instances["gdr.pair"] },
		"no features":  func(s *v1alpha1.NodeFeatureSpec) { s.Features = v1alpha1.Features{} },
	} {
		for _, want := range []*v1alpha1.NodeFeatureSpec{&should, &empty} {
			is := should.DeepCopy()
			edit(is)
			whole := v1alpha1.NodeFeature{TypeMeta: metav1.TypeMeta{Kind: "NodeFeature"}, Spec: *is}
			whole.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "other"}}
			text, err := json.Marshal(whole)
			if err != nil {
				t.Fatal(err)
			}
			var got v1alpha1.NodeFeature
			if err := json.Unmarshal(reduced(text), &got); err != nil {
				t.Fatal(err)
			}
			if same := sameSpec(&got.Spec, want); same != sameSpec(is, want) || got.ManagedFields != nil {
				t.Errorf("%s: as it should be: %v; %+v", name, same, got)
			}
			if _, ok := got.Spec.Labels["example.com/x"]; ok || !maps.Equal(label.Published(got.Spec.Labels), label.Published(is.Labels)) {
				t.Errorf("%s: labels %v", name, got.Spec.Labels)
			}
		}
	}
}

func TestMatches(t *testing.T) {
	s, _ := spec(t, small(t, "ready"), nil)
	for _, test := range []struct {
		name string
		edit func(*v1alpha1.NodeFeature)
		want bool
	}{
		{"nothing", func(*v1alpha1.NodeFeature) {}, true},
		{"nil for empty", func(o *v1alpha1.NodeFeature) { o.Spec.Features.Flags = nil }, true},
		{"another owner too", func(o *v1alpha1.NodeFeature) {
			o.OwnerReferences = append([]metav1.OwnerReference{{Kind: "Pod", UID: "9"}}, o.OwnerReferences...)
		}, true},
		{"another owner instead", func(o *v1alpha1.NodeFeature) { o.OwnerReferences[0].UID = "9" }, false},
		{"another node", func(o *v1alpha1.NodeFeature) { o.Labels[v1alpha1.NodeFeatureObjNodeNameLabel] = "x" }, false},
		{"another label", func(o *v1alpha1.NodeFeature) { o.Spec.Labels["x"] = "y" }, false},
		{"another element", func(o *v1alpha1.NodeFeature) {
			o.Spec.Features.Instances["gdr.gpu"].Elements[0].Attributes["device"] = "ffff"
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			should := object(namespace, "x", node, uid, s)
			is := should.DeepCopy()
			test.edit(is)
			if got := matches(is, should); got != test.want {
				t.Errorf("same: %v", got)
			}
		})
	}
}

func TestLabelsOf(t *testing.T) {
	o := &v1alpha1.NodeFeature{Spec: v1alpha1.NodeFeatureSpec{Labels: map[string]string{
		label.DefaultPrefix + label.Ready: "true", label.DefaultPrefix + label.MOFED: "not a value!", label.DefaultPrefix + label.Level: "",
		label.DefaultPrefix + "other": "x", label.GPUs: "8", "example.com/" + label.NICs: "1",
	}}}
	if diff := cmp.Diff(label.Set{label.Ready: "true"}, label.Published(o.Spec.Labels)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A field that the schema of the API server lacks is not there some seconds later either.
func TestUndeclared(t *testing.T) {
	err := apierrors.NewInternalError(errors.New("failed to create typed patch object: .spec.features: field not declared in schema"))
	if !denied(err) || denied(apierrors.NewInternalError(errors.New("etcdserver: request timed out"))) {
		t.Error("not told from other errors with status 500")
	}
}
