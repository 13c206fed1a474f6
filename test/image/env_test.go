//go:build image

package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestMapInInitContainer runs the initContainer of deploy/examples/env-job.yaml: without
// privileges, with a read-only root, and with the device nodes of all GPUs and NICs, or of
// one of each. What it writes is what the program prints on the node, and a shell reads it.
func TestMapInInitContainer(t *testing.T) {
	m := exampleMachine(t)
	for _, tt := range []struct {
		name string
		gpus []int
		nics []string
		want string // of NCCL_IB_HCA
	}{
		{"all devices", []int{0, 1, 2, 3, 4, 5, 6, 7}, m.RDMADevices(), "=mlx5_0:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_9:1,mlx5_10:1,mlx5_11:1"},
		{"one GPU and one NIC", []int{3}, []string{"mlx5_5"}, "=mlx5_5:1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			node := tree(t)
			m.Container(t, node, tt.gpus, tt.nics...)
			p, volume := withDevices(t, node)
			container := initContainer(t)
			if r := p.onNode(t, container.Args); r.Status != 0 || r.Out+r.Err != "" {
				t.Fatalf("%+v", r)
			}
			file := filepath.Join(volume, "env")
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := p.onHost(t, append([]string{"/gdr-features", "--root=" + node}, withoutFile(container.Args)...)...)
			if diff := cmp.Diff(want.Out, string(got)); diff != "" || want.Status != 0 {
				t.Errorf("status %d (-on the node +in the container):\n%s", want.Status, diff)
			}
			for _, shell := range []string{"sh", "dash", "bash"} {
				c := exec.CommandContext(t.Context(), shell, "-ec", `. "$0"; printf %s "$NCCL_IB_HCA"`, file)
				if out, err := c.CombinedOutput(); err != nil || string(out) != tt.want {
					t.Errorf("%s reads %q, want %q (%v)", shell, out, tt.want, err)
				}
			}
			if left, err := os.ReadDir(volume); err != nil || len(left) != 1 {
				t.Errorf("%v is in the volume, error %v", left, err)
			}
		})
	}
}

// TestMapWithoutDevices: an initContainer that was given no GPU or no NIC fails the Pod, and
// its log says why.
func TestMapWithoutDevices(t *testing.T) {
	m := exampleMachine(t)
	for _, tt := range []struct {
		name string
		gpus []int
		nics []string
		want string
	}{
		{"no GPU", nil, m.RDMADevices(), "None of the 8 GPUs of this machine has a device node in /dev here"},
		{"no NIC", []int{0}, nil, "The GPU 0000:19:00.0 has no usable NIC"},
		{"a far NIC", []int{0}, []string{"mlx5_11"}, "The usable NIC nearest to the GPU 0000:19:00.0 is at SYS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			node := tree(t)
			m.Container(t, node, tt.gpus, tt.nics...)
			p, _ := withDevices(t, node)
			if r := p.onNode(t, initContainer(t).Args); r.Status != 2 || !strings.Contains(r.Err, tt.want) || r.Out != "" {
				t.Errorf("%+v, want status 2 and %q", r, tt.want)
			}
		})
	}
}

// initContainer is that of the example.
func initContainer(t *testing.T) container {
	t.Helper()
	text, err := os.ReadFile("../../deploy/examples/env-job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var job struct {
		Spec struct {
			Template struct {
				Spec struct{ InitContainers []container }
			}
		}
	}
	if err := yaml.Unmarshal(text, &job); err != nil || len(job.Spec.Template.Spec.InitContainers) != 1 {
		t.Fatalf("not one initContainer: %v", err)
	}
	c := job.Spec.Template.Spec.InitContainers[0]
	want := map[string]any{ // what testdata/pod.json has
		"runAsNonRoot": true, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
		"capabilities": map[string]any{"drop": []any{"ALL"}}, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
	}
	if diff := cmp.Diff(want, c.SecurityContext); diff != "" || len(c.Args) < 2 || c.Args[len(c.Args)-2] != "-f" {
		t.Fatalf("args %q (-testdata/pod.json +initContainer):\n%s", c.Args, diff)
	}
	return c
}

// withoutFile leaves out the last two arguments, "-f" and a file.
func withoutFile(args []string) []string { return args[:len(args)-2] }

// withDevices is a Pod with the /sys and /proc of a node at /host, its device nodes in /dev,
// and a volume, which it gives, at /etc/gdr.
func withDevices(t *testing.T, node string) (*pod, string) {
	t.Helper()
	p := newPod(t)
	p.bind(node, "/host", "ro")
	volume := open(t)
	if err := os.Chmod(volume, 0o777); err != nil { // as that of an emptyDir
		t.Fatal(err)
	}
	p.bind(volume, "/etc/gdr", "rw")
	for _, pattern := range []string{"nvidia*", "infiniband/*"} {
		found, err := filepath.Glob(filepath.Join(node, "dev", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			p.bind(file, strings.TrimPrefix(file, node), "rw")
		}
	}
	return p, volume
}
