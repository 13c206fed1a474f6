//go:build release

package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	version = "v1.0.0"
	number  = "1.0.0"
	one     = ".bin/one"
	two     = ".bin/two"
)

// epoch is SOURCE_DATE_EPOCH of build.sh.
var epoch = time.Unix(1767225600, 0).UTC()

// member is a file of an archive.
type member struct {
	mode fs.FileMode
	body []byte
	link string
}

// artifact returns the content of a file of the release.
func artifact(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(one, name))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// unpack returns the files of an archive of programs, after checking that they are of its
// time, belong to root, and lie in the directory that the archive is named after.
func unpack(t *testing.T, name string) map[string]member {
	t.Helper()
	var members map[string]member
	var directory string
	if base, ok := strings.CutSuffix(name, ".zip"); ok {
		members, directory = unzip(t, artifact(t, name)), base
	} else {
		plain, at := gunzip(t, artifact(t, name))
		if !at.IsZero() {
			t.Errorf("%s was compressed at %v", name, at)
		}
		members, directory = untar(t, plain), strings.TrimSuffix(name, ".tar.gz")
	}
	inside := map[string]member{}
	for file, m := range members {
		rest, ok := strings.CutPrefix(file, directory+"/")
		if !ok {
			t.Errorf("%s: %s is not in the directory %s", name, file, directory)
		}
		inside[rest] = m
	}
	return inside
}

// gunzip returns a compressed text and the time in it.
func gunzip(t *testing.T, body []byte) ([]byte, time.Time) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain, z.ModTime
}

func untar(t *testing.T, body []byte) map[string]member {
	t.Helper()
	members := map[string]member{}
	for r := tar.NewReader(bytes.NewReader(body)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return members
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(epoch) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s is from %v and belongs to %d:%d %s", h.Name, h.ModTime, h.Uid, h.Gid, h.Uname)
		}
		members[h.Name] = member{h.FileInfo().Mode(), text, h.Linkname}
	}
}

func unzip(t *testing.T, body []byte) map[string]member {
	t.Helper()
	members := map[string]member{}
	r, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if !f.Modified.Equal(epoch) {
			t.Errorf("%s is from %v", f.Name, f.Modified)
		}
		members[f.Name] = member{mode: f.Mode(), body: text}
	}
	return members
}
