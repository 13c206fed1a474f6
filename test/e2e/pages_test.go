package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// page is a page of the repository, as test/pages reads it. That package is of a module
// with other versions of Kubernetes than this one.
type page struct {
	Path   string
	Blocks []struct {
		Below, Language, Kind, Text string
		Tests, Commands             []string
	}
	Spans []string
}

// allPages returns the pages of the repository.
func allPages(t *testing.T) (all []page) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), program("pages"), repository).Output()
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// blocksBelow returns the blocks of a language below a heading of a page.
func blocksBelow(t *testing.T, path, heading, language string) (blocks []string) {
	t.Helper()
	for _, p := range allPages(t) {
		for _, b := range p.Blocks {
			if filepath.Join(repository, p.Path) == filepath.Clean(path) && b.Below == heading && b.Language == language {
				blocks = append(blocks, b.Text)
			}
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no block of %s below %q", path, language, heading)
	}
	return blocks
}

// taken are the blocks of commands that tests have asked for, as "TEST TEXT".
var taken sync.Map

// commandsBelow returns the blocks of shell commands below a heading of a page that name this
// test.
func commandsBelow(t *testing.T, path, heading string) (blocks []string) {
	t.Helper()
	test := topTest(t)
	for _, p := range allPages(t) {
		for _, b := range p.Blocks {
			if filepath.Join(repository, p.Path) == filepath.Clean(path) && b.Below == heading && slices.Contains(b.Tests, test) {
				blocks = append(blocks, b.Text)
				taken.Store(test+" "+b.Text, true)
			}
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no block of commands for %s below %q", path, test, heading)
	}
	return blocks
}

// allTaken checks that this test has asked for all blocks of commands that name it.
func allTaken(t *testing.T) {
	t.Helper()
	for _, p := range allPages(t) {
		for _, b := range p.Blocks {
			if _, ok := taken.Load(topTest(t) + " " + b.Text); !ok && slices.Contains(b.Tests, topTest(t)) {
				t.Errorf("%s, %s: this test does not run\n%s", p.Path, b.Below, b.Text)
			}
		}
	}
}

// topTest returns the name of the test that a test is a part of.
func topTest(t *testing.T) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

// names are what the text calls commands that blocks show in full.
var names = []string{
	"kubectl describe node", "kubectl apply", "kubectl apply -k", "kubectl delete -k", "kubectl get nodes -L",
	"helm push", "helm test", "helm uninstall", "helm upgrade", "helm template", "kubectl rollout undo",
}

// ranElsewhere are commands that need more than TestPagesCommands has, by how they begin.
var ranElsewhere = map[string]string{
	"kubectl logs -l job-name=train ":    "needs a kubelet; the script log.txtar reads what such Pods print",
	"kubectl logs -l job-name=gdr-nccl ": "the same",
	"kubectl run gdr ":                   "needs a kubelet; the image is run as such a Pod by hack/check.sh image",
	"kubectl gdr image":                  "the script image.txtar, with an image",
	"kubectl gdr log":                    "the script log.txtar, with a log",
	"kubectl gdr example":                "TestExample",
	"kubectl get network-attachment-":    "needs the resource of Multus, which TestExample has",
	"kubectl gdr --wait":                 "TestChain: it waits until all nodes are ready",
	"kubectl get nvidiadrivers":          "TestLeaving",
	"helm -n gdr-features test":          "needs a kubelet; TestHelmTest runs what its Pod would",
	"helm template nvidia/gpu-operator ": "needs NVIDIA's repository of charts",
}

// kubelet matches what kubectl says of a Pod that no kubelet runs, or that does not have this
// container of the GPU Operator.
var kubelet = regexp.MustCompile(`no preferred addresses found|container \S+ is not valid for pod|does not have a host assigned`)

// TestPagesCommands runs the commands of kubectl and helm that the pages show within the text,
// and the blocks that name this test. What would change something is a dry run.
func TestPagesCommands(t *testing.T) {
	slow(t)
	t.Parallel()
	n := newNode(t, &shared, "pages")
	a := n.run(t, machine(t, "dell-xe9680-h100", "ready"))
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		_, err := a.published(ctx)
		return err
	}, a.process); err != nil {
		t.Fatal(err)
	}
	rolledOut(t)
	install(t, "mpijobs.yaml") // of an example
	// Which a controller creates in every namespace.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := shared.admin.kube.CoreV1().ServiceAccounts(agentName).Create(t.Context(), account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	kubeconfig, err := shared.kubeconfig(t.TempDir(), "admin", shared.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	without := newNode(t, &shared, "pages-without-agent")
	write := strings.NewReplacer("-n gpu-operator exec", "exec", "job-0", a.pod.Name, "cp bin/", "cp "+program("")+"/", "gdr-features-NODE", "gdr-features-"+n.name, "NODE", n.name, "NAME", without.name, "POD", a.pod.Name)
	ran := 0
	for _, command := range append([]string{"kubectl config set-context --current --namespace=" + agentName}, shownCommands(t)...) {
		command = write.Replace(command)
		out, errs, status := shell(t, kubeconfig, "cd "+root+" && "+harmless(t, command))
		needsKubelet := regexp.MustCompile(` (exec|logs|cp) `).MatchString(command)
		if strings.HasPrefix(command, "kubectl gdr diff") && status == 2 { // some nodes of the tests differ
			status = 0
		}
		if needsKubelet != kubelet.MatchString(errs) || !needsKubelet && status != 0 {
			t.Errorf("%s: status %d\n%s%s", command, status, out, errs)
		}
		ran++
	}
	if ran < 18 {
		t.Errorf("only %d commands", ran)
	}
}

