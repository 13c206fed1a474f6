//go:build worker

package nfdsource

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"sigs.k8s.io/node-feature-discovery/api/generated/clientset/versioned/fake"
	"sigs.k8s.io/node-feature-discovery/pkg/apis/nfd/validate"
	nfdworker "sigs.k8s.io/node-feature-discovery/pkg/nfd-worker" // registers NFD's own sources
	"sigs.k8s.io/node-feature-discovery/pkg/utils"
	"sigs.k8s.io/node-feature-discovery/source"

	"gdr-features/host"
	"gdr-features/internal/features"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
)

func collect(t *testing.T, fs *host.FS) report.Report {
	t.Helper()
	return report.Collect(t.Context(), fs, report.Options{})
}

// labels discovers and gives the labels as the worker takes them.
func labels(t *testing.T, fs *host.FS) map[string]string {
	t.Helper()
	s := node(fs)
	if err := s.Discover(); err != nil {
		t.Fatal(err)
	}
	got, err := nfdworker.GetFeatureLabels(s, *regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The worker publishes the labels of the report on every machine, in every
// state, and the master accepts them.
func TestLabels(t *testing.T) {
	check := func(m *machine.Machine, state string) {
		t.Run(m.Name+"/"+state, func(t *testing.T) {
			t.Parallel()
			fs := tree(t, m, state)
			r := collect(t, fs)
			got := labels(t, fs)
			if diff := cmp.Diff(r.Labels.Prefixed(label.DefaultPrefix), got); diff != "" {
				t.Errorf("labels (-report +worker):\n%s", diff)
			}
			for _, err := range validate.Labels(got) {
				t.Error(err)
			}
		})
	}
	for _, m := range machine.All(t, machines) {
		check(m, "ready")
	}
	for _, s := range machine.States()[1:] {
		check(small(t), s.Name)
	}
}

func TestNoGPU(t *testing.T) {
	m, err := machine.Parse("pci0000:00 numa=0\n  0000:00:01.0 ib 15b3:1021 rdma=mlx5_0\n")
	if err != nil {
		t.Fatal(err)
	}
	s := node(tree(t, m, "ready"))
	if err := s.Discover(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.GetLabels(); err != nil || len(got) != 0 {
		t.Errorf("labels %v, error %v", got, err)
	}
	f := s.GetFeatures()
	if _, ok := f.Attributes["node"]; !ok || len(f.Instances["nic"].Elements) != 1 {
		t.Errorf("features %v", f)
	}
}

// A real worker with NFD's own sources beside ours publishes what Features says.
func TestWorker(t *testing.T) {
	if source.GetFeatureSource("gdr") != nil {
		t.Skip("the registry of this process has the sources of an earlier run")
	}
	const node = "node-1"
	t.Setenv("NODE_NAME", node)
	t.Setenv("KUBERNETES_NAMESPACE", "nfd")
	fs := tree(t, small(t), "ready")
	ours, err := Sources(Options{Root: fs.Root()})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range ours {
		source.Register(s) // panics where a name is taken
	}
	t.Cleanup(klog.CaptureState().Restore)
	klog.SetLogger(klog.Logger{}) // what NFD finds on this machine is of no interest
	//nolint:staticcheck // NFD 0.19 has no schema for NewClientset
	client := fake.NewSimpleClientset()
	worker, err := nfdworker.NewNfdWorker(
		nfdworker.WithArgs(&nfdworker.Args{Oneshot: true}),
		nfdworker.WithKubernetesClient(&kubernetes.Clientset{}), // never asked
		nfdworker.WithNFDClient(client),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Run(); err != nil {
		t.Fatal(err)
	}
	got, err := client.NfdV1alpha1().NodeFeatures(utils.GetKubernetesNamespace()).Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := report.Collect(t.Context(), fs, report.ForTopo)
	want := features.Node(&r, "gdr.")
	for name, f := range want.Attributes {
		if diff := cmp.Diff(f, got.Spec.Features.Attributes[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, f := range want.Instances {
		if diff := cmp.Diff(f, got.Spec.Features.Instances[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"gdr-pci.function", "gdr-rdma.device", "gdr-rdma.port"} {
		if len(got.Spec.Features.Instances[name].Elements) == 0 {
			t.Errorf("no %s", name)
		}
	}
	if len(got.Spec.Features.Attributes["gdr-kmod.state"].Elements) == 0 {
		t.Error("no gdr-kmod.state")
	}
	for name, value := range r.Labels.Prefixed(label.DefaultPrefix) {
		if got.Spec.Labels[name] != value {
			t.Errorf("label %s is %q, want %q", name, got.Spec.Labels[name], value)
		}
	}
}
