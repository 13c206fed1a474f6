package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// serve answers at an address until ctx ends. The error tells that nobody can
// listen there.
func (p *program) serve(ctx context.Context, address string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--listen %s: %w; give another address, or none to serve nothing", address, err)
	}
	server := http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	p.log.WithField("address", listener.Addr()).Info("serving /metrics, /healthz and /readyz")
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.log.WithError(err).Error("metrics and health are not served any more")
		}
	}()
	return nil
}
