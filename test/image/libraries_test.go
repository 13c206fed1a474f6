//go:build image

package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inImage puts the user space of a release of Debian into the container, with the program in a
// volume: this is how it runs in the job's own image.
func (w *workload) inImage(suite string) {
	w.t.Helper()
	from := filepath.Join("../userspace/.bin", suite)
	if _, err := os.Stat(filepath.Join(from, "etc/ld.so.cache")); err != nil {
		w.t.Fatalf("%v; run test/userspace/build.sh %s", err, suite)
	}
	volume := open(w.t)
	for _, dir := range []string{volume, filepath.Dir(volume)} {
		if err := os.Chmod(dir, 0o777); err != nil {
			w.t.Fatal(err)
		}
	}
	w.bind(volume, "/gdr", "rw")
	if r := w.run(w.t, "/gdr-features", "copy", "/gdr"); r.Status != 0 || r.Out+r.Err != "" {
		w.t.Fatalf("%+v", r)
	}
	root := w.path("rootfs")
	if err := os.Remove(filepath.Join(root, "gdr-features")); err != nil {
		w.t.Fatal(err)
	}
	if out, err := exec.CommandContext(w.t.Context(), "cp", "-a", from+"/.", root).CombinedOutput(); err != nil {
		w.t.Fatalf("%v %s", err, out)
	}
	// The job's framework.
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), []byte("Package: libnccl2\nVersion: 2.27.3-1+cuda12.9\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// withoutPeermem leaves the node DMA-BUF alone.
func (w *workload) withoutPeermem() {
	w.t.Helper()
	for _, m := range w.mounts {
		if m.Destination != "/host" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(m.Source, "sys/module/nvidia_peermem")); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestJobLibraries: in a real container with the libraries of a release of Debian, check --pod
// says whether they can use the node's ways to GPU memory.
func TestJobLibraries(t *testing.T) {
	for _, tt := range []struct {
		suite   string
		peermem bool
		status  int
		want    string
	}{
		{"bookworm", false, 0, "libibverbs 44.0, with ibv_reg_dmabuf_mr"},
		{"bookworm", true, 0, "libibverbs 44.0, with ibv_reg_dmabuf_mr"},
		{"bullseye", false, 2, "LibibverbsTooOld: libibverbs 33.2 has no ibv_reg_dmabuf_mr"},
		{"bullseye", true, 0, "libibverbs 33.2 has no ibv_reg_dmabuf_mr: on nodes without peermem"},
	} {
		t.Run(tt.suite, func(t *testing.T) {
			w := newWorkload(t)
			if !tt.peermem {
				w.withoutPeermem()
			}
			w.inImage(tt.suite)
			r := w.run(t, "/gdr/gdr-features", "--sysfs=/host/sys", "--procfs=/host/proc", "check", "--pod", "--level", "PXB", "--for", "nccl")
			if r.Status != tt.status || !strings.Contains(r.Out, tt.want) || !strings.Contains(r.Out, "nccl 2.27.3 registers GPU memory by") && r.Status == 0 {
				t.Errorf("status %d, want %d and %q\n%s%s", r.Status, tt.status, tt.want, r.Out, r.Err)
			}
		})
	}
}

// TestOwnImage: in our own image, which has no libraries, the preflight says that it cannot
// see the job's.
func TestOwnImage(t *testing.T) {
	w := newWorkload(t)
	if lines, r := w.check("check", "--pod", "--level", "PXB"); r.Status != 0 || !strings.Contains(r.Out, "LibrariesNotSeen: the job's libraries are not judged") {
		t.Errorf("status %d %q\n%s", r.Status, lines, r.Out)
	}
}
