package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// entry is a file or a link in an archive.
type entry struct {
	name string // with slashes
	mode fs.FileMode
	body []byte
	link string // what a symbolic link points to; "" for a file
}

// readTree returns the files and links below a directory, named below prefix.
func readTree(directory, prefix string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(directory, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(directory, name)
		if err != nil {
			return err
		}
		e := entry{name: path.Join(prefix, filepath.ToSlash(relative))}
		if d.Type() == fs.ModeSymlink {
			e.link, err = os.Readlink(name)
		} else {
			e.body, err = os.ReadFile(name)
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		e.mode = permissions(info.Mode())
		entries = append(entries, e)
		return err
	})
	return entries, err
}

// permissions returns what everybody may do with a file, whatever the umask was: read it,
// and run it if its owner may.
func permissions(mode fs.FileMode) fs.FileMode {
	if mode&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

// sorted returns the entries by name: the same content gives the same archive.
func sorted(entries []entry) []entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return cmp.Compare(a.name, b.name) })
}

// tarGzip returns a compressed tar archive. All files belong to root and are from the
// given time.
func tarGzip(entries []entry, at time.Time) ([]byte, error) {
	var plain bytes.Buffer
	t := tar.NewWriter(&plain)
	for _, e := range sorted(entries) {
		header := &tar.Header{Name: e.name, Mode: int64(e.mode), Size: int64(len(e.body)), ModTime: at, Format: tar.FormatPAX}
		if e.link != "" {
			header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, e.link, 0o777
		}
		if err := t.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := t.Write(e.body); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	return compress(plain.Bytes())
}

// compress returns the gzip form of a text, without name and time.
func compress(text []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// zipped returns a zip archive, for Windows. It knows no links.
func zipped(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range sorted(entries) {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(e.mode)
		w, err := z.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(w, bytes.NewReader(e.body)); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}
