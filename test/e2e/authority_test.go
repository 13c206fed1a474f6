package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The certificate authority of the API server is replaced while the agent runs, and the file
// that names it only some seconds later. The agent tries again at a bounded rate meanwhile, and
// is right again without a restart: with a kubeconfig, and as in a Pod, where the kubelet
// replaces the directory of ca.crt.
func TestAuthority(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(*node, *testing.T, *frontend, string) *agent{
		"kubeconfig": (*node).runBehind, "Pod": (*node).runInPod,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := newFrontend(t)
			n := newNode(t, &shared, "authority-"+strings.ToLower(name))
			tree := machine(t, "dell-xe9680-h100", "ready")
			a := run(n, t, front, tree)
			n.expect(t, labelsOf(t, tree))

			s := a.strained(t, name)
			before := front.tries.Load()
			front.rotate(t)
			load(t, tree)
			time.Sleep(8 * time.Second)
			front.trust(t, n.dir)
			s.mend()
			labels := labelsOf(t, tree)
			if err := until(t.Context(), patience, func(ctx context.Context) error { return n.has(ctx, labels) }, a.process); err != nil {
				t.Errorf("%v\n%s", err, a.process.tail())
			}
			s.report(t, time.Since(s.mended), int(front.tries.Load()-before), 100, "connections")
			if !a.said(t, "certificate signed by unknown authority") {
				t.Error("the log does not say why")
			}
		})
	}
}

// frontend serves the API of the shared cluster with certificates of its own.
type frontend struct {
	server *httptest.Server
	tries  atomic.Int64 // connections
	used   atomic.Pointer[tls.Certificate]
}

func newFrontend(t *testing.T) *frontend {
	t.Helper()
	to, err := url.Parse(shared.server)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(shared.certificate())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	quiet := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true},
		FlushInterval: -1, // a watch is never complete
		ErrorLog:      quiet,
	}
	f := &frontend{}
	f.server = httptest.NewUnstartedServer(proxy)
	f.server.EnableHTTP2, f.server.Config.ErrorLog = true, quiet
	f.server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		f.tries.Add(1)
		return &tls.Config{Certificates: []tls.Certificate{*f.used.Load()}, NextProtos: []string{"h2", "http/1.1"}}, nil
	}}
	f.rotate(t)
	f.server.StartTLS()
	t.Cleanup(func() {
		f.server.CloseClientConnections()
		f.server.Close()
	})
	return f
}

// rotate makes another certificate that is its own authority, and closes all connections.
func (f *frontend) rotate(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if f.used.Swap(&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}) != nil {
		f.server.CloseClientConnections()
	}
}

// trust writes the frontend's authority into a directory, as a kubelet does: ca.crt is a link
// into ..data, which is replaced.
func (f *frontend) trust(t *testing.T, dir string) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.used.Load().Certificate[0]})
	data, err := os.MkdirTemp(dir, "..data-") //nolint:usetesting // beside the link that leads to it
	if err != nil {
		t.Fatal(err)
	}
	beside, link := filepath.Join(dir, "..beside"), filepath.Join(dir, "ca.crt")
	if err := errors.Join(
		os.WriteFile(filepath.Join(data, "ca.crt"), text, 0o644),
		os.Symlink(filepath.Base(data), beside),
		os.Rename(beside, filepath.Join(dir, "..data")),
	); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..data/ca.crt", link); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
}

// runBehind runs the agent with a kubeconfig that names the frontend and the file ca.crt.
func (n *node) runBehind(t *testing.T, front *frontend, tree string) *agent {
	t.Helper()
	front.trust(t, n.dir)
	return n.runTrusting(t, front.server.URL, filepath.Join(n.dir, "ca.crt"), tree)
}

// runInPod runs the agent with the files and variables of a Pod, in a mount namespace.
func (n *node) runInPod(t *testing.T, front *frontend, tree string) *agent {
	t.Helper()
	front.trust(t, n.dir)
	a := n.prepare(t, tree)
	const account = "/run/secrets/kubernetes.io/serviceaccount"
	if err := os.Rename(filepath.Join(n.dir, agentName+".token"), filepath.Join(n.dir, "token")); err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(front.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	env := append(a.environment(), "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
	const script = `mount -t tmpfs none /run && mkdir -p ` + account + ` && mount --bind "$1" ` + account + ` && shift && exec "$@"`
	unshare, err := exec.LookPath("unshare")
	if err == nil {
		unshare, err = filepath.Rel(program(""), unshare)
	}
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--mount", "sh", "-ec", script, "sh", n.dir, program(agentName)}
	if os.Getuid() != 0 {
		args = append([]string{"--user", "--map-root-user"}, args...)
	}
	args = append(args, a.arguments("--kubeconfig=")...)
	if a.process, err = start(n.dir, unshare, env, args...); err != nil {
		t.Fatal(err)
	}
	stopAfter(t, a.process)
	return a
}
