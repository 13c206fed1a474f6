//go:build image

package image

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// nobody is the user of the image.
const nobody = 65532

// pod is the unpacked image, ready to run as the DaemonSet's Pod.
//
// testdata/pod.json is what kubelet 1.35 (masked and read-only paths) and the
// CRI plugin of containerd 2.1 (everything else) ask runc for
// when they get the DaemonSet's Pod (TestDaemonSet). testdata/seccomp.json is
// containerd's RuntimeDefault for a process without capabilities on amd64. Of the
// Pod's sandbox only the namespaces are here, of its cgroup the limit of memory.
type pod struct {
	dir    string
	mounts []mount
	env    []string
	root   bool     // runs as user 0, still without capabilities
	caps   []string // but these
	// locked is RLIMIT_MEMLOCK in bytes; nil for the runtime's own.
	locked *uint64
	nodes  []deviceNode
}

// deviceNode is a device that runc makes in the container. Its cgroup allows only devices
// that every container has, as 1:3, /dev/null.
type deviceNode struct {
	Path  string      `json:"path"`
	Type  string      `json:"type"`
	Major int         `json:"major"`
	Minor int         `json:"minor"`
	Mode  os.FileMode `json:"fileMode"`
}

type mount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Source      string   `json:"source"`
	Options     []string `json:"options"`
}

// result is how a program ended.
type result struct {
	Out, Err string
	Status   int
}

func newPod(t *testing.T) *pod {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("runc needs root here")
	}
	if _, err := exec.LookPath("runc"); err != nil {
		t.Fatalf("%v; on Debian: apt-get install --no-install-recommends runc", err)
	}
	p := &pod{dir: open(t)}
	root := p.path("rootfs")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range native(t).files {
		if err := os.WriteFile(filepath.Join(root, filepath.Base(f.Name)), f.body, os.FileMode(f.Mode)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// open makes a temporary directory that anybody may look into.
func open(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (p *pod) path(name string) string { return filepath.Join(p.dir, name) }

// bind mounts a directory or file of ours: options is ro or rw.
func (p *pod) bind(source, destination, options string) {
	p.mounts = append(p.mounts, mount{destination, "bind", source, []string{"rbind", "rprivate", options}})
}

// onNode runs gdr-features on the machine at /host.
func (p *pod) onNode(t *testing.T, args []string) result {
	t.Helper()
	return p.run(t, append([]string{"/gdr-features", "--sysfs=/host/sys", "--procfs=/host/proc"}, args...)...)
}

// run runs a program of the Pod to its end.
func (p *pod) run(t *testing.T, args ...string) result {
	t.Helper()
	return finish(t, p.command(t, args...))
}

// command prepares a container. Its standard streams, signals and exit status
// are those of runc.
func (p *pod) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	p.configure(t, args)
	id := "gdr-features-" + rand.Text()
	state := p.path("state")
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(state, id)); err != nil {
			return // runc removed it
		}
		if out, err := exec.Command("runc", "--root", state, "delete", "--force", id).CombinedOutput(); err != nil {
			t.Errorf("runc delete: %v\n%s", err, out)
		}
	})
	return exec.CommandContext(t.Context(), "runc", "--root", state, "run", "--bundle", p.dir, id)
}

// configure writes what runc runs.
func (p *pod) configure(t *testing.T, args []string) {
	t.Helper()
	spec, seccomp := decode(t, "testdata/pod.json"), decode(t, "testdata/seccomp.json")
	if runtime.GOARCH != "amd64" {
		delete(seccomp, "architectures") // runc then takes the machine's own
	}
	process := spec["process"].(map[string]any)
	process["args"] = args
	if p.root {
		process["user"] = map[string]any{"uid": 0, "gid": 0}
	}
	for _, set := range []string{"bounding", "effective", "permitted"} {
		process["capabilities"].(map[string]any)[set] = p.caps
	}
	for _, env := range p.env {
		process["env"] = append(process["env"].([]any), env)
	}
	for _, m := range p.mounts {
		spec["mounts"] = append(spec["mounts"].([]any), m)
	}
	linux := spec["linux"].(map[string]any)
	linux["seccomp"] = seccomp
	if p.locked != nil {
		process["rlimits"] = []map[string]any{{"type": "RLIMIT_MEMLOCK", "soft": *p.locked, "hard": *p.locked}}
	}
	if len(p.nodes) > 0 {
		linux["devices"] = p.nodes
	}
	linux["resources"].(map[string]any)["memory"] = map[string]any{"limit": memoryLimit(t)}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.path("config.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func decode(t *testing.T, name string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// onHost runs a program of the image as the same user, but outside the Pod.
func (p *pod) onHost(t *testing.T, args ...string) result {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(p.path("rootfs"), args[0]), args[1:]...)
	c.Dir, c.Env = "/", []string{}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return finish(t, c)
}

// finish runs a command and gives how it ended.
func finish(t *testing.T, c *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if status := (*exec.ExitError)(nil); err != nil && !errors.As(err, &status) {
		t.Fatalf("%v: %v", c.Args, err)
	}
	return result{out.String(), errs.String(), c.ProcessState.ExitCode()}
}
