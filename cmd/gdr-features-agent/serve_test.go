package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gdr-features/internal/monitor"
)

// However many clients are slow, a health probe is answered before any of them ends. The server
// here ends none of them for an hour, so that a busy machine cannot fail the test; how long the
// slowest probe took is logged. A kubelet waits for a second.
func TestProbesAmongSlowClients(t *testing.T) {
	const clients, probes = 900, 7
	for _, test := range []struct{ name, sends string }{
		{"nothing", ""},
		{"a byte", "G"},
		{"half a header", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-"},
		{"no body", "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n"},
		{"a scrape, and reads nothing", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"a probe, and stays", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := listener.Addr().String()
			server := newServer(monitor.New("v1", []string{"file"}, time.Minute, time.Now).Handler())
			server.ReadTimeout, server.WriteTimeout = time.Hour, time.Hour
			go func() { _ = server.Serve(listener) }()
			defer server.Close()
			var all sync.WaitGroup
			defer func() { end(); all.Wait() }()
			elsewhere := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)} // a Pod's address, not the kubelet's
			for range clients {
				all.Go(func() {
					c, err := (&net.Dialer{Timeout: 20 * time.Second, LocalAddr: elsewhere}).DialContext(ctx, "tcp", address)
					if err != nil {
						return
					}
					defer c.Close()
					_, _ = io.WriteString(c, test.sends)
					<-ctx.Done()
				})
			}
			slowest := time.Duration(0)
			for range probes {
				time.Sleep(100 * time.Millisecond)
				start := time.Now()
				if err := probe(ctx, address); err != nil {
					t.Fatal(err)
				}
				slowest = max(slowest, time.Since(start))
			}
			t.Logf("the slowest probe took %v", slowest.Round(time.Millisecond))
		})
	}
}

// probe asks as a kubelet does, but waits for a minute.
func probe(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), "ok") {
		return fmt.Errorf("status %d %q, error %w", answer.StatusCode, text, err)
	}
	return nil
}
