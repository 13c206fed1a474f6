// Command release writes everything that a release consists of into a directory, the same
// bytes for the same commit and the same Go. It runs in the root of the repository:
//
//	make release VERSION=v1.0.0
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/semver"
)

// release is what all artifacts have in common.
type release struct {
	version  string    // with v, such as v1.0.0
	revision string    // the commit
	at       time.Time // of the commit
	image    string    // name of the image in its registry, without tag
	url      string    // of the project; downloads are below url/releases/download/VERSION
	out      string    // directory that gets the artifacts
	stage    string    // directory for what they are made of
	signer   *signer   // nil where nothing is signed
}

func main() {
	r := &release{}
	flag.StringVar(&r.version, "version", "", "version, such as v1.0.0")
	flag.StringVar(&r.revision, "revision", "", "commit; by default what git says. Set it and SOURCE_DATE_EPOCH to build without git")
	flag.StringVar(&r.image, "image", "registry.example.com/gdr-features", "name of the image in its registry, for the manifests")
	flag.StringVar(&r.url, "url", "https://example.com/gdr-features", "page of the project; downloads are expected below URL/releases/download/VERSION")
	flag.StringVar(&r.out, "o", "dist", "directory to write to; removed first")
	key := flag.String("sign-key", "", "file with the private key (ECDSA P-256) that signs the release; by default nothing is signed")
	flag.Parse()
	if err := r.run(*key); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// environment makes builds the same wherever they run.
var environment = map[string]string{
	"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOAMD64": "v1", "GOARM64": "v8.0", "GOEXPERIMENT": "", "GOWORK": "off",
	"LC_ALL": "C", "TZ": "UTC",
}

func (r *release) run(key string) error {
	if !semver.IsValid(r.version) || semver.Canonical(r.version) != r.version {
		return fmt.Errorf("%q is not a version such as v1.0.0 or v1.0.0-rc.1 (make release VERSION=v1.0.0)", r.version)
	}
	if err := r.signWith(key); err != nil {
		return err
	}
	if err := r.identify(); err != nil {
		return err
	}
	syscall.Umask(0o022) // of the files in packages
	for name, value := range environment {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if err := os.Setenv("SOURCE_DATE_EPOCH", strconv.FormatInt(r.at.Unix(), 10)); err != nil {
		return err
	}
	stage, err := os.MkdirTemp("", "gdr-features-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	r.stage = stage
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	for _, step := range []struct {
		doing string
		do    func() error
	}{
		{"building the programs", r.build},
		{"packing archives", r.archives},
		{"packing packages", r.packages},
		{"building the image", r.ociArchive},
		{"writing manifests and chart", func() error { return errors.Join(r.installYAML(), r.chart(), r.krew(), r.imageList()) }},
		{"listing what is in all of them", r.boms},
		{"writing checksums", r.seal},
	} {
		fmt.Fprintln(os.Stderr, step.doing, "...")
		if err := step.do(); err != nil {
			return err
		}
	}
	return nil
}

// identify finds out commit and time. What is not committed would be in no commit.
func (r *release) identify() error {
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if r.revision == "" || seconds == "" {
		changed, err := output("git", "status", "--porcelain")
		if err != nil {
			return err
		}
		if changed != "" {
			return fmt.Errorf("a release is built from a commit, but these files are not committed:\n%s", changed)
		}
		commit, err := output("git", "log", "-1", "--format=%H %ct")
		if err != nil {
			return err
		}
		r.revision, seconds, _ = strings.Cut(commit, " ")
	}
	epoch, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("time of the commit (SOURCE_DATE_EPOCH): %w", err)
	}
	r.at = time.Unix(epoch, 0).UTC()
	return nil
}

// output runs a program and returns what it prints.
func output(name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", c, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// show runs a program that says how far it is.
func show(name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr // stdout has the names of artifacts
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}

// number is the version without v, as packages and charts have it.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

// write writes an artifact.
func (r *release) write(name string, body []byte) error {
	fmt.Println(filepath.Join(r.out, name))
	return os.WriteFile(filepath.Join(r.out, name), body, 0o644)
}
