package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Clients of the agent's port cannot make it use more memory than its limit: it runs in a
// cgroup with the limit of the DaemonSet, and the peak of its resident memory stays below
// that. It answers health probes in time for a kubelet, and serves metrics afterwards.
func TestScraped(t *testing.T) {
	t.Parallel()
	n := newNode(t, &shared, "scraped")
	tree := machine(t, "dell-xe9680-h100", "ready")
	a := n.run(t, tree, "--listen="+address(t))
	n.expect(t, labelsOf(t, tree))
	memory := a.pod.Spec.Containers[0].Resources.Limits.Memory().Value()
	limit := int(memory >> 10) // KiB
	a.process.confine(t, memory)
	var answered atomic.Int64 // of the scrapes
	for _, attack := range []struct {
		name string
		one  func(context.Context, *agent) error
	}{
		{"500 scrapes", func(ctx context.Context, a *agent) error {
			status, text, err := a.scrape(ctx, "/metrics")
			switch {
			case err != nil: // closed in favor of another
				return ctx.Err()
			case status != http.StatusServiceUnavailable && !strings.Contains(text, "\ngdr_ready 1\n"):
				return fmt.Errorf("status %d", status)
			}
			answered.Add(1)
			return nil
		}},
		{"500 that do not read the answer", func(ctx context.Context, a *agent) error {
			return a.send(ctx, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 2*time.Second)
		}},
		{"500 that send nothing", func(ctx context.Context, a *agent) error { return a.send(ctx, "", 2*time.Second) }},
		{"500 long headers", func(ctx context.Context, a *agent) error {
			return a.send(ctx, "GET /metrics HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 900<<10), 2*time.Second)
		}},
	} {
		t.Run(attack.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var all sync.WaitGroup
			failed := make(chan error, 500)
			for range 500 {
				all.Go(func() {
					if err := attack.one(ctx, a); err != nil {
						failed <- err
					}
				})
			}
			all.Wait()
			if len(failed) > 0 {
				t.Errorf("%d of 500 failed: %v", len(failed), <-failed)
			}
			if err := a.process.alive(); err != nil {
				t.Fatal(err)
			}
			if err := until(t.Context(), patience, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, time.Second) // as long as a kubelet waits
				defer cancel()
				status, text, err := a.scrape(ctx, "/healthz")
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("/healthz: %d %s", status, text)
				}
				return err
			}, a.process); err != nil {
				t.Error(err)
			}
			peak := a.process.peak(t)
			t.Logf("at most %d KiB resident, of %d", peak, limit)
			if peak > limit {
				t.Errorf("%d KiB were resident, more than the %d of the DaemonSet's limit", peak, limit)
			}
		})
	}
	if answered.Load() == 0 {
		t.Error("no scrape was answered")
	}
	if a.metric(t, "gdr_ready") != 1 {
		t.Error("not ready afterwards")
	}
}

// send sends a text to the agent's port and keeps the connection open for a while. The
// agent may close it sooner.
func (a *agent) send(ctx context.Context, text string, keep time.Duration) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", a.listens())
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(keep))
	_, _ = c.Write([]byte(text))
	time.Sleep(keep)
	return nil
}

// confine puts a process into a cgroup with a memory limit, as a container runtime does.
// Where the machine does not allow that, only the peak is checked.
func (p *process) confine(t *testing.T, limit int64) {
	t.Helper()
	for parent, file := range map[string]string{"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"} {
		dir := filepath.Join(parent, fmt.Sprintf("gdr-features-e2e-%d", p.pid))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		stopAfter(t, p) // is called before that
		if os.WriteFile(filepath.Join(dir, file), fmt.Append(nil, limit), 0) == nil &&
			os.WriteFile(filepath.Join(dir, "cgroup.procs"), fmt.Append(nil, p.pid), 0) == nil {
			t.Logf("the limit of %d bytes is enforced in %s", limit, dir)
			return
		}
	}
	t.Log("no cgroup can be made here: the peak of what is resident has to do")
}

// peak returns the peak of the resident memory of a process, in KiB.
func (p *process) peak(t *testing.T) (size int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	if _, err := fmt.Sscan(string(rest), &size); err != nil {
		t.Fatal(err)
	}
	return size
}
