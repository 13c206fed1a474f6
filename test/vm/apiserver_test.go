//go:build vm

package vm

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	// hostAddress is where a machine reaches this one, and guestAddress what QEMU expects
	// of it (QEMU's documentation, "Network emulation", -netdev user).
	hostAddress, guestAddress = "10.0.2.2", "10.0.2.15"
	// clusterPrograms are what test/e2e/build.sh builds.
	clusterPrograms = "../e2e/.bin/"
	// nodeName is the machine's name in the cluster, and agentName that of the agent's
	// namespace, service account and DaemonSet.
	nodeName, agentName = "vm", "gdr-features"
	clusterLimit        = 5 * time.Minute
)

// auditPolicy makes the API server log every request, and what each write of a NodeFeature
// made of it.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  resources: [{group: nfd.k8s-sigs.io, resources: [nodefeatures]}]
  verbs: [create, update, patch, delete]
- level: Metadata
`

// cluster is an etcd and a kube-apiserver on this machine, with the clock of this machine,
// and our manifests. It has one Node, and no controllers.
type cluster struct {
	t           *testing.T
	dir         string
	port, token string
	serve       []string // the arguments of kube-apiserver
	api         *exec.Cmd
	client      *http.Client
}

// startCluster starts a cluster, which is stopped after the test.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), port: freePort(t), token: rand.Text()}
	c.writeFiles()
	etcd, peer := "http://127.0.0.1:"+freePort(t), "http://127.0.0.1:"+freePort(t)
	c.start("etcd", "--data-dir=etcd", "--unsafe-no-fsync", "--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	c.serve = []string{
		"--etcd-servers=" + etcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + c.port,
		"--tls-cert-file=server.crt", "--tls-private-key-file=key.pem", "--endpoint-reconciler-type=none",
		"--anonymous-auth=false", "--authorization-mode=RBAC", "--token-auth-file=tokens.csv",
		"--service-account-issuer=https://vm", "--service-account-key-file=key.pem", "--service-account-signing-key-file=key.pem",
		"--audit-policy-file=audit.yaml", "--audit-log-path=audit.log", "--audit-log-mode=blocking",
	}
	c.startAPI()
	for _, objects := range []string{"kustomize", "nfd.yaml"} {
		text, err := os.ReadFile(clusterPrograms + objects)
		if objects == "kustomize" {
			text, err = exec.Command(clusterPrograms+objects, "build", "../../deploy/kustomize/base").Output()
		}
		if err != nil {
			t.Fatalf("%v; test/e2e/build.sh builds it", err)
		}
		c.kubectl(string(text), "apply", "-f", "-")
	}
	c.kubectl(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "`+nodeName+`"}}`, "create", "-f", "-")
	return c
}

// writeFiles writes what kube-apiserver and kubectl read. The certificate is valid a day
// before and after now, for both names of this machine.
func (c *cluster) writeFiles() {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	const day = 24 * time.Hour
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-day), NotAfter: time.Now().Add(day),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(hostAddress)},
		IsCA:        true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		c.t.Fatal(err)
	}
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	for name, text := range map[string]string{
		"key.pem":    string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})),
		"server.crt": string(crt),
		"tokens.csv": c.token + ",admin,admin,system:masters\n",
		"audit.yaml": auditPolicy,
		"admin":      c.kubeconfig("127.0.0.1", string(crt), "token: "+c.token),
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(crt)
	c.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: time.Minute}
}

