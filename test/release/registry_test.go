//go:build release

package release

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gdr-features/test/pages"
)

// The pages whose commands are run.
const (
	guide     = "../../deploy/README.md"
	questions = "../../docs/administrator.md"
)

// TestRegistry pushes image and chart to a registry by the commands of deploy/README.md, and
// pulls both again: the image has the digest that it had, the chart its bytes. What the
// document installs names that image.
func TestRegistry(t *testing.T) {
	address, shell, _ := registry(t)
	release, err := filepath.Abs(one)
	if err != nil {
		t.Fatal(err)
	}
	ours := func(command string) string {
		return strings.ReplaceAll(command, "registry.example.com", address)
	}
	shell(release, ours(documented(t, guide, "sha256sum ")))

	pulled := t.TempDir()
	image := address + "/gdr-features:" + version
	shell(pulled, "skopeo copy --quiet --all docker://"+image+" oci:layout:pulled")
	shell(pulled, "helm pull oci://"+address+"/charts/gdr-features --version "+number)
	want := imageDigest(t)
	raw := shell(pulled, "skopeo inspect --raw docker://"+image)
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(raw))); got != want {
		t.Errorf("the image in the registry has the digest %s, not %s:\n%s", got, want, raw)
	}
	digests := strings.Fields(shell(release, ours(documented(t, questions, "skopeo inspect --raw "))))
	if want := []string{want, "-", want, "-"}; !slices.Equal(digests, want) {
		t.Errorf("%s shows the digests %q, want %q", questions, digests, want)
	}
	if shown := shell(release, documented(t, questions, "ls ")); !strings.HasSuffix(shown, " gdr-features-"+version+"-image.tar\n") {
		t.Errorf("%s shows %s", questions, shown)
	}
	size := fmt.Sprintf("\n%.0f MB for each", float64(len(artifact(t, "gdr-features-"+version+"-image.tar")))/2e6)
	if page, err := os.ReadFile(questions); err != nil || !strings.Contains(string(page), size) {
		t.Errorf("%s does not say %q, error %v", questions, size, err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if !strings.Contains(raw, `"architecture":"`+arch+`"`) {
			t.Errorf("no image for %s in %s", arch, raw)
		}
	}
	rendered := shell(pulled, ours(strings.Replace(documented(t, guide, "helm install "), "helm install", "helm template "+kubeVersion, 1)))
	applied := shell(release, ours(strings.Replace(documented(t, guide, "sed "), "kubectl apply -f -", "cat", 1)))
	for _, manifests := range []string{rendered, applied} {
		if got := images(manifests); !slices.Equal(got, []string{image}) {
			t.Errorf("images %q are installed, not %s", got, image)
		}
	}
	chart, err := os.ReadFile(filepath.Join(pulled, "gdr-features-"+number+".tgz"))
	if err != nil || !bytes.Equal(chart, artifact(t, "gdr-features-"+number+".tgz")) {
		t.Errorf("another chart came back, error %v", err)
	}
}

// imageDigest returns the digest of the image in its archive, without sha256:.
func imageDigest(t *testing.T) string {
	t.Helper()
	digest, _, _ := strings.Cut(string(untar(t, artifact(t, "gdr-features-"+version+"-image.tar"))["./index.json"].body), ",\"size\"")
	_, digest, _ = strings.Cut(digest, "sha256:")
	digest, _, _ = strings.Cut(digest, `"`)
	return digest
}

// registry runs a registry until the test ends, and returns its address and two functions that run
// commands in a directory: which must succeed, and return what they print, or which must fail.
func registry(t *testing.T) (address string, shell func(directory, command string) string, refused func(directory, command string)) {
	t.Helper()
	address, certificate := serve(t)
	environment := []string{"HOME=" + t.TempDir(), "SSL_CERT_FILE=" + certificate}
	return address, func(directory, command string) string {
			t.Helper()
			out, complaints, err := run(t, directory, command, environment...)
			if err != nil {
				t.Fatalf("%s: %v\n%s%s", command, err, out, complaints)
			}
			return out
		}, func(directory, command string) {
			t.Helper()
			if out, complaints, err := run(t, directory, command, environment...); err == nil {
				t.Errorf("%s: no error\n%s%s", command, out, complaints)
			}
		}
}

// run runs commands in a directory with the programs of .bin.
func run(t *testing.T, directory, command string, environment ...string) (out, complaints string, err error) {
	t.Helper()
	bin, err := filepath.Abs(".bin")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail", "-c", command)
	c.Dir, c.Env = directory, slices.Concat(os.Environ(), []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, environment)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err = c.Run()
	return stdout.String(), stderr.String(), err
}

// documented returns the block of commands in a page that begins with a text and names this test.
func documented(t *testing.T, path, begins string) string {
	t.Helper()
	page, err := pages.Read(".", path)
	if err != nil {
		t.Fatal(err)
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	i := slices.IndexFunc(page.Blocks, func(b pages.Block) bool { return strings.HasPrefix(b.Text, begins) && slices.Contains(b.Tests(), test) })
	if i < 0 {
		t.Fatalf("%s: no commands %q", path, begins)
	}
	return page.Blocks[i].Text
}

// serve runs a registry until the test ends, and returns its address and the file with the
// certificate that clients have to trust.
func serve(t *testing.T) (address, certificate string) {
	t.Helper()
	dir := t.TempDir()
	trust := certify(t, dir)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	listener.Close()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s/data}}\n"+
		"http: {addr: %q, tls: {certificate: %s/cert.pem, key: %s/key.pem}}\n", dir, address, dir, dir)
	if err := os.WriteFile(filepath.Join(dir, "config.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(".bin/registry", "serve", filepath.Join(dir, "config.yml"))
	c.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			t.Logf("the registry said\n%s", &said)
		}
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust}}
	for range 300 {
		response, err := client.Get("https://" + address + "/v2/")
		if err == nil {
			response.Body.Close()
			return address, filepath.Join(dir, "cert.pem")
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the registry does not answer")
	return "", ""
}

// certify writes a key and a certificate for 127.0.0.1 into a directory, and returns what a
// client needs to trust it.
func certify(t *testing.T, dir string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: certificate}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	return &tls.Config{RootCAs: pool}
}
