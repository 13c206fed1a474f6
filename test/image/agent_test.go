//go:build image

package image

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// featuresDir is where the agent writes feature files by default.
const featuresDir = "/etc/kubernetes/node-feature-discovery/features.d"

// agentPod is the Pod of the variant feature-file on a node that is the example
// machine: user 0 without capabilities, and a directory of the host's. It gives
// the file that appears there too.
func agentPod(t *testing.T) (*pod, string) {
	t.Helper()
	p := newPod(t)
	p.root = true
	p.env = []string{"NODE_NAME=node-1", "POD_NAMESPACE=gdr-features"}
	p.bind(tree(t), "/host", "ro")
	dir := open(t)
	p.bind(dir, filepath.Dir(featuresDir), "rw")
	return p, filepath.Join(dir, filepath.Base(featuresDir), "gdr-features.features")
}

// published reports whether a feature file has the labels that `labels` prints,
// each on a line of its own, in whatever order.
func published(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(sorted(string(text)), func(line string) bool { return strings.HasPrefix(line, "#") })
	if diff := cmp.Diff(sorted(golden(t, "labels")), lines); diff != "" {
		t.Errorf("feature file (-labels +published):\n%s", diff)
	}
}

func sorted(text string) []string { return slices.Sorted(strings.Lines(text)) }

func TestRunOnce(t *testing.T) {
	p, file := agentPod(t)
	if r := p.run(t, "/gdr-features", "run", "--publish=file", "--once", "--root=/host"); r.Status != 0 || r.Out != "" {
		t.Fatalf("%+v", r)
	}
	published(t, file)
	beside, err := os.ReadDir(filepath.Dir(filepath.Dir(file)))
	if err != nil || len(beside) != 1 {
		t.Errorf("%v is left beside the directory of feature files, error %v", beside, err)
	}
}

// The agent is the first process of its container, which the kernel lets ignore
// signals that it has no handler for.
func TestTerminated(t *testing.T) {
	p, file := agentPod(t)
	c := p.command(t, "/gdr-features", "run", "--publish=file", "--root=/host", "--interval=1s")
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	if !appears(t, file, 20*time.Second) {
		t.Error("no feature file")
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil { // runc passes it on
		t.Error(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%v\n%s%s", err, &out, &errs)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still running 10 s after SIGTERM")
	}
	published(t, file)
}

// appears waits for a file.
func appears(t *testing.T, file string, limit time.Duration) bool {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(limit); ; {
		if _, err := os.Stat(file); err == nil {
			return true
		}
		select {
		case <-end:
			return false
		case <-tick.C:
		}
	}
}

// A Pod that cannot publish says so in one line.
func TestCannotPublish(t *testing.T) {
	for _, test := range []struct{ publish, want string }{
		{"nodefeature", "kubeconfig"}, // no API server, no kubeconfig
		{"file", "read-only"},         // no such directory, and none can be made
	} {
		t.Run(test.publish, func(t *testing.T) {
			p := newPod(t)
			p.env = []string{"NODE_NAME=node-1", "POD_NAMESPACE=gdr-features"}
			p.bind(tree(t), "/host", "ro")
			r := p.run(t, "/gdr-features", "run", "--once", "--root=/host", "--publish="+test.publish)
			if r.Status != 1 || r.Out != "" || strings.Count(r.Err, "\n") != 1 || !strings.Contains(r.Err, test.want) {
				t.Errorf("%+v, want one line about %s", r, test.want)
			}
		})
	}
}

// Only the program in the same directory is executed.
func TestAgentMissing(t *testing.T) {
	p := newPod(t)
	if err := os.Remove(p.path("rootfs/gdr-features-agent")); err != nil {
		t.Fatal(err)
	}
	r := p.run(t, "/gdr-features", "run", "--once")
	if r.Status != 1 || strings.Count(r.Err, "\n") != 1 || !strings.Contains(r.Err, "/gdr-features-agent") {
		t.Errorf("%+v", r)
	}
}
