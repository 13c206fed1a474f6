//go:build vm

package vm

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gdr-features/test/vm/wire"
)

const (
	// skewInterval is between two readings of the agent when nothing happens.
	skewInterval = "20s"
	// skewSoon is how long a change may take to reach the API server, of this machine's
	// time: the emulated one is slow, and other tests may use the CPUs.
	skewSoon = 30 * time.Second
	// skewWrites and skewRequests are the most that an agent may ask of the API server while
	// its clock is set once, a driver is loaded and removed, and a watch may be cut;
	// skewMemory is the limit of the DaemonSet, in KiB.
	skewWrites, skewRequests, skewMemory = 2, 10, 64 << 10
)

// When the clock of a node is set, by hours forward or back, and that of the API server is
// not, the agent goes on with its NodeFeature: the labels stay, a driver that is loaded or
// removed is published as soon as before, nothing else is written, and the agent stays
// ready. An API server that restarts meanwhile is found again.
func TestClockNodeFeature(t *testing.T) {
	c := startCluster(t)
	a := startPublishing(c)
	a.loadNeeds("mlx5_core")
	c.until("published", clusterLimit, a.has(bare))
	var skew time.Duration // of the node's clock
	for _, step := range []struct {
		to      time.Duration
		restart bool // of the API server
	}{
		{time.Hour, false},
		{-time.Hour, false},
		{-2 * time.Hour, true},
		{0, false},
	} {
		what, limit := fmt.Sprintf("the clock from %+g to %+g hours", skew.Hours(), step.to.Hours()), skewSoon
		s := a.strained(what)
		set := a.setClock(step.to - skew)
		skew = step.to
		if step.restart {
			c.startAPI()
			limit += time.Minute // an agent that has lost its API server tries again within a minute
		}
		a.insert("mlx5_core")
		s.took = c.until(what+", driver loaded", limit, a.has(inbox))
		a.unload("mlx5_core")
		s.took = max(s.took, c.until(what+", driver removed", skewSoon, a.has(bare)))
		a.expectReady(set)
		s.judge()
	}
	if r := a.do(wire.Request{Command: wire.Kill, PID: a.pid}); r.Status != 0 {
		t.Errorf("the agent ended with %d", r.Status)
	}
}

// inbox are the labels of node with a driver of the kernel's own.
var inbox = bare.with(labels{"gdr.mofed": "inbox"})

// publishing is an agent that publishes a NodeFeature.
type publishing struct {
	*machine
	cluster *cluster
	pid     int
	address string // where it listens, from here
}

// startPublishing boots a machine that reaches the cluster and starts the agent.
func startPublishing(c *cluster) *publishing {
	c.t.Helper()
	address := "127.0.0.1:" + freePort(c.t)
	w := node()
	w.modules = append(w.modules, "virtio_pci", "virtio_net")
	w.files = c.agentFiles()
	w.args = append(w.args, "-netdev", "user,id=net,hostfwd=tcp:"+address+"-"+guestAddress+":9400")
	w.device("virtio-net-pci,netdev=net,bus=pcie.0,romfile=")
	m := boot(c.t, w, "")
	m.load("virtio_pci")
	m.load("virtio_net")
	m.do(wire.Request{Command: wire.Up, Device: "eth0", Path: guestAddress})
	r := m.do(wire.Request{Command: wire.Start, Path: agentLog, Args: []string{
		"/gdr-features-agent", "run", "--kubeconfig=/kubeconfig", "--node-name=" + nodeName, "--namespace=" + agentName,
		"--interval=" + skewInterval, "--settle=0s",
	}})
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("the agent said:\n%s", m.read(agentLog))
		}
	})
	return &publishing{m, c, r.PID, address}
}

