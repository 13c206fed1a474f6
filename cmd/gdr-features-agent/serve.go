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
// place of the slowest one; see places.
const (
	maxConnections = 512
	maxHeader      = 8 << 10 // bytes
)

// serve answers HTTP requests at an address until ctx ends. The error tells that it cannot
// listen there.
func (p *program) serve(ctx context.Context, address string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--listen %s: %w; set another address, or an empty one to serve nothing", address, err)
	}
	server := http.Server{
		Handler: answering(handler), ConnContext: withPlace,
		ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: maxHeader,
	}
	server.SetKeepAlivesEnabled(false) // idle clients must not keep connections from others
	context.AfterFunc(ctx, func() { _ = server.Close() })
	p.log.WithField("address", listener.Addr().String()).Info("serving /metrics, /healthz and /readyz")
	go func() {
		if err := server.Serve(&places{Listener: listener, limit: maxConnections}); !errors.Is(err, http.ErrServerClosed) {
			p.log.WithError(err).Error("metrics and health are no longer served")
		}
	}()
	return nil
}

// places accepts connections and keeps at most limit of them. When there is no place for
// another, the oldest one that is not being answered is closed: a client that sends its
// request at once, as a kubelet and Prometheus do, is answered however many others send
// nothing, or slowly.
type places struct {
	net.Listener
	limit int

	mu   sync.Mutex
	open []*place // in the order of their arrival
}

// place is a connection of places.
type place struct {
	net.Conn
	of   *places
	busy bool // its request has arrived and is being answered
}

// Accept implements net.Listener.
func (p *places) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &place{Conn: c, of: p}
	if slowest := p.add(one); slowest != nil {
		_ = slowest.Close()
	}
	return one, nil
}

// add adds a connection and returns the one that is to be closed for it, if any.
func (p *places) add(one *place) (slowest *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open = append(p.open, one); len(p.open) <= p.limit {
		return nil
	}
	i := slices.IndexFunc(p.open, func(o *place) bool { return !o.busy }) // one is not
	slowest = p.open[i]
	p.open = slices.Delete(p.open, i, i+1)
	return slowest
}

// Close implements net.Conn.
func (c *place) Close() error {
	c.of.mu.Lock()
	if i := slices.Index(c.of.open, c); i >= 0 {
		c.of.open = slices.Delete(c.of.open, i, i+1)
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (c *place) set(busy bool) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.busy = busy
}

type placeKey struct{}

// withPlace is a http.Server's ConnContext.
func withPlace(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, placeKey{}, c)
}

// answering marks the connection of a request while it is being answered.
func answering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(placeKey{}).(*place); ok {
			c.set(true)
			defer c.set(false)
		}
		next.ServeHTTP(w, r)
	})
}
