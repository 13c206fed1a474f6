package main

import (
	"archive/tar"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/youmark/pkcs8"
)

// block returns a block of PEM.
func block(t *testing.T, kind string, body []byte, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: body})
}

// pkcs returns a private key as openssl genpkey writes it.
func pkcs(t *testing.T, key any) []byte {
	t.Helper()
	body, err := x509.MarshalPKCS8PrivateKey(key)
	return block(t, "PRIVATE KEY", body, err)
}

func newKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestKeys: a key is read in each form that openssl and cosign write. What is none gives one
// line that says what to do.
func TestKeys(t *testing.T) {
	key := newKey(t, elliptic.P256())
	plain := pkcs(t, key)
	body, err := x509.MarshalECPrivateKey(key)
	sec1 := block(t, "EC PRIVATE KEY", body, err)
	body, err = cryptoutils.MarshalPrivateKeyToEncryptedDER(key, cryptoutils.StaticPasswordFunc([]byte("right")))
	cosign := block(t, "ENCRYPTED SIGSTORE PRIVATE KEY", body, err)
	body, err = pkcs8.MarshalPrivateKey(key, []byte("right"), nil)
	openssl := block(t, "ENCRYPTED PRIVATE KEY", body, err)
	public, err := cryptoutils.MarshalPublicKeyToPEM(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	const makes = "cosign generate-key-pair"
	for name, c := range map[string]struct {
		text       []byte
		passphrase string // "" for none
		err        []string
	}{
		"PKCS#8":                {text: plain},
		"SEC 1":                 {text: sec1},
		"SEC 1 after its curve": {text: slices.Concat(block(t, "EC PARAMETERS", []byte{6, 8}, nil), sec1)},
		"cosign's":              {text: cosign, passphrase: "right"},
		"encrypted by openssl":  {text: openssl, passphrase: "right"},

		"missing":                  {err: []string{"key.pem", "no such file"}},
		"empty":                    {text: []byte{}, err: []string{"PEM", makes}},
		"garbage":                  {text: []byte("\x00 no key"), err: []string{"PEM", makes}},
		"cut off":                  {text: plain[:len(plain)/2], err: []string{"PEM", makes}},
		"damaged":                  {text: block(t, "PRIVATE KEY", []byte("no key"), nil), err: []string{makes}},
		"damaged curve":            {text: block(t, "EC PARAMETERS", nil, nil), err: []string{"PEM", makes}},
		"public":                   {text: public, err: []string{"public key", "the private key"}},
		"certificate":              {text: block(t, "CERTIFICATE", []byte("x"), nil), err: []string{"CERTIFICATE", makes}},
		"RSA":                      {text: pkcs(t, rsaKey), err: []string{"another kind", "P-256", makes}},
		"RSA, PKCS#1":              {text: block(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey), nil), err: []string{"another kind", makes}},
		"P-384":                    {text: pkcs(t, newKey(t, elliptic.P384())), err: []string{"another kind", "P-256", makes}},
		"cosign's, no passphrase":  {text: cosign, err: []string{"set COSIGN_PASSWORD"}},
		"openssl's, no passphrase": {text: openssl, err: []string{"set COSIGN_PASSWORD"}},
		"cosign's, wrong":          {text: cosign, passphrase: "wrong", err: []string{"COSIGN_PASSWORD is not"}},
		"openssl's, wrong":         {text: openssl, passphrase: "wrong", err: []string{"COSIGN_PASSWORD is not"}},
		"cosign's, damaged":        {text: block(t, "ENCRYPTED SIGSTORE PRIVATE KEY", []byte("{"), nil), passphrase: "right", err: []string{"damaged"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key.pem")
			if c.text != nil {
				if err := os.WriteFile(file, c.text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("COSIGN_PASSWORD", c.passphrase)
			if c.passphrase == "" {
				os.Unsetenv("COSIGN_PASSWORD")
			}
			s, err := readKey(file)
			if c.err == nil {
				if err != nil || !s.key.Equal(key) {
					t.Errorf("another key, error %v", err)
				}
				return
			}
			if err == nil || s != nil {
				t.Fatal("no error")
			}
			said := err.Error()
			for _, want := range append(c.err, "SIGN_KEY", file) {
				if !strings.Contains(said, want) {
					t.Errorf("%q does not say %q", said, want)
				}
			}
			if strings.Contains(said, "\n") {
				t.Errorf("more than one line: %q", said)
			}
		})
	}
}

// TestRevision: a signature covers no commit that somebody names.
func TestRevision(t *testing.T) {
	r := &release{revision: "0123456789abcdef0123456789abcdef01234567"}
	if err := r.signWith("key.pem"); err == nil || !strings.Contains(err.Error(), "REVISION") {
		t.Errorf("error %v", err)
	}
}

// image is a file that sealed writes; the other one is install.yaml.
const image = "gdr-features-v1.0.0-image.tar"

// sealed writes a release of two files, and returns all files.
func sealed(t *testing.T, s *signer) map[string]string {
	t.Helper()
	r := &release{
		version: "v1.0.0", revision: "0123456789abcdef0123456789abcdef01234567",
		image: "registry.example.com/gdr-features", url: "https://example.com/gdr-features", out: t.TempDir(), signer: s,
	}
	index := `{"manifests":[{"digest":"sha256:` + strings.Repeat("ab", 32) + `"}]}`
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	if err := w.WriteHeader(&tar.Header{Name: "./index.json", Mode: 0o644, Size: int64(len(index))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(index)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{r.ociName(): packed.Bytes(), "install.yaml": []byte("kind: Namespace\n")} {
		if err := r.write(name, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.seal(); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	files, err := os.ReadDir(r.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		body, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name()] = string(body)
	}
	return all
}

// sum returns the line of SHA256SUMS for a file.
func sum(all map[string]string, name string) string {
	return fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(all[name])), name)
}

// TestSeal: without a key there are checksums and nothing else. A key adds three files and two
// lines, the same bytes each time, and its signatures are valid for it alone.
func TestSeal(t *testing.T) {
	plain := sealed(t, nil)
	if want := sum(plain, image) + sum(plain, "install.yaml"); len(plain) != 3 || plain["SHA256SUMS"] != want {
		t.Errorf("without a key there are %q, want SHA256SUMS %s", plain, want)
	}
	key := newKey(t, elliptic.P256())
	signed := sealed(t, &signer{key})
	if again := sealed(t, &signer{key}); !maps.Equal(signed, again) {
		t.Errorf("another time the files are %q, not %q", again, signed)
	}
	if want := sum(signed, image) + sum(signed, publicKey) + sum(signed, "install.yaml") + sum(signed, provenanceFile); signed["SHA256SUMS"] != want {
		t.Errorf("SHA256SUMS is %s, want %s", signed["SHA256SUMS"], want)
	}
	if want := []string{"SHA256SUMS", "SHA256SUMS.sig", image, publicKey, "install.yaml", provenanceFile}; !slices.Equal(slices.Sorted(maps.Keys(signed)), want) {
		t.Errorf("files %q, want %q", slices.Sorted(maps.Keys(signed)), want)
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey([]byte(signed[publicKey]))
	if err != nil || !key.PublicKey.Equal(public) {
		t.Errorf("the public key is another one, error %v", err)
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(signed["SHA256SUMS.sig"], "\n"))
	if err != nil {
		t.Fatal(err)
	}
	other := newKey(t, elliptic.P256())
	if !verify(&key.PublicKey, signed["SHA256SUMS"], signature) || verify(&other.PublicKey, signed["SHA256SUMS"], signature) ||
		verify(&key.PublicKey, signed["SHA256SUMS"]+" ", signature) {
		t.Error("the signature of SHA256SUMS is not valid for the key and its text alone")
	}
	checkProvenance(t, signed, key)
}

func verify(key crypto.PublicKey, text string, signature []byte) bool {
	public, ok := key.(*ecdsa.PublicKey)
	hash := sha256.Sum256([]byte(text))
	return ok && ecdsa.VerifyASN1(public, hash[:], signature)
}

// checkProvenance compares a provenance with the specifications: SLSA provenance v1, in-toto
// statement v1, DSSE v1.
func checkProvenance(t *testing.T, all map[string]string, key *ecdsa.PrivateKey) {
	t.Helper()
	line := all[provenanceFile]
	var envelope dsse.Envelope
	if err := json.Unmarshal([]byte(line), &envelope); err != nil || strings.Count(line, "\n") != 1 || len(envelope.Signatures) != 1 {
		t.Fatalf("not one line of JSON with one signature, error %v: %q", err, line)
	}
	payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig)
	signed := fmt.Sprintf("DSSEv1 28 application/vnd.in-toto+json %d %s", len(payload), payload)
	if err != nil || envelope.PayloadType != "application/vnd.in-toto+json" || !verify(&key.PublicKey, signed, signature) {
		t.Errorf("the signature is not valid, error %v: %+v", err, envelope)
	}
	buildah, err := output("buildah", "--version")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("IMAGE-SUM", sum(all, image)[:64], "FILE-SUM", sum(all, "install.yaml")[:64],
		"GO", runtime.Version(), "BUILDAH", buildah).Replace(statement)
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if string(payload) != want.String() {
		t.Errorf("the statement is\n%s\nwant\n%s", payload, &want)
	}
}

// statement is what TestSeal expects, after the specifications of in-toto and SLSA.
const statement = `{
	"_type": "https://in-toto.io/Statement/v1",
	"subject": [
		{"name": "gdr-features-v1.0.0-image.tar", "digest": {"sha256": "IMAGE-SUM"}},
		{"name": "install.yaml", "digest": {"sha256": "FILE-SUM"}},
		{"name": "registry.example.com/gdr-features", "digest": {"sha256": "abababababababababababababababababababababababababababababababab"}}
	],
	"predicateType": "https://slsa.dev/provenance/v1",
	"predicate": {
		"buildDefinition": {
			"buildType": "https://example.com/gdr-features/blob/HEAD/docs/release.md#build-type-v1",
			"externalParameters": {"IMAGE": "registry.example.com/gdr-features", "URL": "https://example.com/gdr-features", "VERSION": "v1.0.0"},
			"resolvedDependencies": [
				{"digest": {"gitCommit": "0123456789abcdef0123456789abcdef01234567"}, "uri": "git+https://example.com/gdr-features"}
			]
		},
		"runDetails": {
			"builder": {
				"id": "https://example.com/gdr-features/blob/HEAD/docs/release.md#builder-v1",
				"version": {"buildah": "BUILDAH", "go": "GO"}
			}
		}
	}
}`
