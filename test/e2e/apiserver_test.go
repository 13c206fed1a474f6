package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// auditLog is the name of the audit log in the directory of a cluster.
const auditLog = "audit.log"

// auditPolicy makes the API server log every request, and the bodies of writes of
// NodeFeatures and of the answers.
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

// startAPI starts etcd and kube-apiserver and gives us an administrator's access.
func (c *cluster) startAPI(ctx context.Context) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	etcd, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	if c.etcd, err = start(c.dir, "etcd", nil, "--data-dir=etcd", "--unsafe-no-fsync",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer); err != nil {
		return err
	}
	c.server = "https://127.0.0.1:" + ports[2]
	token := rand.Text()
	if err := c.writeFiles(token); err != nil {
		return err
	}
	if c.api, err = start(c.dir, c.file("kube-apiserver"), nil, append(c.flags, "--etcd-servers="+etcd,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+ports[2], "--cert-dir=cert",
		"--endpoint-reconciler-type=none", "--anonymous-auth=false", "--authorization-mode=RBAC", "--token-auth-file=tokens.csv",
		"--service-account-issuer=https://e2e", "--service-account-key-file=key.pem", "--service-account-signing-key-file=key.pem",
		"--audit-policy-file=audit.yaml", "--audit-log-path="+auditLog, "--audit-log-mode=blocking", "--audit-log-maxsize=10000", // MB: tests read on from where they were
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement", // OpenShift's default
		"--allow-privileged")...); err != nil { // as in most clusters; Pod Security decides
		return err
	}
	// It first creates its certificate, which we need to connect to it.
	if err := until(ctx, patience, func(ctx context.Context) error {
		if c.admin, err = c.access(token); err != nil {
			return err
		}
		return c.admin.ready(ctx)
	}, c.processes()...); err != nil {
		return fmt.Errorf("waiting for kube-apiserver: %w", err)
	}
	return nil
}

// certificate returns the name of the file with the API server's certificate.
func (c *cluster) certificate() string { return filepath.Join(c.dir, "cert", "apiserver.crt") }

// writeFiles writes what kube-apiserver reads: a key to sign tokens with, the
// administrator's token, and what to audit.
func (c *cluster) writeFiles(token string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"key.pem":    string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})),
		"tokens.csv": token + ",admin,admin,system:masters\n",
		"audit.yaml": auditPolicy,
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// kubeconfig writes a kubeconfig for the bearer of a token and gives its name. The token is
// in a file of its own, as in a Pod.
func (c *cluster) kubeconfig(dir, name, token string) (string, error) {
	base := filepath.Join(dir, name)
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: e2e, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: %s, user: {tokenFile: %q}}]
contexts: [{name: e2e, context: {cluster: e2e, user: %[3]s}}]
current-context: e2e
`, c.server, c.certificate(), name, base+".token")
	err := errors.Join(
		os.WriteFile(base+".token", []byte(token), 0o600),
		os.WriteFile(base+".kubeconfig", []byte(text), 0o600))
	return base + ".kubeconfig", err
}