// kubeconfig returns one for the API server at an address.
func (c *cluster) kubeconfig(address, crt, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: vm, cluster: {server: "https://%s", certificate-authority-data: %s}}]
users: [{name: vm, user: {%s}}]
contexts: [{name: vm, context: {cluster: vm, user: vm}}]
current-context: vm
`, net.JoinHostPort(address, c.port), base64.StdEncoding.EncodeToString([]byte(crt)), user)
}

// start starts a program, which ends after the test.
func (c *cluster) start(name string, args ...string) *exec.Cmd {
	c.t.Helper()
	program, err := filepath.Abs(clusterPrograms + name)
	if err != nil {
		c.t.Fatal(err)
	}
	var said bytes.Buffer
	p := exec.Command(program, args...)
	p.Dir, p.Env, p.Stdout, p.Stderr = c.dir, []string{"HOME=" + c.dir}, &said, &said
	if err := p.Start(); err != nil {
		c.t.Fatalf("%v; test/e2e/build.sh builds it", err)
	}
	c.t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		if text := said.Bytes(); c.t.Failed() {
			c.t.Logf("%s said at the end:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
	return p
}

// startAPI starts kube-apiserver, for the first time or again, and waits until it is ready.
func (c *cluster) startAPI() {
	c.t.Helper()
	if c.api != nil {
		_ = c.api.Process.Kill()
		_ = c.api.Wait()
	}
	c.api = c.start("kube-apiserver", c.serve...)
	c.until("kube-apiserver is ready", clusterLimit, func() error { return c.get("/readyz", nil) })
}

// until waits until there is no error, and gives how long that took.
func (c *cluster) until(what string, limit time.Duration, done func() error) time.Duration {
	c.t.Helper()
	start := time.Now()
	for {
		err := done()
		took := time.Since(start)
		if err == nil {
			return took
		}
		if took > limit {
			c.t.Fatalf("%s: not within %v: %v", what, limit, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// get reads a resource as JSON; into nil, only whether it is there.
func (c *cluster) get(path string, into any) error {
	q, err := http.NewRequest(http.MethodGet, "https://"+net.JoinHostPort("127.0.0.1", c.port)+path, nil)
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", "Bearer "+c.token)
	r, err := c.client.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return err
	case r.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s: %s", path, r.Status, text)
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}

// kubectl returns what kubectl prints.
func (c *cluster) kubectl(in string, args ...string) string {
	c.t.Helper()
	p := exec.Command(clusterPrograms+"kubectl", append([]string{"--kubeconfig=" + filepath.Join(c.dir, "admin")}, args...)...)
	var errs bytes.Buffer
	p.Stdin, p.Stderr = strings.NewReader(in), &errs
	out, err := p.Output()
	if err != nil {
		c.t.Fatalf("kubectl %q: %v\n%s", args, err, errs.String())
	}
	return string(out)
}

// agentFiles makes a Pod of the DaemonSet on the Node, and gives the files of the machine
// that its agent reads: a kubeconfig, and the token of that Pod.
func (c *cluster) agentFiles() map[string]string {
	c.t.Helper()
	var set struct {
		Spec struct {
			Template struct{ Metadata, Spec map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(c.kubectl("", "get", "daemonset", agentName, "-n", agentName, "-o", "json")), &set); err != nil {
		c.t.Fatal(err)
	}
	pod := set.Spec.Template
	pod.Metadata["name"], pod.Metadata["namespace"], pod.Spec["nodeName"] = agentName, agentName, nodeName
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": pod.Metadata, "spec": pod.Spec})
	if err != nil {
		c.t.Fatal(err)
	}
	c.kubectl(string(text), "create", "-f", "-")
	crt, err := os.ReadFile(filepath.Join(c.dir, "server.crt"))
	if err != nil {
		c.t.Fatal(err)
	}
	return map[string]string{
		"kubeconfig": c.kubeconfig(hostAddress, string(crt), "tokenFile: /token"),
		"token":      c.kubectl("", "create", "token", agentName, "-n", agentName, "--bound-object-kind=Pod", "--bound-object-name="+agentName),
	}
}

// published returns the labels of the NodeFeature.
func (c *cluster) published() (labels, error) {
	var feature nodeFeature
	err := c.get("/apis/nfd.k8s-sigs.io/v1alpha1/namespaces/"+agentName+"/nodefeatures/"+agentName+"-"+nodeName, &feature)
	return feature.labels(), err
}

// nodeFeature is a NodeFeature, as far as it is compared.
type nodeFeature struct {
	Spec struct{ Labels map[string]string }
}

func (f *nodeFeature) labels() labels {
	all := labels{}
	for name, value := range f.Spec.Labels {
		all[strings.TrimPrefix(name, prefix)] = value
	}
	return all
}

// request is one that the agent made, from the audit log. A watch is in it twice: when it
// begins and when it ends.
type request struct {
	Verb, RequestURI string
	User             struct{ Username string }
	ResponseStatus   struct{ Code int }
	ResponseObject   nodeFeature
}

func (r *request) writes() bool { return r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" }

// requests returns all requests of the agent that have ended.
func (c *cluster) requests() []request {
	c.t.Helper()
	log, err := os.ReadFile(filepath.Join(c.dir, "audit.log"))
	if err != nil {
		c.t.Fatal(err)
	}
	var all []request
	for line := range bytes.Lines(log[:bytes.LastIndexByte(log, '\n')+1]) {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			c.t.Fatalf("audit log: %v", err)
		}
		if r.User.Username == "system:serviceaccount:"+agentName+":"+agentName {
			all = append(all, r)
		}
	}
	return all
}

// freePort finds an unused port of 127.0.0.1.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
