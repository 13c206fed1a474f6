package monitor_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/internal/expect"
	"gdr-features/internal/monitor"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
	"gdr-features/tristate"
)

// read reads an example machine in a state.
func read(t *testing.T, state string, damage func(dir string)) *report.Report {
	t.Helper()
	m, err := machine.Load("../../testdata/machines/epyc-3gpu-phb-nccltests320.txt")
	if err != nil {
		t.Fatal(err)
	}
	s, ok := machine.StateNamed(state)
	if !ok {
		t.Fatal(state)
	}
	dir := m.Tree(t, s)
	if damage != nil {
		damage(dir)
	}
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	r := report.Collect(context.Background(), fs, report.Options{})
	return &r
}

func get(t *testing.T, m *monitor.Monitor, path string) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(text)
}

// ours leaves out Go's own metrics and the comments.
func ours(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "gdr_") && !strings.Contains(line, "_bucket") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func TestMetrics(t *testing.T) {
	now := time.Unix(1700000000, 0)
	m := monitor.New("v1", []string{"file", "nodefeature"}, time.Minute, func() time.Time { return now })
	if _, body := get(t, m, "/metrics"); strings.Contains(body, "gdr_ready ") {
		t.Error("gdr_ready before anything was read")
	}
	deviates := read(t, "closed-no-peermem", nil)
	deviates.Expected = &expect.Result{State: tristate.False, Type: "epyc", Checks: []expect.Check{
		{Name: "gpus.count", State: tristate.True}, {Name: "nics.rate", State: tristate.False}, {Name: "nics.rate", State: tristate.False}, {Name: "acs"},
	}}
	m.Read(deviates, 20*time.Millisecond, true)
	m.Published("file", true, nil)
	m.Published("file", false, nil)
	m.Reverted("file")
	m.Published("nodefeature", false, errors.New("down"))
	_, body := get(t, m, "/metrics")
	golden := filepath.Join("testdata", "metrics.txt")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(ours(body)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), ours(body)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// Series of what is gone are gone.
	m.Read(read(t, "ready", nil), time.Millisecond, true)
	_, body = get(t, m, "/metrics")
	if strings.Contains(body, "gdr_reason{") || strings.Contains(body, "gdr_expected") || strings.Contains(body, "gdr_deviation") || !strings.Contains(body, "gdr_ready 1\n") {
		t.Error("ready, but:\n" + ours(body))
	}
}

// The rate is 0 where no port is active. Without a NIC there is no rate and no level.
func TestRateAndLevel(t *testing.T) {
	noNIC := func(dir string) {
		for _, function := range []string{"0000:e2:00.0", "0000:e2:00.1"} {
			if err := os.Remove(filepath.Join(dir, "sys/bus/pci/devices", function)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		state  string
		damage func(dir string)
		want   string
	}{
		{"ready", nil, "gdr_level{level=\"NODE\"} 1\ngdr_rate_bits_per_second 2.5e+10\n"},
		{"no-rdma", nil, "gdr_level{level=\"NODE\"} 1\ngdr_rate_bits_per_second 0\n"},
		{"ready", noNIC, ""},
	} {
		m := monitor.New("v1", nil, time.Minute, time.Now)
		m.Read(read(t, test.state, test.damage), time.Millisecond, true)
		_, body := get(t, m, "/metrics")
		got := ""
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "gdr_level") || strings.HasPrefix(line, "gdr_rate") {
				got += line
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.state, got, test.want)
		}
	}
}

// Unknown is -1, and a name that is not UTF-8 is harmless.
func TestUnknown(t *testing.T) {
	m := monitor.New("v1", nil, time.Minute, time.Now)
	m.Read(read(t, "ready", func(dir string) {
		if err := os.RemoveAll(filepath.Join(dir, "sys/module")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "proc/kallsyms"), filepath.Join(dir, "proc/x")); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "sys/class/infiniband/\xff\xfe"), 0o755); err != nil {
			t.Fatal(err)
		}
	}), time.Millisecond, false)
	_, body := get(t, m, "/metrics")
	if !strings.Contains(body, "gdr_ready -1\n") || !strings.Contains(body, `gdr_reason{reason="Unreadable"} 1`) {
		t.Error(ours(body))
	}
}

