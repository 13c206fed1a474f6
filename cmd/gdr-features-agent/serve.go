package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Limits of the memory that clients can make the agent use. A further connection takes the
// place of another; see places.
const (
	maxConnections = 64
	maxHeader      = 1 << 10 // bytes; net/http reads up to 4 KiB more
)

// serve answers HTTP requests at an address until ctx ends, unless it cannot listen there.
func (p *program) serve(ctx context.Context, address string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--listen %s: %w; set another address, or an empty one to serve nothing", address, err)
	}
	server := newServer(handler)
	context.AfterFunc(ctx, func() { _ = server.Close() })
	p.log.WithField("address", listener.Addr().String()).Info("serving /metrics, /healthz and /readyz")
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.log.WithError(err).Error("metrics and health are no longer served")
		}
	}()
	return nil
}

// newServer returns a server that keeps at most maxConnections, each for a short time.
func newServer(handler http.Handler) *http.Server {
	places := places{busy: map[net.Conn]bool{}}
	server := &http.Server{
		Handler: places.answering(handler), ConnState: places.changed,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: maxHeader,
	}
	server.SetKeepAlivesEnabled(false) // idle clients must not keep connections from others
	return server
}

// places keeps at most maxConnections. For a further one the oldest of the client that has most is
// closed, but none that is being answered. A client that sends its request at once, as a kubelet
// and Prometheus do, is answered however many others hang.
type places struct {
	mu   sync.Mutex
	open []net.Conn        // in the order of their arrival
	busy map[net.Conn]bool // their request has arrived and is being answered
}

// changed is a http.Server's ConnState.
func (p *places) changed(c net.Conn, to http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch to {
	case http.StateNew:
		p.open = append(p.open, c)
		if len(p.open) > maxConnections {
			i := p.least()
			_ = p.open[i].Close()
			p.open = slices.Delete(p.open, i, i+1)
		}
	case http.StateClosed:
		p.open = slices.DeleteFunc(p.open, func(o net.Conn) bool { return o == c })
	default:
	}
}

// least returns the connection that another may take the place of. There is one: the newest is
// not being answered yet.
func (p *places) least() int {
	have := map[string]int{} // connections by client
	for _, c := range p.open {
		have[client(c)]++
	}
	least := -1
	for i, c := range p.open {
		if !p.busy[c] && (least < 0 || have[client(c)] > have[client(p.open[least])]) {
			least = i
		}
	}
	return least
}

func client(c net.Conn) string {
	host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	return host
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// answering marks the connection of a request while it is being answered.
func (p *places) answering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			p.mark(c, true)
			defer p.mark(c, false)
		}
		next.ServeHTTP(w, r)
	})
}

func (p *places) mark(c net.Conn, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[c] = busy; !busy {
		delete(p.busy, c)
	}
}
