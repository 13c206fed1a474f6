//go:build image

package image

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// workload is a container on the example machine, with that machine's /sys and drivers, and
// with its own /dev and /proc/self.
type workload struct {
	*pod
	t *testing.T
}

// newWorkload is one in which all is right: a root user with IPC_LOCK, one of the machine's
// eight GPUs, and the NIC that is nearest to it.
func newWorkload(t *testing.T) *workload {
	t.Helper()
	m := exampleMachine(t)
	node := tree(t)
	m.Container(t, node, nil)
	w := &workload{newPod(t), t}
	w.root, w.caps = true, []string{"CAP_IPC_LOCK"}
	low := uint64(8 << 20) // the default; more takes rights that this test may not have
	w.locked = &low
	w.nodes = []deviceNode{null("/dev/nvidia3"), null("/dev/infiniband/uverbs5")}
	// The program is told where the machine's /proc is, and finds the container's own
	// processes there.
	if err := os.Mkdir(filepath.Join(node, "proc/own"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("own/self", filepath.Join(node, "proc/self")); err != nil {
		t.Fatal(err)
	}
	w.bind(node, "/host", "ro")
	w.mounts = append(w.mounts, mount{"/host/proc/own", "proc", "proc", []string{"nosuid", "noexec", "nodev"}})
	return w
}

// null is a device node that anybody may use.
func null(path string) deviceNode { return deviceNode{path, "c", 1, 3, 0o666} }

// check runs check --pod and returns what it says about the container: a line for each
// finding, status and check and code.
func (w *workload) check(args ...string) (lines []string, r result) {
	w.t.Helper()
	r = w.onNode(w.t, args)
	if r.Err != "" {
		w.t.Errorf("standard error: %s", r.Err)
	}
	about := regexp.MustCompile(`(?m)^(OK|WARN|FAIL|UNKNOWN) +(gpu-nodes|verbs-nodes|locked-memory|roce-gids|gid-index|gpudirect-variables|nic-variables|nvshmem-ibgda) +(\w+)`)
	for _, found := range about.FindAllStringSubmatch(r.Out, -1) {
		if found[1] == "OK" {
			found[3] = ""
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", found[1], found[2], found[3])))
	}
	return lines, r
}

// TestPreflight: check --pod names what a real container lacks, says nothing else when all is
// well, and its last lines, which kubelet keeps, name each failure.
func TestPreflight(t *testing.T) {
	const gpu, nic, memory = "OK gpu-nodes", "OK verbs-nodes", "OK locked-memory"
	for _, tt := range []struct {
		name   string
		change func(w *workload)
		status int
		want   []string
	}{
		{"all is well", func(*workload) {}, 0, []string{gpu, nic, memory}},
		{"no device nodes", func(w *workload) { w.nodes = nil }, 2, []string{"FAIL gpu-nodes GPUNodeMissing", "FAIL verbs-nodes VerbsNodeMissing", memory}},
		{"a low memlock", func(w *workload) { w.caps = nil }, 2, []string{gpu, nic, "FAIL locked-memory LockedMemoryLow"}},
		{"IPC_LOCK in the bounding set only", func(w *workload) { w.root = false }, 2, []string{gpu, nic, "FAIL locked-memory IPCLockIneffective"}},
		{
			"nodes of another user", func(w *workload) {
				w.root, w.caps = false, nil
				for i := range w.nodes {
					w.nodes[i].Mode = 0o600
				}
			},
			2,
			[]string{"FAIL gpu-nodes DeviceNodeDenied", "FAIL verbs-nodes DeviceNodeDenied", "FAIL locked-memory LockedMemoryLow"},
		},
		{
			"a device that the cgroup forbids", func(w *workload) { w.nodes[1].Major, w.nodes[1].Minor = 231, 192 },
			2,
			[]string{gpu, "FAIL verbs-nodes DeviceNodeDenied", memory},
		},
		{"a far NIC", func(w *workload) { w.nodes[1].Path = "/dev/infiniband/uverbs11" }, 2, []string{gpu, "WARN verbs-nodes NearNICNotHere", memory}},
		{
			"a variable", func(w *workload) { w.env = []string{"NCCL_IB_DISABLE=1", "NCCL_IB_HCA==mlx5_0:1"} },
			2,
			[]string{gpu, nic, memory, "FAIL gpudirect-variables GPUDirectOff", "FAIL nic-variables WrongNICVariable"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorkload(t)
			tt.change(w)
			lines, r := w.check("check", "--pod", "--level", "PXB")
			if diff := cmp.Diff(tt.want, lines); diff != "" || r.Status != tt.status {
				t.Errorf("status %d, want %d (-want +got):\n%s\n%s", r.Status, tt.status, diff, r.Out)
			}
			if r.Status == 0 {
				if strings.Contains(r.Out, "not ready") {
					t.Errorf("something is said though all is well:\n%s", r.Out)
				}
				return
			}
			end := r.Out[max(0, len(r.Out)-2048):]
			if _, end, _ = strings.Cut(end, "\nThis container is not ready for GPUDirect RDMA:\n"); end == "" {
				t.Errorf("no reasons at the end of\n%s", r.Out)
			}
			for _, line := range tt.want {
				if words := strings.Fields(line); words[0] == "FAIL" && !strings.Contains(end, words[2]) {
					t.Errorf("%s is not among the reasons:\n%s", words[2], end)
				}
			}
			if tt.name == "a far NIC" && !strings.Contains(end, "is at SYS, farther than PXB") {
				t.Errorf("the level is not among the reasons:\n%s", end)
			}
		})
	}
}

// TestPreflightExample runs the initContainer of deploy/examples/preflight.yaml, and compares
// it with the container that it stands for.
func TestPreflightExample(t *testing.T) {
	text, err := os.ReadFile("../../deploy/examples/preflight.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, document, _ := strings.Cut(string(text), "\n---\n")
	var job batchv1.Job
	if err := yaml.UnmarshalStrict([]byte(document), &job); err != nil {
		t.Fatal(err)
	}
	spec := job.Spec.Template.Spec
	if len(spec.InitContainers) != 1 || len(spec.Containers) != 1 {
		t.Fatalf("%d initContainers, %d containers", len(spec.InitContainers), len(spec.Containers))
	}
	preflight, main := spec.InitContainers[0], spec.Containers[0]
	if preflight.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError {
		t.Errorf("termination message policy %q", preflight.TerminationMessagePolicy)
	}
	same := func(c corev1.Container) []any {
		return []any{c.EnvFrom, c.Env, c.Resources.Limits, c.SecurityContext.RunAsUser, c.SecurityContext.Capabilities}
	}
	if diff := cmp.Diff(same(main), same(preflight)); diff != "" {
		t.Errorf("environment, devices, user and capabilities (-container +initContainer):\n%s", diff)
	}
	w := newWorkload(t)
	if add := preflight.SecurityContext.Capabilities.Add; !slices.Equal(add, []corev1.Capability{"IPC_LOCK"}) || *preflight.SecurityContext.RunAsUser != 0 {
		t.Errorf("user %d, capabilities %v; the test's container has root with IPC_LOCK", *preflight.SecurityContext.RunAsUser, add)
	}
	if lines, r := w.check(preflight.Args...); r.Status != 0 {
		t.Errorf("%+v\n%s", lines, r.Out)
	}
	w.nodes = nil
	if _, r := w.check(preflight.Args...); r.Status != 2 {
		t.Errorf("without devices: status %d\n%s", r.Status, r.Out)
	}
}
