package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
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
