package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
)

const (
	repository = "../.."
	namespace  = "node-feature-discovery"
	node       = "node-1"
	prefix     = "feature.node.kubernetes.io/"
)

// The worker, built as the README says but for where the node's files lie,
// writes into one NodeFeature object NFD's own labels and all of `gdr-features
// labels`.
func TestWorker(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil || !strings.Contains(string(page), "\n./build.sh "+program+" ") {
		t.Errorf("README.md does not say how to build the worker; error %v", err)
	}
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	output(t, "go", "run", "-C", repository, "./test/machine/mktree",
		"testdata/machines/dell-xe9680-h100.txt", root, "ready")
	cli, worker := filepath.Join(dir, "gdr-features"), filepath.Join(dir, "nfd-worker")
	output(t, "go", "build", "-C", repository, "-o", cli, "./cmd/gdr-features")
	output(t, "./build.sh", worker, root+"/")

	api := &apiServer{}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	c := exec.CommandContext(t.Context(), worker, "-oneshot", "-kubeconfig="+kubeconfig(t, server.URL), "-owner-refs=",
		"-config="+filepath.Join(dir, "none"))
	c.Env = []string{"NODE_NAME=" + node, "KUBERNETES_NAMESPACE=" + namespace, "GDR_FEATURES_PROCFS=" + root + "/proc"}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ours, others := api.published(t)
	if diff := cmp.Diff(output(t, cli, "labels", "--root", root), ours); diff != "" {
		t.Errorf("(-gdr-features labels +worker):\n%s", diff)
	}
	// The tree of the example has what NFD's source pci needs.
	if !strings.Contains(others, prefix+"pci-0302_10de.present=true\n") {
		t.Errorf("no label of NFD's own among\n%s", others)
	}
	features := api.objects[0].Spec.Features
	if got := len(features.Instances["gdr.pair"].Elements); got != 8*12 {
		t.Errorf("%d instances of gdr.pair", got)
	}
}

// The flags are those of NFD's own worker, and so is the version.
func TestFlags(t *testing.T) {
	dir := t.TempDir()
	theirs, ours := filepath.Join(dir, "theirs", program), filepath.Join(dir, "ours", program)
	output(t, "go", "build", "-o", theirs, "sigs.k8s.io/node-feature-discovery/cmd/nfd-worker")
	output(t, "./build.sh", ours)
	if diff := cmp.Diff(usage(t, theirs), usage(t, ours)); diff != "" {
		t.Errorf("(-NFD's +ours):\n%s", diff)
	}
	want := strings.TrimSpace(output(t, "go", "list", "-m", "-f", "{{.Version}}", "sigs.k8s.io/node-feature-discovery"))
	if got := output(t, ours, "-version"); got != program+" "+want+"\n" {
		t.Errorf("%q, want version %s", got, want)
	}
}

// usage returns the flags of a worker, with their defaults.
func usage(t *testing.T, worker string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), worker, "-help").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("-oneshot")) {
		t.Fatalf("%s -help: %v\n%s", worker, err, out)
	}
	return string(out)
}

// output runs a program that must succeed, and gives what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", c, err, &errs)
	}
	return out.String()
}

// kubeconfig writes one for an API server.
func kubeconfig(t *testing.T, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c",
"contexts":[{"name":"c","context":{"cluster":"c","user":""}}],
"clusters":[{"name":"c","cluster":{"server":"` + url + `"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// apiServer has no NodeFeature and lets a worker create one.
type apiServer struct {
	objects []v1alpha1.NodeFeature
	refused []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const path = "/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/" + namespace + "/nodefeatures"
	w.Header().Set("Content-Type", "application/json")
	var object v1alpha1.NodeFeature
	switch {
	case r.Method == http.MethodGet && r.URL.Path == path+"/"+node:
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
	case r.Method == http.MethodPost && r.URL.Path == path && json.NewDecoder(r.Body).Decode(&object) == nil:
		s.objects = append(s.objects, object)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(object)
	default:
		s.refused = append(s.refused, r.Method+" "+r.URL.Path)
		w.WriteHeader(http.StatusForbidden)
	}
}

// published returns the labels that the worker wrote, ours and NFD's apart, in the
// form of `labels`.
func (s *apiServer) published(t *testing.T) (ours, others string) {
	t.Helper()
	if len(s.objects) != 1 || len(s.refused) > 0 {
		t.Fatalf("%d objects, other requests %v", len(s.objects), s.refused)
	}
	labels := s.objects[0].Spec.Labels
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		line := key + "=" + labels[key] + "\n"
		if name := strings.TrimPrefix(key, prefix); strings.HasPrefix(name, "gpudirect.") || strings.HasPrefix(name, "gdr.") {
			ours += line
		} else {
			others += line
		}
	}
	return ours, others
}
