// Package chart tests the Helm chart with Helm's own packages, without a cluster: what it
// renders for each of its values, what it refuses, and that README.md describes its values.
// `hack/check.sh chart` runs it. That an API server accepts what the chart renders, and that the
// kustomization renders the same, is tested by test/e2e.
package chart

import (
	"encoding/base64"
	"encoding/xml"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pmezard/go-difflib/difflib"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// update: write the golden files and the chart's README.md.
var update = os.Getenv("UPDATE") != ""

const (
	dir       = "../../deploy/helm/gdr-features"
	namespace = "gdr-features"
	// image is the one value that has no default.
	image = "registry.example.com/gdr-features"
)

// kube is the version of Kubernetes that the chart is rendered for.
var kube = chartutil.KubeVersion{Version: "v1.35.3", Major: "1", Minor: "35"}

// values are values of the chart.
type values = map[string]any

// parse returns the values in a text.
func parse(t *testing.T, text string) values {
	t.Helper()
	v := values{}
	if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// merge returns values with those of later ones in place of earlier ones, as several -f
// options of Helm do.
func merge(all ...values) values {
	merged := values{}
	for _, v := range slices.Backward(all) {
		merged = chartutil.CoalesceTables(merged, deepCopy(v))
	}
	return merged
}

func deepCopy(v values) values {
	c := maps.Clone(v)
	for key, inner := range c {
		if inner, ok := inner.(values); ok {
			c[key] = deepCopy(inner)
		}
	}
	return c
}

// load reads the chart.
var load = sync.OnceValues(func() (*chart.Chart, error) { return loader.Load(dir) })

// render returns what the chart makes of values, by the file of the template.
func render(v values, on chartutil.KubeVersion, apis ...string) (map[string]string, error) {
	c, err := load()
	if err != nil {
		return nil, err
	}
	capabilities := chartutil.Capabilities{KubeVersion: on, APIVersions: apis}
	release := chartutil.ReleaseOptions{Name: "gdr-features", Namespace: namespace, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, v, release, &capabilities) // checks the schema
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, text := range rendered {
		if text = strings.TrimSpace(text); text != "" {
			files[strings.TrimPrefix(name, c.Name()+"/templates/")] = text + "\n"
		}
	}
	return files, nil
}

// manifest returns the files that are applied, as one text.
func manifest(t *testing.T, v values) string {
	t.Helper()
	files, err := render(merge(values{"image": values{"repository": image}}, v), kube)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name != "NOTES.txt" {
			all.WriteString("---\n# " + name + "\n" + strings.TrimPrefix(files[name], "---\n"))
		}
	}
	return all.String()
}

// switches returns the values in the chart's directory ci, by name.
func switches(t *testing.T) map[string]values {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "ci/*-values.yaml"))
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	all := map[string]values{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), "-values.yaml")] = parse(t, string(text))
	}
	return all
}

// What the chart renders by default, and what each file of values in ci changes in it.
func TestGolden(t *testing.T) {
	dashboard, err := os.ReadFile(filepath.Join(dir, "files/dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	short := func(manifest string) string { // the dashboard is long, and only copied
		const margin = "    "
		text := margin + strings.ReplaceAll(strings.TrimSpace(string(dashboard)), "\n", "\n"+margin)
		return strings.Replace(manifest, text, margin+"(files/dashboard.json)", 1)
	}
	standard := manifest(t, nil)
	golden(t, "default.yaml", standard)
	written := []string{"default.yaml"}
	for name, v := range switches(t) {
		if name == "default" {
			continue
		}
		diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: difflib.SplitLines(standard), B: difflib.SplitLines(short(manifest(t, v))), Context: 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		lines := slices.Collect(strings.Lines(diff))
		for i, line := range lines {
			if strings.HasPrefix(line, "@@") {
				lines[i] = "@@\n" // without numbers of lines, which change with each line above
			}
		}
		if len(lines) == 0 {
			t.Errorf("ci/%s-values.yaml changes nothing", name)
		}
		golden(t, name+".diff", strings.Join(lines, ""))
		written = append(written, name+".diff")
	}
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !slices.Contains(written, f.Name()) {
			t.Errorf("nothing writes testdata/%s", f.Name())
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		diff, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: difflib.SplitLines(string(want)), B: difflib.SplitLines(got), Context: 2})
		t.Errorf("%s differs; if it should, run UPDATE=1 hack/check.sh chart\n%s", path, diff)
	}
}

// Each value has a file in ci that gives it something else than its default.
func TestEveryValueIsSet(t *testing.T) {
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	all := switches(t)
	for _, path := range leaves(c.Values, "") {
		if path == "image.repository" { // every test sets it
			continue
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(all)), func(v values) bool { return sets(v, path) }) {
			t.Errorf("no file in ci sets %s", path)
		}
	}
}

// leaves returns the paths of the values that are not themselves groups of values.
func leaves(v values, prefix string) (paths []string) {
	// Fields of Kubernetes, which are set as a whole.
	whole := []string{"resources", "livenessProbe", "readinessProbe", "updateStrategy", "nodeSelector", "affinity", "labels"}
	for key, inner := range v {
		group, ok := inner.(values)
		if ok && len(group) > 0 && !slices.Contains(whole, key) {
			paths = append(paths, leaves(group, prefix+key+".")...)
		} else {
			paths = append(paths, prefix+key)
		}
	}
	return paths
}

