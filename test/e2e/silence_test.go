package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// While the API server cannot be reached and nothing is to be written, the time of the last
// publication stays the same; after a minute the agent counts failures and logs why. The
// alert GDRFeaturesPublishFailing depends on that: test/monitoring checks that it fires for
// such metrics. Afterwards publishing works again.
func TestSilence(t *testing.T) {
	slow(t)
	t.Parallel()
	const last = `gdr_last_publish_timestamp_seconds{publisher="nodefeature"}`
	for name, test := range map[string]struct {
		hang    bool
		noticed time.Duration // when the agent knows that the API server does not answer
	}{
		"refused": {false, 10 * time.Second},
		"hangs":   {true, 55 * time.Second}, // HTTP/2 pings: 30 s, and 15 for the answer
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, &shared, "silence-"+name)
			way := newRelay(t, strings.TrimPrefix(shared.server, "https://"))
			tree := machine(t, "dell-xe9680-h100", "ready")
			a := n.runAt(t, "https://"+way.address, tree, "--listen="+address(t))
			n.expect(t, labelsOf(t, tree))
			before := a.metric(t, last)
			if err := until(t.Context(), patience, func(context.Context) error {
				if now := a.metric(t, last); now <= before {
					return fmt.Errorf("while the object is watched, %s does not advance", last)
				}
				return nil
			}, a.process); err != nil {
				t.Error(err)
			}

			way.cut(test.hang)
			cut := time.Now()
			time.Sleep(test.noticed)
			before = a.metric(t, last)
			if err := until(t.Context(), 2*time.Minute, func(context.Context) error {
				if a.metric(t, failures) == 0 {
					return fmt.Errorf("no failure %v after the API server was last heard", time.Since(cut))
				}
				return nil
			}, a.process); err != nil {
				t.Fatal(err)
			}
			t.Logf("a failure is counted %v after the API server was last heard", time.Since(cut).Round(time.Second))
			failed := a.metric(t, failures)
			time.Sleep(10 * time.Second)
			if err := until(t.Context(), patience, func(context.Context) error {
				if now := a.metric(t, failures); now <= failed {
					return fmt.Errorf("%s stays at %v", failures, now)
				}
				return nil
			}, a.process); err != nil {
				t.Error(err)
			}
			if now := a.metric(t, last); now != before {
				t.Errorf("%s advances from %f to %f", last, before, now)
			}
			if !a.said(t, "publishing fails") || a.said(t, "publishing works again") {
				t.Error("the log does not say that publishing fails")
			}

			way.mend()
			if err := until(t.Context(), 2*time.Minute, func(context.Context) error {
				if now := a.metric(t, last); now <= before || !a.said(t, "publishing works again") {
					return fmt.Errorf("%s is %f, before %f", last, now, before)
				}
				return nil
			}, a.process); err != nil {
				t.Error(err)
			}
		})
	}
}

// relay forwards connections until it is cut.
type relay struct {
	address, to string

	mu    sync.Mutex
	open  []net.Conn
	alive bool
	stuck chan struct{} // closed when connections do not hang
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: l.Addr().String(), to: to, alive: true, stuck: make(chan struct{})}
	close(r.stuck)
	t.Cleanup(func() {
		_ = l.Close()
		r.mend()
		r.cut(false)
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(c)
		}
	}()
	return r
}

func (r *relay) serve(from net.Conn) {
	to, err := net.Dial("tcp", r.to)
	if err != nil {
		_ = from.Close()
		return
	}
	r.mu.Lock()
	r.open = append(r.open, from, to)
	refuse := !r.alive
	r.mu.Unlock()
	if refuse {
		_ = from.Close()
		_ = to.Close()
		return
	}
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			defer pair[0].Close()
			defer pair[1].Close()
			_, _ = io.Copy(&passage{pair[1], r}, pair[0])
		}()
	}
}

// passage forwards bytes, or holds them back.
type passage struct {
	net.Conn
	relay *relay
}

// Write implements io.Writer.
func (p *passage) Write(b []byte) (int, error) {
	p.relay.mu.Lock()
	stuck := p.relay.stuck
	p.relay.mu.Unlock()
	<-stuck
	return p.Conn.Write(b)
}

// cut closes all connections and refuses new ones, or makes them hang.
func (r *relay) cut(hang bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if hang {
		r.stuck = make(chan struct{})
		return
	}
	r.alive = false
	for _, c := range r.open {
		_ = c.Close()
	}
	r.open = nil
}

// mend ends the cut.
func (r *relay) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive = true
	select {
	case <-r.stuck:
	default:
		close(r.stuck)
	}
}

// runAt is like run, with another address of the API server.
func (n *node) runAt(t *testing.T, server, tree string, args ...string) *agent {
	t.Helper()
	return n.runTrusting(t, server, n.cluster.certificate(), tree, args...)
}

// runTrusting is runAt with another certificate authority.
func (n *node) runTrusting(t *testing.T, server, authority, tree string, args ...string) *agent {
	t.Helper()
	path, err := n.cluster.kubeconfig(n.dir, "relayed", "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	relayed := strings.NewReplacer(n.cluster.server, server, n.cluster.certificate(), authority, "relayed.token", agentName+".token").Replace(string(text))
	if err := os.WriteFile(path, []byte(relayed), 0o600); err != nil {
		t.Fatal(err)
	}
	return n.run(t, tree, append(args, "--kubeconfig="+path)...)
}
