//go:build image

package image

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnpacked: an image that buildah has mounted is judged in its directory, on a node that is
// elsewhere, as docs/pod.md shows it.
func TestUnpacked(t *testing.T) {
	m := exampleMachine(t)
	s := m.Ready()
	s.Modules = nil // DMA-BUF is the only way
	node := m.Tree(t, s)
	storage := t.TempDir()
	buildah := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "buildah", append([]string{"--storage-driver=vfs", "--root=" + filepath.Join(storage, "root"), "--runroot=" + filepath.Join(storage, "run")}, args...)...)
		var errs strings.Builder
		c.Stderr = &errs
		out, err := c.Output()
		if err != nil {
			t.Fatalf("buildah %s: %v\n%s", args[0], err, errs.String())
		}
		return strings.TrimSpace(string(out))
	}
	for suite, want := range map[string]int{"bookworm": 0, "bullseye": 2} {
		container := buildah("from", "scratch")
		buildah("copy", container, filepath.Join("../userspace/.bin", suite), "/")
		buildah("copy", container, "testdata/libnccl2.status", "/var/lib/dpkg/status")
		dir := buildah("mount", container)
		c := exec.CommandContext(t.Context(), "../../bin/gdr-features", "--root", node, "check", "--pod", "--image", dir, "--for", "nccl")
		if r := finish(t, c); r.Status != want || (want == 2) != strings.Contains(r.Out, "This image is not ready for GPUDirect RDMA:\nLibibverbsTooOld: ") {
			t.Errorf("%s: status %d\n%s%s", suite, r.Status, r.Out, r.Err)
		}
		buildah("umount", container)
		buildah("rm", container)
	}
}
