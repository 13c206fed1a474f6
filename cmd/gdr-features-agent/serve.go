package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

// What anybody who reaches the address may make the agent hold in memory. Whoever
// comes when there are so many connections waits until one of them has ended, which
// takes 15 seconds at most.
const (
	connections   = 64
	longestHeader = 8 << 10
)

// serve answers at an address until ctx ends. The error tells that nobody can
// listen there.
func (p *program) serve(ctx context.Context, address string, handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--listen %s: %w; give another address, or none to serve nothing", address, err)
	}
	server := http.Server{Handler: handler, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: longestHeader}
	server.SetKeepAlivesEnabled(false) // nobody who is done with it keeps a connection from others
	context.AfterFunc(ctx, func() { _ = server.Close() })
	p.log.WithField("address", listener.Addr()).Info("serving /metrics, /healthz and /readyz")
	go func() {
		if err := server.Serve(netutil.LimitListener(listener, connections)); !errors.Is(err, http.ErrServerClosed) {
			p.log.WithError(err).Error("metrics and health are not served any more")
		}
	}()
	return nil
}
