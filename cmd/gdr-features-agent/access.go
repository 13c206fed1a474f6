package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"gdr-features/internal/cli"
)

// access returns the configuration of a client for the API server. In a Pod, client-go reads
// the token and the certificate authority again when their files change.
func (p *program) access() (*rest.Config, error) {
	agent := "gdr-features/" + cli.Version(version)
	if p.settings.Kubeconfig == "" {
		access, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("not running in a Pod; set --kubeconfig, or --publish file to write only a feature file")
		}
		if access != nil {
			access.UserAgent = agent
		}
		return access, err
	}
	file := &kubeconfig{path: p.settings.Kubeconfig}
	now, err := file.read()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return &rest.Config{
		Host: file.server.String(), Transport: file, UserAgent: agent,
		// Not for the requests, but because the token names the node.
		BearerToken: now.BearerToken, BearerTokenFile: now.BearerTokenFile,
	}, nil
}

// kubeconfig sends each request as the file says at the time: a token, a certificate
// or a server that is replaced in it is used from the next request on. While the
// file is not usable, its last usable content is used.
type kubeconfig struct {
	path string

	mu     sync.Mutex
	text   []byte // last usable content
	server *url.URL
	sender http.RoundTripper
}

// read reads the file. The configuration is nil when it has not changed.
func (k *kubeconfig) read() (*rest.Config, error) {
	text, err := os.ReadFile(k.path) //nolint:gosec // the administrator names it
	if err != nil || k.sender != nil && bytes.Equal(text, k.text) {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", k.path)
	if err != nil {
		return nil, err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	sender, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	k.text, k.server, k.sender = text, server, sender
	return config, nil
}

// RoundTrip implements http.RoundTripper.
func (k *kubeconfig) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	_, _ = k.read()
	server, sender := k.server, k.sender
	k.mu.Unlock()
	r = r.Clone(r.Context())
	r.Header.Del("Authorization") // the sender sets it
	r.URL.Scheme, r.URL.Host = server.Scheme, server.Host
	return sender.RoundTrip(r)
}
