package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/namespace"
)

const (
	// releaseBin is where test/release/build.sh puts the release and the registry, below .bin.
	releaseBin = "../../release/.bin/"
	// documentedRegistry is the registry in the commands of our pages.
	documentedRegistry = "registry.example.com"
	// pulledImage is the directory below .bin into which images are pulled.
	pulledImage = "pulled"
)

// site is a cluster without gdr-features, and a registry: what an administrator has who has
// copied a release.
type site struct {
	*cluster
	registry string // address
	plugin   string // directory with kubectl-gdr of the release
}

// TestRelease installs a release by the commands of README.md and deploy/README.md: image and
// chart go to a registry and come from there, by Helm and by install.yaml. The program in the
// image runs as the agent, for the architecture of this machine alone. After the commands that
// uninstall it, the cluster has the objects that it had before.
func TestRelease(t *testing.T) {
	s := newSite(t)
	t.Parallel() // only now: a cluster that starts takes CPU time from other tests
	install := commandsBelow(t, repository+"/README.md", "## Deployment")
	more := commandsBelow(t, deploy+"/README.md", "## A release")
	for _, command := range install[:2] {
		if !slices.Contains(more, command) {
			t.Errorf("deploy/README.md says something other than README.md: %s", command)
		}
	}
	uninstall := commandsBelow(t, deploy+"/README.md", "## Uninstall")
	s.shell(t, more[0])
	upgrade := commandsBelow(t, deploy+"/README.md", "## Upgrade")[0]
	t.Run("Helm", func(t *testing.T) {
		s.comeAndGo(t, install[0], upgrade, with(t, uninstall, "helm uninstall"), uninstall[0])
	})
	t.Run("install.yaml", func(t *testing.T) {
		s.comeAndGo(t, install[1], install[1], with(t, uninstall, "install.yaml"), uninstall[0])
	})
	allTaken(t)
}

// with returns the block of commands that contains a text.
func with(t *testing.T, blocks []string, text string) string {
	t.Helper()
	i := slices.IndexFunc(blocks, func(b string) bool { return strings.Contains(b, text) })
	if i < 0 {
		t.Fatalf("no commands with %q in %q", text, blocks)
	}
	return blocks[i]
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{cluster: ownCluster(t, "release", "", (*cluster).startEmpty), plugin: t.TempDir()}
	s.deleteNamespaces(t)
	s.serve(t)
	archive := program(fmt.Sprintf("%sone/kubectl-gdr-v1.0.0-linux-%s.tar.gz", releaseBin, runtime.GOARCH))
	extract(t, archive, s.plugin, "--strip-components=1")
	return s
}

// extract unpacks a tar archive.
func extract(t *testing.T, archive, into string, options ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "tar", append([]string{"-xzf", archive, "-C", into}, options...)...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s (make e2e builds the release)", err, out)
	}
}

// deleteNamespaces runs the controller that empties and deletes namespaces, which is a part of
// kube-controller-manager, until the test ends.
func (s *site) deleteNamespaces(t *testing.T) {
	t.Helper()
	client, err := metadata.NewForConfig(s.admin.config)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(s.admin.kube, 0)
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{})) // which logs nothing
	controller := namespace.NewNamespaceController(ctx, s.admin.kube, client,
		s.admin.kube.Discovery().ServerPreferredNamespacedResources, factory.Core().V1().Namespaces(), time.Minute, corev1.FinalizerKubernetes)
	ended := make(chan struct{})
	factory.Start(ctx.Done())
	go func() {
		defer close(ended)
		controller.Run(ctx, 2)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		factory.Shutdown()
	})
}

// serve runs a registry until the test ends. It has the certificate of the API server, which is
// for 127.0.0.1 too.
func (s *site) serve(t *testing.T) {
	t.Helper()
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	s.registry = "127.0.0.1:" + ports[0]
	config := filepath.Join(s.dir, "registry.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s/registry}}\n"+
		"http: {addr: %q, tls: {certificate: %s, key: %s/cert/apiserver.key}}\n", s.dir, s.registry, s.certificate(), s.dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	registry, err := start(s.dir, releaseBin+"registry", []string{"OTEL_TRACES_EXPORTER=none"}, "serve", config)
	if err != nil {
		t.Fatal(err)
	}
	stopAfter(t, registry)
	if err := until(t.Context(), patience, func(ctx context.Context) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.registry)
		if err == nil {
			c.Close()
		}
		return err
	}, registry); err != nil {
		t.Fatal(err)
	}
}

// shell runs commands of our pages beside the files of the release, as the administrator, and
// returns what they print.
func (s *site) shell(t *testing.T, script string) string {
	t.Helper()
	config, err := s.kubeconfig(s.dir, "admin", s.admin.token)
	if err != nil {
		t.Fatal(err)
	}
	script = strings.ReplaceAll(script, documentedRegistry, s.registry)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // kubectl delete waits for ever
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = program(releaseBin + "one")
	cmd.Env = []string{
		"KUBECONFIG=" + config, "HOME=" + s.dir, "SSL_CERT_FILE=" + s.certificate(),
		"PATH=" + s.plugin + ":" + program("") + ":" + os.Getenv("PATH"),
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", script, err, out)
	}
	t.Logf("%s\n%s", script, out)
	return string(out)
}