func TestHealth(t *testing.T) {
	now := time.Unix(1700000000, 0)
	m := monitor.New("v1", []string{"file", "nodefeature"}, time.Minute, func() time.Time { return now })
	expect := func(path string, want int) {
		t.Helper()
		if status, body := get(t, m, path); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
	expect("/healthz", http.StatusOK)
	expect("/readyz", http.StatusServiceUnavailable)
	now = now.Add(61 * time.Second)
	expect("/healthz", http.StatusServiceUnavailable)
	m.Read(read(t, "ready", nil), time.Millisecond, true)
	expect("/healthz", http.StatusOK)
	m.Published("file", true, nil)
	m.Published("nodefeature", false, errors.New("down"))
	expect("/readyz", http.StatusServiceUnavailable)
	m.Published("nodefeature", false, nil)
	expect("/readyz", http.StatusOK)
	expect("/", http.StatusNotFound)
}

// Two RDMA devices of one NIC whose names are not UTF-8 do not break the metrics.
func TestNamesNotUTF8(t *testing.T) {
	m := monitor.New("v1", nil, time.Minute, time.Now)
	m.Pairs = true
	m.Read(read(t, "ready", func(dir string) {
		for _, name := range []string{"\xff", "\xfe"} {
			for path, link := range map[string]string{
				"sys/class/infiniband/" + name: "../../devices/pci0000:e0/0000:e0:03.1/0000:e2:00.0/infiniband/" + name,
				"sys/devices/pci0000:e0/0000:e0:03.1/0000:e2:00.0/infiniband/" + name + "/device": "../..",
			} {
				path = filepath.Join(dir, path)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(link, path)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}), time.Millisecond, false)
	status, body := get(t, m, "/metrics")
	if status != http.StatusOK || !strings.Contains(body, "gdr_ready 1\n") {
		t.Errorf("status %d\n%s", status, body)
	}
	if n := strings.Count(body, `nic="0000:e2:00.0",rdma="mlx5_0"`); n != 3 {
		t.Errorf("%d pairs with the device beside them", n)
	}
	if n := strings.Count(body, "rdma=\"\uFFFD\""); n != 3 {
		t.Errorf("%d pairs with names that are not UTF-8, want one of each GPU\n%s", n, ours(body))
	}
}

// A scrape beyond maxScrapes at the same time gets status 503; health is still served.
func TestMaxScrapes(t *testing.T) {
	m := monitor.New("v1", nil, time.Minute, time.Now)
	m.Read(read(t, "ready", nil), time.Millisecond, true)
	handler := m.Handler()
	block, blocked := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			handler.ServeHTTP(&slow{httptest.NewRecorder(), block, blocked}, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		})
	}
	for range 4 {
		<-blocked
	}
	for path, want := range map[string]int{"/metrics": http.StatusServiceUnavailable, "/healthz": http.StatusOK} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d", path, w.Code, want)
		}
	}
	close(block)
	all.Wait()
	if status, _ := get(t, m, "/metrics"); status != http.StatusOK {
		t.Errorf("afterwards: %d", status)
	}
}

// slow is a connection that takes the answer only once it is unblocked.
type slow struct {
	*httptest.ResponseRecorder
	block   <-chan struct{}
	blocked chan<- struct{}
}

func (w *slow) Write(text []byte) (int, error) {
	select {
	case <-w.block:
	default:
		w.blocked <- struct{}{}
		<-w.block
	}
	return w.ResponseRecorder.Write(text)
}

// A publication that reverts a change by others is counted as such, too.
func TestReverted(t *testing.T) {
	m := monitor.New("v1", []string{"file"}, time.Minute, time.Now)
	for range 2 {
		m.Published("file", true, nil)
		m.Reverted("file")
	}
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, result := range []string{"written", "reverted"} {
		if want := `gdr_publish_total{publisher="file",result="` + result + `"} 2`; !strings.Contains(answer.Body.String(), want) {
			t.Errorf("no %s", want)
		}
	}
}
