package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
)

// A token, a certificate authority or a server that is replaced in the kubeconfig is used
// from the next request on; a file that is not a kubeconfig changes nothing.
func TestKubeconfigReplaced(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	var got string // the last request's token, and who was asked
	serve := func(name string) *httptest.Server {
		server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = name + " " + r.Header.Get("Authorization") + " " + r.UserAgent()
		}))
		t.Cleanup(server.Close)
		return server
	}
	one, two := serve("one"), serve("two")
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Certificate().Raw}))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := func(server, authority, token string) string {
		return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %q}}],
users: [{name: u, user: {token: %q}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`, server, authority, token)
	}
	other := base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n"))

	var p program
	p.settings.Kubeconfig = path
	if _, _, err := p.access(); err == nil {
		t.Error("no error without a file")
	}
	write(text(one.URL, authority, "first"))
	access, token, err := p.access()
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(access)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ name, text, want string }{
		{"as it was", text(one.URL, authority, "first"), "one Bearer first"},
		{"another token", text(one.URL, authority, "second"), "one Bearer second"},
		{"half a file", "{apiVersion: v1, ki", "one Bearer second"},
		{"an invalid certificate", text(two.URL, other, "third"), "one Bearer second"},
		{"another server", text(two.URL, authority, "third"), "two Bearer third"},
		{"no authority", text(two.URL, "", "third"), ""},
		{"an authority again", text(two.URL, authority, "fourth"), "two Bearer fourth"},
	} {
		write(step.text)
		got = ""
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, access.Host+"/api", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("User-Agent", access.UserAgent)
		answer, err := client.Do(request)
		if (err != nil) != (step.want == "") {
			t.Errorf("%s: error %v", step.name, err)
		}
		if err == nil {
			_ = answer.Body.Close()
		}
		// The owner of the NodeFeature is read from the token that is sent.
		if sent, err := token(); err != nil || step.want != "" && !strings.HasSuffix(step.want, "Bearer "+sent) {
			t.Errorf("%s: token %q, error %v", step.name, sent, err)
		}
		if want := step.want; want != "" && got != want+" gdr-features/(devel)" {
			t.Errorf("%s: %q, want %q", step.name, got, want)
		}
	}
}

// A certificate authority that is replaced in the file that a kubeconfig names is used from the
// next request on; a file that is missing, empty or not a certificate changes nothing.
func TestAuthorityReplaced(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	right := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	dir := t.TempDir()
	path, file := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "ca.crt")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}], contexts: [{name: c, context: {cluster: c}}]}`, server.URL, file)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var p program
	p.settings.Kubeconfig = path
	if _, _, err := p.access(); err == nil {
		t.Error("no error without the file")
	}
	other := anotherAuthority(t)
	var client *http.Client
	for _, step := range []struct {
		name    string
		text    []byte // nil: no file
		trusted bool
	}{
		{"another authority", other, false},
		{"replaced", right, true},
		{"empty", []byte{}, true},
		{"half a file", right[:len(right)/2], true},
		{"missing", nil, true},
		{"another authority again", other, false},
		{"and back", right, true},
	} {
		err := os.RemoveAll(file)
		if step.text != nil {
			err = os.WriteFile(file, step.text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if client == nil {
			access, _, err := p.access()
			if err != nil {
				t.Fatal(err)
			}
			if client, err = rest.HTTPClientFor(access); err != nil {
				t.Fatal(err)
			}
		}
		server.CloseClientConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err == nil {
			_ = answer.Body.Close()
		}
		if (err == nil) != step.trusted {
			t.Errorf("%s: error %v", step.name, err)
		}
	}
}

// anotherAuthority returns a certificate that has signed nothing.
func anotherAuthority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// A kubeconfig by which a program would be started to get a token is refused, also in place of one
// that was used, which then stays in use.
func TestKubeconfigThatStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	started := filepath.Join(filepath.Dir(path), "started")
	var got string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	t.Cleanup(server.Close)
	write := func(user string) {
		t.Helper()
		text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}],
users: [{name: u, user: %s}], contexts: [{name: c, context: {cluster: c, user: u}}]}`, server.URL, user)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exec := fmt.Sprintf(`{exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [%q], interactiveMode: Never}}`, started)
	for _, user := range []string{exec, "{auth-provider: {name: oidc, config: {}}}"} {
		var p program
		p.settings.Kubeconfig = path
		write(user)
		if _, _, err := p.access(); err == nil || !strings.Contains(err.Error(), "exec or auth-provider") {
			t.Errorf("%s: error %v", user, err)
		}
		write("{token: first}")
		access, _, err := p.access()
		if err != nil {
			t.Fatal(err)
		}
		client, err := rest.HTTPClientFor(access)
		if err != nil {
			t.Fatal(err)
		}
		write(user)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil || got != "Bearer first" {
			t.Fatalf("%s: sent %q, error %v", user, got, err)
		}
		_ = answer.Body.Close()
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("the program was started")
	}
}

// A file that a kubeconfig names and that has no end, or none soon, is refused before client-go reads it.
func TestKubeconfigNamesNoFile(t *testing.T) {
	dir := t.TempDir()
	path, fifo, large := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "fifo"), filepath.Join(dir, "large")
	if err := errors.Join(unix.Mkfifo(fifo, 0o600), os.WriteFile(large, make([]byte, maxAccess+1), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"tokenFile", "client-certificate", "client-key", "certificate-authority"} {
		for file, want := range map[string]string{
			"fifo": "not a regular file", "/dev/zero": "not a regular file", large: "larger than 1048576 bytes", filepath.Join(dir, "none"): "no such file",
		} {
			user, cluster := fmt.Sprintf("%s: %s", key, file), "server: https://127.0.0.1:1"
			if key == "certificate-authority" {
				user, cluster = "token: t", cluster+", "+user
			}
			// What a context names that is not the current one is not read.
			text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {%s}}], users: [{name: u, user: {%s}}, {name: other, user: {tokenFile: fifo}}],
contexts: [{name: c, context: {cluster: c, user: u}}, {name: other, context: {cluster: c, user: other}}]}`, cluster, user)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var p program
			p.settings.Kubeconfig = path
			if _, _, err := p.access(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: error %v, want %s", key, file, err, want)
			}
		}
	}
}
