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
	"gdr-features/internal/publish/nodefeature"
)

// access returns the configuration of a client for the API server, and the token that its
// requests are sent with. A token or a certificate authority that is replaced in its file is
// used by later requests.
func (p *program) access() (*rest.Config, nodefeature.Token, error) {
	agent := "gdr-features/" + cli.Version(version)
	if p.settings.Kubeconfig == "" {
		pod, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, nil, errors.New("not running in a Pod; set --kubeconfig, or --publish file to write only a feature file")
		}
		if err != nil {
			return nil, nil, err
		}
		sender, err := transport(pod)
		if err != nil {
			return nil, nil, err
		}
		return &rest.Config{Host: pod.Host, Transport: sender, UserAgent: agent}, nodefeature.TokenOf(pod), nil
	}
	file := &kubeconfig{path: p.settings.Kubeconfig}
	if err := file.read(); err != nil {
		return nil, nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return &rest.Config{Host: file.server.String(), Transport: file, UserAgent: agent}, file.present, nil
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
	token  nodefeature.Token // that the sender sends
}

// read reads the file if it has changed.
func (k *kubeconfig) read() error {
	text, err := os.ReadFile(k.path) //nolint:gosec // the administrator names it
	if err != nil || k.sender != nil && bytes.Equal(text, k.text) {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", k.path)
	if err != nil {
		return err
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return err
	}
	sender, err := transport(config)
	if err != nil {
		return err
	}
	k.text, k.server, k.sender, k.token = text, server, sender, nodefeature.TokenOf(config)
	return nil
}

// present is the token that a request is sent with now.
func (k *kubeconfig) present() (string, error) {
	k.mu.Lock()
	_ = k.read()
	token := k.token
	k.mu.Unlock()
	return token()
}

// RoundTrip implements http.RoundTripper.
func (k *kubeconfig) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	_ = k.read()
	server, sender := k.server, k.sender
	k.mu.Unlock()
	r = r.Clone(r.Context())
	r.Header.Del("Authorization") // the sender sets it
	r.URL.Scheme, r.URL.Host = server.Scheme, server.Host
	return sender.RoundTrip(r)
}

// transport returns what sends requests as a configuration says.
func transport(config *rest.Config) (http.RoundTripper, error) {
	if config.CAFile == "" {
		return rest.TransportFor(config)
	}
	t := &trusting{config: config}
	return t, t.read()
}

// trusting sends each request with the certificate authority that is in the file at the time.
// client-go alone would look at the file every five minutes. While the file is not usable, its
// last usable content is used.
type trusting struct {
	config *rest.Config

	mu     sync.Mutex
	text   []byte // last usable content
	sender http.RoundTripper
}

// read reads the file.
func (c *trusting) read() error {
	text, err := os.ReadFile(c.config.CAFile) //nolint:gosec // the administrator names it
	switch {
	case err != nil:
		return fmt.Errorf("certificate authority: %w", err)
	case len(text) == 0: // to client-go, that is the system's
		return fmt.Errorf("certificate authority: %s is empty", c.config.CAFile)
	case bytes.Equal(text, c.text):
		return nil
	}
	config := rest.CopyConfig(c.config)
	config.CAFile, config.CAData = "", text
	sender, err := rest.TransportFor(config)
	if err == nil {
		c.text, c.sender = text, sender
	}
	return err
}

// RoundTrip implements http.RoundTripper.
func (c *trusting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	_ = c.read()
	sender := c.sender
	c.mu.Unlock()
	return sender.RoundTrip(r)
}