// comeAndGo installs the release, waits until a Node has its labels, upgrades it to the same
// version, which changes nothing, and uninstalls it. What depends on the labels is what check
// prints.
func (s *site) comeAndGo(t *testing.T, install, upgrade, uninstall, check string) {
	n := newNode(t, s.cluster, strings.ToLower(filepath.Base(t.Name())))
	tree := machine(t, "dell-xe9680-h100", "ready")
	labels, before := labelsOf(t, tree), s.objects(t)

	start := time.Now()
	s.shell(t, install)
	set, err := s.admin.kube.AppsV1().DaemonSets(agentName).Get(t.Context(), agentName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	installed := time.Since(start)
	entrypoint := s.pull(t, set.Spec.Template.Spec.Containers[0].Image)
	pulled := time.Since(start)
	a := n.runProgram(t, entrypoint, tree, set.Spec.Template.Spec.Containers[0].Args[1:]...)
	n.expect(t, labels)
	t.Logf("from an empty cluster to labels on the Node: %v (%v for the commands, %v to pull the image)",
		time.Since(start).Round(time.Millisecond), installed.Round(time.Millisecond), (pulled - installed).Round(time.Millisecond))

	row := strings.Fields(s.shell(t, "kubectl gdr --no-headers "+n.name))
	if want := strings.Fields(n.name + " true PIX -"); len(row) != len(want)+1 || !slices.Equal(row[:len(want)], want) {
		t.Errorf("kubectl gdr shows %q, not %q", row, want)
	}
	installs := fmt.Sprintf("nfd.k8s-sigs.io NodeFeature %[1]s/%[1]s-%[2]s", agentName, n.name)
	if now := s.objects(t); !slices.Contains(now, installs) {
		t.Errorf("%s is not among the objects of the cluster: %q", installs, now)
	}
	if out := s.shell(t, strings.TrimSuffix(check, "\n")+" || true"); out != "" { // grep that finds nothing
		t.Errorf("these depend on the labels:\n%s", out)
	}

	s.shell(t, upgrade)
	now, err := s.admin.kube.AppsV1().DaemonSets(agentName).Get(t.Context(), agentName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(set.Spec, now.Spec); diff != "" {
		t.Errorf("an upgrade to the same version (-before +after):\n%s", diff)
	}

	ended := make(chan error, 1)
	go func() { ended <- s.endWithDaemonSet(t.Context(), a) }()
	s.shell(t, uninstall)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	n.expect(t, nil)
	if diff := cmp.Diff(before, s.objects(t)); diff != "" {
		t.Errorf("objects of the cluster (-before +after):\n%s", diff)
	}
}

// endWithDaemonSet ends the agent and its Pod once the DaemonSet is gone, as the DaemonSet's
// controller and the kubelet do.
func (s *site) endWithDaemonSet(ctx context.Context, a *agent) error {
	if err := until(ctx, patience, func(ctx context.Context) error {
		_, err := s.admin.kube.AppsV1().DaemonSets(agentName).Get(ctx, agentName, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the DaemonSet is there: error %w", err)
		}
		return nil
	}, a.process); err != nil {
		return err
	}
	if err := a.process.stop(); err != nil {
		return err
	}
	err := s.admin.kube.CoreV1().Pods(agentName).Delete(ctx, a.pod.Name, *metav1.NewDeleteOptions(0))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// pull pulls an image for this machine and returns the path below .bin of the program that it
// starts.
func (s *site) pull(t *testing.T, image string) string {
	t.Helper()
	if want := s.registry + "/gdr-features:v1.0.0"; image != want {
		t.Fatalf("the image of the DaemonSet is %s, not %s", image, want)
	}
	dir := program(pulledImage)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir+"/root", 0o755); err != nil {
		t.Fatal(err)
	}
	s.shell(t, "skopeo copy --quiet docker://"+image+" dir:"+dir+"/image")
	type descriptor struct{ Digest string }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	var config struct{ Config struct{ Entrypoint []string } }
	file := func(d descriptor) string { return dir + "/image/" + strings.TrimPrefix(d.Digest, "sha256:") }
	readJSON(t, dir+"/image/manifest.json", &manifest)
	readJSON(t, file(manifest.Config), &config)
	for _, layer := range manifest.Layers {
		extract(t, file(layer), dir+"/root")
	}
	if len(config.Config.Entrypoint) != 1 {
		t.Fatalf("the image starts %q", config.Config.Entrypoint)
	}
	return pulledImage + "/root" + config.Config.Entrypoint[0]
}

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// objects returns the names of all objects of the cluster.
func (s *site) objects(t *testing.T) (names []string) {
	t.Helper()
	lists, err := s.admin.kube.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") {
				continue
			}
			objects, err := s.admin.dynamic.Resource(version.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("%s: %v", r.Name, err)
			}
			for _, o := range objects.Items {
				names = append(names, fmt.Sprintf("%s %s %s/%s", version.Group, o.GetKind(), o.GetNamespace(), o.GetName()))
			}
		}
	}
	slices.Sort(names)
	return names
}