func sets(v values, path string) bool {
	first, rest, more := strings.Cut(path, ".")
	inner, ok := v[first]
	if !more {
		return ok
	}
	group, ok := inner.(values)
	return ok && sets(group, rest)
}

// Helm's lint has nothing to say of the chart, with its defaults and with all values, and does say
// that a chart without an icon lacks one.
func TestLint(t *testing.T) {
	for name, v := range map[string]values{
		"defaults":   {},
		"all values": merge(append(slices.Collect(maps.Values(switches(t))), parse(t, "topologyFiles: []"))...),
	} {
		for _, m := range lint.AllWithKubeVersion(dir, v, namespace, &kube).Messages {
			t.Errorf("%s: %v", name, m)
		}
	}
	without := t.TempDir()
	if err := os.CopyFS(without, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	metadata, err := os.ReadFile(filepath.Join(without, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	metadata = regexp.MustCompile(`(?m)^icon: .*$`).ReplaceAll(metadata, nil)
	if err := os.WriteFile(filepath.Join(without, "Chart.yaml"), metadata, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := lint.AllWithKubeVersion(without, nil, namespace, &kube).Messages; len(said) != 1 || !strings.Contains(said[0].Error(), "icon") {
		t.Errorf("without an icon the linter says %v", said)
	}
}

// Artifact Hub and people find out what the chart is.
func TestMetadata(t *testing.T) {
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	m := c.Metadata
	if m.Home == "" || len(m.Sources) == 0 || len(m.Maintainers) == 0 || m.Annotations["artifacthub.io/license"] != "Apache-2.0" {
		t.Errorf("%+v", m)
	}
	text, found := strings.CutPrefix(m.Icon, "data:image/svg+xml;base64,")
	if icon, err := base64.StdEncoding.DecodeString(text); !found || err != nil || xml.Unmarshal(icon, new(struct{ XMLName xml.Name })) != nil {
		t.Errorf("the icon is no SVG: %v", err)
	}
}

// global.imageRegistry takes the place of the registry in the image's name, if there is one.
func TestImage(t *testing.T) {
	for text, want := range map[string]string{
		`{image: {repository: a.example.com/b/c}}`:                                                  "a.example.com/b/c:v1.0.0",
		`{image: {repository: a.example.com/b/c}, global: {imageRegistry: m.example.com}}`:          "m.example.com/b/c:v1.0.0",
		`{image: {repository: "localhost:5000/c", tag: t}, global: {imageRegistry: m.example.com}}`: "m.example.com/c:t",
		`{image: {repository: localhost/c}, global: {imageRegistry: m.example.com/x}}`:              "m.example.com/x/c:v1.0.0",
		`{image: {repository: b/c}, global: {imageRegistry: m.example.com}}`:                        "m.example.com/b/c:v1.0.0",
		`{image: {repository: c.d}, global: {imageRegistry: m.example.com}}`:                        "m.example.com/c.d:v1.0.0",
		`{global: {imageRegistry: m.example.com}}`:                                                  "m.example.com/gdr-features:v1.0.0",
	} {
		files, err := render(parse(t, text), kube)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, name := range []string{"daemonset.yaml", "tests/publish.yaml"} {
			if !strings.Contains(files[name], "image: "+want+"\n") {
				t.Errorf("%s: %s has no image %s", text, name, want)
			}
		}
	}
}

// TestPodMetadata: every Pod has podLabels and podAnnotations, which change neither what the DaemonSet
// selects its Pods by nor when helm test runs its own.
func TestPodMetadata(t *testing.T) {
	files, err := render(parse(t, `{image: {repository: a.example.com/b}, podLabels: {team: pod, app.kubernetes.io/name: other, app.kubernetes.io/part-of: other}, commonLabels: {team: common, cost: common},
		podAnnotations: {owner: pod, helm.sh/hook: post-install}}`), kube)
	if err != nil {
		t.Fatal(err)
	}
	var set appsv1.DaemonSet
	var pod corev1.Pod
	if err := errors.Join(yaml.Unmarshal([]byte(files["daemonset.yaml"]), &set), yaml.Unmarshal([]byte(files["tests/publish.yaml"]), &pod)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		labels, annotations map[string]string
		name, hook          string
	}{
		{set.Spec.Template.Labels, set.Spec.Template.Annotations, "gdr-features", "post-install"},
		{pod.Labels, pod.Annotations, "gdr-features-test", "test"},
	} {
		if l := tt.labels; l["team"] != "pod" || l["cost"] != "common" || l["app.kubernetes.io/name"] != tt.name || l["app.kubernetes.io/part-of"] != "other" {
			t.Errorf("%s: labels %v", tt.name, l)
		}
		if a := tt.annotations; a["owner"] != "pod" || a["helm.sh/hook"] != tt.hook {
			t.Errorf("%s: annotations %v", tt.name, a)
		}
	}
}

// failsIn are the templates that refuse values which the schema allows.
var failsIn = map[string]string{
	`image: {repository: ""}`:       "daemonset.yaml",
	`extraArgs: ["--listen=:9401"]`: "daemonset.yaml",
	twoMonitors:                     "daemonset.yaml",
}

const twoMonitors = `monitoring: {enabled: true, serviceMonitor: {enabled: true}}`

// Wrong values are errors that name the value.
func TestWrongValues(t *testing.T) {
	for text, want := range map[string]string{
		`publish: [label]`:                             "/publish/0",
		`publish: []`:                                  "/publish",
		`interval: often`:                              "/interval",
		`acs: "yes"`:                                   "/acs",
		`Interval: 1s`:                                 "'Interval'",
		`expect: true`:                                 "/expect",
		`topologyFile: 1`:                              "/topologyFile",
		`image: {digest: latest}`:                      "/image/digest",
		`image: {tag: "a b"}`:                          "/image/tag",
		`image: {repository: ""}`:                      "--set image.repository=",
		`extraArgs: ["--listen=:9401"]`:                "--listen must stay :9400",
		`extraVolumes: [{emptyDir: {}}]`:               "/extraVolumes/0",
		`networkPolicy: {apiServerPorts: ["https"]}`:   "/networkPolicy/apiServerPorts/0",
		`networkPolicy: {enabled: "yes"}`:              "/networkPolicy/enabled",
		`monitoring: {enabled: "yes"}`:                 "/monitoring/enabled",
		`monitoring: {podMonitor: {interval: 1 min}}`:  "/monitoring/podMonitor/interval",
		`monitoring: {rules: {runbookURL: README.md}}`: "/monitoring/rules/runbookURL",
		`podLabels: {a: 1}`:                            "/podLabels/a",
		`affinity: []`:                                 "/affinity",
		twoMonitors:                                    "also set monitoring.podMonitor.enabled=false",
		`{topologyFile: x, topologyFiles: [{name: a, match: {gpu: x}, xml: x}]}`: "set only one of them",
		`topologyFiles: [{name: a/b, match: {gpu: x}, xml: x}]`:                  "/topologyFiles/0/name",
		`topologyFiles: [{name: a, match: {topology: virtual}, xml: x}]`:         "/topologyFiles/0/match",
		`topologyFiles: [{name: a, match: {gpu: x}}]`:                            "'xml'",
		`commonLabels: {app.kubernetes.io/name: x}`:                              "/commonLabels",
		`global: {imagePullSecrets: [{secret: x}]}`:                              "/global/imagePullSecrets/0",
		`global: {imageRegistry: "a b"}`:                                         "/global/imageRegistry",
		`monitoring: {serviceMonitor: {interval: 1 min}}`:                        "/monitoring/serviceMonitor/interval",
		`revisionHistoryLimit: -1`:                                               "/revisionHistoryLimit",
	} {
		_, err := render(merge(values{"image": values{"repository": image}}, parse(t, text)), kube)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, and does not contain %q", text, err, want)
		}
		// An error of a template names the one that needs the value, not the test of the release.
		if in, ok := failsIn[text]; ok && (err == nil || !strings.Contains(err.Error(), "/templates/"+in+":")) {
			t.Errorf("%s: the error is %v, and not of %s", text, err, in)
		}
	}
}

// Kubernetes before 1.30 has no ValidatingAdmissionPolicy and no recursive read-only mounts.
func TestOlderKubernetes(t *testing.T) {
	old := chartutil.KubeVersion{Version: "v1.29.14", Major: "1", Minor: "29"}
	v := parse(t, "{image: {repository: "+image+"}, hostSys: true}")
	if _, err := render(v, old); err == nil || !strings.Contains(err.Error(), "admissionPolicy.enabled needs Kubernetes 1.30") {
		t.Errorf("with the policy: error %v", err)
	}
	files, err := render(merge(v, parse(t, "admissionPolicy: {enabled: false}")), old)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(files["daemonset.yaml"], "recursiveReadOnly") {
		t.Error("1.29 is given a recursive read-only mount")
	}
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]bool{"v1.28.15": false, "v1.29.0": true, "v1.30.1-eks-1234567": true} {
		if got := chartutil.IsCompatibleRange(c.Metadata.KubeVersion, version); got != want {
			t.Errorf("%s is compatible: %v", version, got)
		}
	}
}

// The notes warn where NFD's resource is missing, if the agents need it.
func TestNotes(t *testing.T) {
	const nfd = "nfd.k8s-sigs.io/v1alpha1/NodeFeature"
	for _, c := range []struct {
		values string
		apis   []string
		warns  bool
	}{
		{"publish: [nodefeature]", nil, true},
		{"publish: [nodefeature]", []string{nfd}, false},
		{"publish: [file]", nil, false},
	} {
		files, err := render(merge(values{"image": values{"repository": image}}, parse(t, c.values)), kube, c.apis...)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(files["NOTES.txt"], "WARNING: this cluster has no NodeFeature resource"); got != c.warns {
			t.Errorf("%s, %v: warns %v\n%s", c.values, c.apis, got, files["NOTES.txt"])
		}
	}
}
