package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"gdr-features/internal/cli"
	"gdr-features/internal/publish/nodefeature"
	"gdr-features/internal/regular"
)

// access returns the configuration of a client for the API server, and the token that its
// requests are sent with. A token, certificate or server that is replaced in its file is used
// from the next request on.
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
		t, err := transport(pod)
		return &rest.Config{Host: pod.Host, Transport: t, UserAgent: agent}, nodefeature.TokenOf(pod), err
	}
	file := &reloaded{path: p.settings.Kubeconfig}
	file.use = func([]byte) (sender, error) { return kubeconfig(file.path) }
	if err := file.read(); err != nil {
		return nil, nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	token := func() (string, error) { return file.current().token() }
	return &rest.Config{Host: file.sender.server.String(), Transport: file, UserAgent: agent}, token, nil
}

// maxAccess is the size in bytes of the largest kubeconfig that is read, and of the files that it
// names.
const maxAccess = 1 << 20

type sender struct {
	http.RoundTripper
	server *url.URL          // that requests go to; nil for the one that they name
	token  nodefeature.Token // that they are sent with
}

// reloaded sends each request as a file says at the time. While the file is not usable, its
// last usable content is used.
type reloaded struct {
	path string
	what string // the file is, in errors
	use  func(text []byte) (sender, error)

	mu     sync.Mutex
	text   []byte // last usable content
	sender sender
}

func (r *reloaded) read() error {
	text, err := regular.ReadFile(r.path, maxAccess)
	if err != nil {
		return fmt.Errorf("%s%w", r.what, err)
	}
	if r.sender.RoundTripper != nil && bytes.Equal(text, r.text) {
		return nil
	}
	now, err := r.use(text)
	if err == nil {
		r.text, r.sender = text, now
	}
	return err
}

func (r *reloaded) current() sender {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.read()
	return r.sender
}

// RoundTrip implements http.RoundTripper.
func (r *reloaded) RoundTrip(request *http.Request) (*http.Response, error) {
	now := r.current()
	if now.server != nil {
		request = request.Clone(request.Context())
		request.Header.Del("Authorization") // the sender sets it
		request.URL.Scheme, request.URL.Host = now.server.Scheme, now.server.Host
	}
	return now.RoundTrip(request)
}

// checkNamed returns an error unless the files that a kubeconfig names are regular ones of at most
// maxAccess: client-go opens and reads them as they are.
func checkNamed(path string) error {
	config, err := clientcmd.LoadFromFile(path)
	if err != nil || clientcmd.ResolveLocalPaths(config) != nil || clientcmdapi.MinifyConfig(config) != nil {
		return nil //nolint:nilerr // client-go says what is wrong
	}
	var named []*string
	for _, c := range config.Clusters {
		named = append(named, clientcmd.GetClusterFileReferences(c)...)
	}
	for _, u := range config.AuthInfos {
		named = append(named, clientcmd.GetAuthInfoFileReferences(u)...)
	}
	for _, file := range named {
		if *file == "" {
			continue
		}
		if err := regular.Check(*file, maxAccess); err != nil {
			return err
		}
	}
	return nil
}

// kubeconfig reads one. A program that it names would be started on the node.
func kubeconfig(path string) (sender, error) {
	if err := checkNamed(path); err != nil {
		return sender{}, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return sender{}, err
	}
	if config.ExecProvider != nil || config.AuthProvider != nil {
		return sender{}, errors.New("its user has exec or auth-provider, which the agent does not start: give it a token, tokenFile or client certificate")
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return sender{}, err
	}
	t, err := transport(config)
	return sender{t, server, nodefeature.TokenOf(config)}, err
}

// transport returns what sends requests as a configuration says, with the certificate authority
// in its file at the time. client-go alone would look at the file every five minutes.
func transport(config *rest.Config) (http.RoundTripper, error) {
	if config.CAFile == "" {
		return rest.TransportFor(config)
	}
	const what = "certificate authority: "
	authority := &reloaded{path: config.CAFile, what: what, use: func(text []byte) (sender, error) {
		if len(text) == 0 { // to client-go, that is the system's
			return sender{}, fmt.Errorf(what+"%s is empty", config.CAFile)
		}
		config := rest.CopyConfig(config)
		config.CAFile, config.CAData = "", text
		t, err := rest.TransportFor(config)
		return sender{RoundTripper: t}, err
	}}
	return authority, authority.read()
}