// has returns a function that gives an error unless the NodeFeature has exactly these
// labels.
func (a *publishing) has(want labels) func() error {
	return func() error {
		got, err := a.cluster.published()
		if err == nil && !maps.Equal(got, want) {
			err = fmt.Errorf("labels of the NodeFeature (-want +got):\n%s", cmp.Diff(want, got))
		}
		return err
	}
}

// setClock moves the clock and gives what it says then.
func (a *publishing) setClock(by time.Duration) time.Time {
	a.t.Helper()
	now, err := time.Parse(time.RFC3339, a.do(wire.Request{Command: wire.Clock, Offset: int64(by / time.Second)}).Out)
	if err != nil {
		a.t.Fatal(err)
	}
	return now
}

// expectReady waits until the agent has confirmed twice what is published, by the clock that
// was set: after the last event, and at its interval. It is healthy and ready all the time.
func (a *publishing) expectReady(set time.Time) {
	a.t.Helper()
	for range 2 {
		before := a.lastPublish()
		a.cluster.until("confirmed", late, func() error {
			for _, path := range []string{"/healthz", "/readyz"} {
				if text := a.serves(path); text != "ok\n" {
					a.t.Errorf("%s: %s", path, text)
				}
			}
			last := a.lastPublish()
			if after := last.Sub(set); after < 0 || after > clusterLimit {
				a.t.Errorf("last published %v after the clock was set", after)
			}
			if last.Equal(before) {
				return fmt.Errorf("still as of %v", last)
			}
			return nil
		})
	}
}

// serves returns what the agent answers.
func (a *publishing) serves(path string) string {
	a.t.Helper()
	r, err := (&http.Client{Timeout: skewSoon}).Get("http://" + a.address + path)
	if err != nil {
		a.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(text)
}

// lastPublish is when the agent last published, by its clock.
func (a *publishing) lastPublish() time.Time {
	a.t.Helper()
	_, rest, _ := strings.Cut(a.serves("/metrics"), "\n"+`gdr_last_publish_timestamp_seconds{publisher="nodefeature"} `)
	text, _, _ := strings.Cut(rest, "\n")
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		a.t.Fatal(err)
	}
	return time.UnixMilli(int64(seconds * 1000))
}

// strain counts what an agent asks of the API server from a moment on.
type strain struct {
	*publishing
	what   string
	before int // requests
	began  time.Time
	took   time.Duration // until the labels were right, at most
}

func (a *publishing) strained(what string) *strain {
	return &strain{publishing: a, what: what, before: len(a.cluster.requests()), began: time.Now()}
}

// judge logs what was counted, and fails the test if it was too much, or if a write had
// other labels than those of the machine without driver and with it.
func (s *strain) judge() {
	s.t.Helper()
	all, took := s.cluster.requests()[s.before:], time.Since(s.began)
	writes := 0
	for _, r := range all {
		if !r.writes() {
			continue
		}
		writes++
		if got := r.ResponseObject.labels(); !maps.Equal(got, bare) && !maps.Equal(got, inbox) {
			s.t.Errorf("%s: %s %s: status %d, labels %v", s.what, r.Verb, r.RequestURI, r.ResponseStatus.Code, got)
		}
	}
	memory := s.peak()
	s.t.Logf("strain: %s: %d requests, of these %d writes, in %v; at most %d KiB resident; right after %v at most",
		s.what, len(all), writes, took.Round(time.Second), memory, s.took.Round(time.Millisecond))
	if writes > skewWrites || len(all) > skewRequests || memory > skewMemory {
		s.t.Errorf("%s: more than %d writes, %d requests or %d KiB", s.what, skewWrites, skewRequests, skewMemory)
	}
}

// peak is the most memory that the agent has used, in KiB.
func (a *publishing) peak() int {
	a.t.Helper()
	_, rest, _ := strings.Cut(a.read(fmt.Sprintf("/proc/%d/status", a.pid)), "VmHWM:")
	var size int
	if _, err := fmt.Sscan(rest, &size); err != nil {
		a.t.Fatal(err)
	}
	return size
}
