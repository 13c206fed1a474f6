package agent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"gdr-features/host"
	"gdr-features/internal/features"
	"gdr-features/internal/label"
	"gdr-features/internal/monitor"
	"gdr-features/internal/publish"
	"gdr-features/internal/report"
	testmachine "gdr-features/test/machine"
)

// linked is a publisher that counts what it would write: label and feature.
type linked struct {
	fake
	last   string
	writes int
}

func (w *linked) Publish(_ context.Context, c publish.Content) (bool, error) {
	now := fmt.Sprint(c.Labels[label.Degraded], " ", features.State(c.Report)["findings"])
	w.mu.Lock()
	defer w.mu.Unlock()
	if now == w.last {
		return false, nil
	}
	w.last, w.writes = now, w.writes+1
	return true, nil
}

func (w *linked) now() (text string, writes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.writes
}

// TestLinkTrainsDown: a near NIC trains down to x4 under a running agent. Label, feature and metric
// move within an interval and the settle time, with one write, and back up again.
func TestLinkTrainsDown(t *testing.T) {
	m, err := testmachine.Load("../../testdata/machines/bluefield3-l40s.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := m.Tree(t, m.Ready())
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	width := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "sys/bus/pci/devices/0000:19:00.0/current_link_width"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "sys/class/infiniband/rocep27s0f1/ports/1/state"), []byte("4: ACTIVE\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, nil)
		w := &linked{fake: fake{name: "one", changed: make(chan struct{}, 1), start: h.start}}
		h.agent.Publishers = []publish.Publisher{w}
		mon := monitor.New("v1", []string{"one"}, time.Hour, time.Now)
		h.agent.Monitor = mon
		machine := report.NewReader(fs, report.ForPublishing)
		h.agent.Collect = func(ctx context.Context, parts report.Parts) report.Report { return machine.Read(ctx, parts) }
		slow := func() bool {
			answer := httptest.NewRecorder()
			mon.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			text, _ := io.ReadAll(answer.Result().Body)
			return strings.Contains(string(text), `gdr_finding{check="link",code="LinkDegraded",status="WARN"} 1`)
		}
		is := func(when, degraded string, finding bool, writes int) {
			t.Helper()
			synctest.Wait()
			text, n := w.now()
			if value, codes, _ := strings.Cut(text, " "); value != degraded || strings.Contains(codes, "LinkDegraded") != finding || n != writes || slow() != finding {
				t.Errorf("%s: published %q, %d writes, metric %v; want %s, %v, %d", when, text, n, slow(), degraded, finding, writes)
			}
		}
		h.run()
		h.sleepUntil(50 * s)
		is("at first", "false", false, 1)
		width("4\n")
		h.sleepUntil(50*s + 72*s)
		is("trained down", "true", true, 2)
		h.sleepUntil(400 * s)
		is("still down", "true", true, 2)
		width("16\n")
		h.sleepUntil(400*s + 72*s)
		is("up again", "false", false, 3)
		h.sleepUntil(800 * s)
		is("in the end", "false", false, 3)
		h.stopCleanly()
	})
}

// TestUnreadLogged: a published label that cannot be read any more is logged once and stays, and again
// only after it could be read in between. What was never published, or is read all the same, is not.
func TestUnreadLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{name: "one"}
		h := newHarness(t, ready, f)
		now := func(labels label.Set, unknown ...string) {
			h.machine.mu.Lock()
			defer h.machine.mu.Unlock()
			h.machine.labels, h.machine.unknown = labels, label.Names{}
			for _, name := range unknown {
				h.machine.unknown[name] = true
			}
		}
		hidden := label.Set{label.Capable: "true"}
		is := func(when string, lines int) {
			t.Helper()
			if n := h.logged(logrus.WarnLevel, "cannot be read any more"); n != lines || f.published() != short(ready) {
				t.Errorf("%s: %d lines, published %q; want %d, %q", when, n, f.published(), lines, short(ready))
			}
		}
		h.run()
		h.sleepUntil(2 * time.Minute)
		now(ready, label.Ready, label.ACS)
		h.sleepUntil(4 * time.Minute)
		is("read all the same, or never published", 0)
		now(hidden, label.Ready, label.Level)
		h.sleepUntil(10 * time.Minute)
		is("hidden", 1)
		if e := h.hook.LastEntry(); e.Data["labels"] != "gdr.level gpudirect.rdma" {
			t.Errorf("last line %q of %v", e.Message, e.Data)
		}
		now(ready)
		h.sleepUntil(12 * time.Minute)
		now(hidden, label.Ready, label.Level)
		h.sleepUntil(20 * time.Minute)
		is("hidden again", 2)
		h.stopCleanly()
	})
}
