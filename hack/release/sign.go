package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// The files that only a signed release has, beside the signature of SHA256SUMS.
const (
	publicKey      = "gdr-features.pub"
	provenanceFile = "provenance.intoto.jsonl"
)

// signer signs with a private key. The same key and the same bytes give the same signature.
type signer struct{ key *ecdsa.PrivateKey }

// Sign returns the signature of a text, in ASN.1, as cosign and openssl expect it.
func (s signer) Sign(_ context.Context, text []byte) ([]byte, error) {
	sum := sha256.Sum256(text)
	return s.key.Sign(nil, sum[:], crypto.SHA256) // without randomness: RFC 6979
}

// KeyID returns nothing: a release has one key.
func (signer) KeyID() (string, error) { return "", nil }

var errPassphrase = errors.New("it is encrypted: set COSIGN_PASSWORD to its passphrase")

// signWith makes it a signed release if there is a key.
func (r *release) signWith(file string) (err error) {
	if file == "" {
		return nil
	}
	if r.revision != "" { // nobody has compared it with the files
		return errors.New("a signed release is built from the commit that git names: leave out REVISION")
	}
	r.signer, err = readKey(file)
	return err
}

// readKey reads a private key, in any of the forms that openssl and cosign write.
func readKey(file string) (*signer, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("SIGN_KEY: %w", err)
	}
	block, rest := pem.Decode(text)
	if block != nil && block.Type == "EC PARAMETERS" { // openssl ecparam writes the curve first
		text = rest
		block, _ = pem.Decode(rest)
	}
	if block != nil && strings.HasSuffix(block.Type, "PUBLIC KEY") {
		return nil, fmt.Errorf("SIGN_KEY: %s is a public key: name the file with the private key", file)
	}
	private, err := cryptoutils.UnmarshalPEMToPrivateKey(text, func(bool) ([]byte, error) {
		passphrase, ok := os.LookupEnv("COSIGN_PASSWORD")
		if !ok {
			return nil, errPassphrase
		}
		return []byte(passphrase), nil
	})
	const want = "want a private ECDSA key on the curve P-256, as cosign generate-key-pair makes it"
	switch key, ok := private.(*ecdsa.PrivateKey); {
	case errors.Is(err, errPassphrase):
		return nil, fmt.Errorf("SIGN_KEY: %s: %w", file, err)
	case err != nil && block != nil && strings.Contains(block.Type, "ENCRYPTED"):
		return nil, fmt.Errorf("SIGN_KEY: %s: COSIGN_PASSWORD is not its passphrase, or the file is damaged (%w)", file, err)
	case err != nil:
		return nil, fmt.Errorf("SIGN_KEY: %s: %w; %s", file, err, want)
	case !ok || key.Curve != elliptic.P256():
		return nil, fmt.Errorf("SIGN_KEY: %s has a key of another kind; %s", file, want)
	default:
		return &signer{key}, nil
	}
}

// seal writes SHA256SUMS, which names every other file, and in a signed release before it
// provenance and public key, and after it its signature: that covers all files.
func (r *release) seal() error {
	if r.signer == nil {
		return r.sums()
	}
	envelope, err := r.provenance()
	if err != nil {
		return err
	}
	key, err := cryptoutils.MarshalPublicKeyToPEM(r.signer.key.Public())
	if err != nil {
		return err
	}
	if err := errors.Join(r.write(provenanceFile, envelope), r.write(publicKey, key), r.sums()); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	if err != nil {
		return err
	}
	signature, err := r.signer.Sign(context.Background(), text)
	if err != nil {
		return err
	}
	return r.write("SHA256SUMS.sig", []byte(base64.StdEncoding.EncodeToString(signature)+"\n"))
}