// rolledOut sets the status that the controller of DaemonSets would set: without it, kubectl
// rollout status waits.
func rolledOut(t *testing.T) {
	t.Helper()
	sets := shared.admin.kube.AppsV1().DaemonSets(agentName)
	set, err := sets.Get(t.Context(), agentName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status := fmt.Appendf(nil, `{"status":{"observedGeneration":%d}}`, set.Generation)
	if _, err := sets.Patch(t.Context(), agentName, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// shownCommands returns the commands that TestPagesCommands runs: those of kubectl and helm within
// the text, and those of the blocks that name it.
func shownCommands(t *testing.T) (all []string) {
	t.Helper()
	for _, p := range allPages(t) {
		shown := slices.DeleteFunc(p.Spans, func(span string) bool {
			return !strings.HasPrefix(span, "kubectl ") && !strings.HasPrefix(span, "helm ")
		})
		for _, b := range p.Blocks {
			if slices.Contains(b.Tests, "TestPagesCommands") {
				shown = append(shown, b.Commands...)
			}
		}
		for _, command := range shown {
			elsewhere := slices.Contains(names, command) || slices.Contains(all, command)
			for begins := range ranElsewhere {
				elsewhere = elsewhere || strings.HasPrefix(command, begins)
			}
			if !elsewhere {
				all = append(all, command)
			}
		}
	}
	return all
}

// reading matches commands that change nothing, and changing those that have a dry run.
var (
	reading  = regexp.MustCompile(`^kubectl (-n \S+ )?(get|describe|logs|exec|cp|config|gdr|rollout status)\b`)
	changing = regexp.MustCompile(`^kubectl (-n \S+ )?(apply|delete|label)\b[^|]*$`)
)

// harmless makes a dry run of a command that changes something.
func harmless(t *testing.T, command string) string {
	t.Helper()
	command, _, _ = strings.Cut(command, " # ")
	command, _, _ = strings.Cut(command, " > ") // a file in the repository
	switch {
	case strings.HasPrefix(command, "helm install "):
		return strings.Replace(command, "helm install ", "helm template --kube-version=v1.35.3 ", 1)
	case changing.MatchString(command):
		return command + " --dry-run=server"
	case strings.Contains(command, " rollout status "):
		return command + " --timeout=" + patience.String()
	case reading.MatchString(command):
		return command
	}
	t.Errorf("this test does not know how to run %s without a change", command)
	return "true"
}
