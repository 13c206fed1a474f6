package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestInstallPage runs what deploy/README.md says below "Set the image" and "Install", and the
// blocks of "Upgrade" and "Uninstall" that name it. Where something would change in the cluster,
// it is a dry run, and helm template for helm install.
func TestInstallPage(t *testing.T) {
	slow(t)
	t.Parallel()
	const (
		page  = deploy + "/README.md"
		image = "registry.example.com/gdr-features:v1.0.0"
	)
	kubeconfig, err := shared.kubeconfig(t.TempDir(), "admin", shared.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copied := filepath.Join(dir, "gdr-features", "deploy")
	if err := os.CopyFS(copied, os.DirFS(deploy)); err != nil {
		t.Fatal(err)
	}
	own := blocksBelow(t, page, "## Set the image", "yaml")[0]
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(in, line string) string {
		t.Helper()
		out, errs, status := shell(t, kubeconfig, "cd "+in+" && "+line)
		if status != 0 {
			t.Fatalf("%s: status %d\n%s%s", line, status, out, errs)
		}
		return out
	}
	build := func(in string) []*unstructured.Unstructured {
		t.Helper()
		objects, err := decode([]byte(run(in, "kustomize build .")))
		if err != nil {
			t.Fatal(err)
		}
		set := only[appsv1.DaemonSet](t, objects, "DaemonSet")
		if got := set.Spec.Template.Spec.Containers[0].Image; got != image {
			t.Errorf("the image is %s", got)
		}
		return objects
	}

	want := kustomized(t, "", []string{"acs", "host-sys"})
	for _, o := range want {
		if containers, ok, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers"); ok {
			containers[0].(map[string]any)["image"] = image
			if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(byName(t, want), byName(t, build(dir))); diff != "" {
		t.Errorf("objects (-components acs and host-sys +own kustomization):\n%s", diff)
	}

	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	edit := regexp.MustCompile("`(cd deploy/kustomize/base && kustomize edit [^`]*)`").FindSubmatch(text)
	if edit == nil {
		t.Fatal("the page does not say how to edit the base")
	}
	clone := filepath.Dir(copied)
	run(clone, string(edit[1]))
	build(filepath.Join(copied, "kustomize/base"))

	install := commandsBelow(t, page, "## Install")
	if out := run(dir, strings.TrimSpace(install[0])+" --dry-run=server"); !strings.Contains(out, "daemonset.apps/gdr-features") {
		t.Errorf("applied: %s", out)
	}
	helm, label, found := strings.Cut(strings.TrimSpace(install[1]), "\nkubectl ")
	if !found {
		t.Fatalf("no two commands: %s", install[1])
	}
	// Helm refuses even in a dry run what is there already.
	if out := run(clone, strings.Replace(helm, " install ", " template ", 1)+" --kube-version=v1.35.3"); !strings.Contains(out, image) {
		t.Errorf("installed: %s", out)
	}
	run(dir, "kubectl "+label+" --overwrite --dry-run=server")
	run(dir, strings.TrimSpace(with(t, commandsBelow(t, page, "## Uninstall"), "delete -k"))+" --dry-run=server --ignore-not-found")
	run(dir, strings.TrimSpace(commandsBelow(t, page, "## Upgrade")[0])+" --dry-run=server")
	rolledOut(t)
	rollout, nodes, found := strings.Cut(install[2], "\n")
	run(dir, rollout+" --timeout="+patience.String())
	if !found || !strings.Contains(run(dir, nodes), "GDR.LEVEL") {
		t.Errorf("no table of the Nodes' labels: %s", install[2])
	}
	allTaken(t)
}
