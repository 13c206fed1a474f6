//go:build release

package release

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// steps is the page whose commands sign and verify.
const steps = "../../docs/release.md"

// public is the public key of a release.
const public = "gdr-features.pub"

// TestSigned verifies a release by the commands of docs/release.md. They fail with another key, and
// after one byte of any file was changed.
func TestSigned(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "release")
	if err := os.CopyFS(dir, os.DirFS(one)); err != nil {
		t.Fatal(err)
	}
	byCosign, byOpenSSL := documented(t, steps, "cosign verify-blob "), documented(t, steps, "base64 -d ")
	provenance := documented(t, steps, "cosign verify-blob-attestation ")
	all := []string{byCosign, byOpenSSL, provenance}
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range all[:2] {
		if first, _, _ := strings.Cut(command, "\n"); !strings.Contains(string(page), "`"+first+"`") {
			t.Errorf("%s does not say %s, as %s does", guide, first, steps)
		}
	}
	refused := func(t *testing.T, commands ...string) {
		t.Helper()
		for _, command := range commands {
			if out, complaints, err := run(t, dir, command); err == nil {
				t.Errorf("%s: no error\n%s%s", command, out, complaints)
			}
		}
	}
	for _, command := range all {
		if out, complaints, err := run(t, dir, command); err != nil {
			t.Fatalf("%s: %v\n%s%s", command, err, out, complaints)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(f.Name(), func(t *testing.T) {
			restore := change(t, filepath.Join(dir, f.Name()), flip)
			defer restore()
			refused(t, byOpenSSL)
			switch f.Name() {
			case "SHA256SUMS", "SHA256SUMS.sig":
				refused(t, byCosign)
			case "provenance.intoto.jsonl", "gdr-features-" + version + "-image.tar":
				refused(t, provenance)
			}
		})
	}
	t.Run("another key", func(t *testing.T) {
		other := otherKey(t)
		restore := change(t, filepath.Join(dir, public), func([]byte) []byte { return other })
		defer restore()
		refused(t, all...)
	})
	t.Run("restored", func(t *testing.T) { // what failed above failed for its change
		for _, command := range all {
			if _, complaints, err := run(t, dir, command); err != nil {
				t.Errorf("%s: %v\n%s", command, err, complaints)
			}
		}
	})
	t.Logf("%d files", len(files))
}

// flip changes one bit in the middle of a text.
func flip(text []byte) []byte {
	text = slices.Clone(text)
	text[len(text)/2] ^= 1
	return text
}

// change replaces the content of a file until the function that it returns is called.
func change(t *testing.T, file string, by func([]byte) []byte) (restore func()) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(by(text))
	return func() { write(text) }
}

// otherKey returns the public key of a pair that nobody has used.
func otherKey(t *testing.T) []byte {
	t.Helper()
	out, complaints, err := run(t, t.TempDir(), "openssl ecparam -name prime256v1 -genkey -noout | openssl ec -pubout")
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints)
	}
	return []byte(out)
}

// TestProvenance: the provenance names every file that was built, the image, and the commit.
func TestProvenance(t *testing.T) {
	var envelope struct{ Payload string }
	decode(t, artifact(t, "provenance.intoto.jsonl"), &envelope)
	payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil {
		t.Fatal(err)
	}
	var statement struct {
		Subject []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				ExternalParameters   map[string]string
				ResolvedDependencies []struct{ Digest map[string]string }
			}
		}
	}
	decode(t, payload, &statement)
	files, err := os.ReadDir(one)
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]string{"registry.example.com/gdr-features": imageDigest(t)}, map[string]string{}
	for _, f := range files {
		want[f.Name()] = fmt.Sprintf("%x", sha256.Sum256(artifact(t, f.Name())))
	}
	maps.DeleteFunc(want, func(name, _ string) bool {
		return slices.Contains([]string{"SHA256SUMS", "SHA256SUMS.sig", public, "provenance.intoto.jsonl"}, name)
	})
	for _, s := range statement.Subject {
		got[s.Name] = s.Digest["sha256"]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	built := statement.Predicate.BuildDefinition
	parameters := map[string]string{"VERSION": version, "IMAGE": "registry.example.com/gdr-features", "URL": "https://example.com/gdr-features"}
	if diff := cmp.Diff(parameters, built.ExternalParameters); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if d := built.ResolvedDependencies; len(d) != 1 || d[0].Digest["gitCommit"] != commit(t) {
		t.Errorf("it was built from %v, not %s", d, commit(t))
	}
}

// TestSignedImage signs image and chart in a registry and verifies both, by the commands of
// docs/release.md. Another key, and an image that nobody has signed, are refused.
func TestSignedImage(t *testing.T) {
	address, shell, refused := registry(t)
	release, err := filepath.Abs(one)
	if err != nil {
		t.Fatal(err)
	}
	key, err := filepath.Abs(".bin/cosign.key")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("COSIGN_PASSWORD", "passphrase") // as build.sh has it
	ours := func(command string) string {
		return strings.NewReplacer("registry.example.com", address, "--key cosign.key", "--key "+key).Replace(command)
	}
	push := "skopeo copy --quiet --all oci-archive:gdr-features-" + version + "-image.tar docker://" + address
	shell(release, push+"/gdr-features:"+version)
	shell(release, push+"/other:"+version)
	verify := strings.Split(strings.TrimSpace(ours(documented(t, steps, "cosign verify "))), "\n")
	if len(verify) != 2 {
		t.Fatalf("commands %q, want one for the image and one for the chart", verify)
	}
	refused(release, verify[0])
	shell(release, ours(documented(t, steps, "image=")))
	other := filepath.Join(t.TempDir(), public)
	if err := os.WriteFile(other, otherKey(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range verify {
		t.Log(shell(release, command))
		refused(release, strings.ReplaceAll(command, public, other))
	}
	refused(release, strings.ReplaceAll(verify[0], "/gdr-features:", "/other:"))
}
