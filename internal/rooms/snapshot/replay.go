package snapshot

import (
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"gdr-features/host"
)

// replay is a host.Source that gives answers that were noted.
type replay struct {
	ask func(question) *answer
	mu  sync.Mutex // of answer.upTo
}

// answer returns the answer to a question. op names it in an error.
func (r *replay) answer(op, name string, k kind) (*answer, error) {
	a := r.ask(question{name, k})
	if a.err != nil {
		return nil, host.PathError(op, name, a.err)
	}
	return a, nil
}

func (r *replay) Link(name string) (string, error) {
	a, err := r.answer("readlink", name, link)
	if err != nil {
		return "", err
	}
	return a.target, nil
}

func (r *replay) Inode(name string) (uint64, error) {
	_, err := r.answer("stat", name, exists)
	return 0, err
}

func (r *replay) Names(name string) ([]string, error) {
	a, err := r.answer("open", name, list)
	if err != nil {
		return nil, err
	}
	if a.stop != nil {
		err = host.PathError("readdir", name, a.stop)
	}
	return slices.Clone(a.names), err
}

// Open lists a directory to open it.
func (r *replay) Open(name string) (host.File, error) {
	k := read
	dir, isDir := strings.CutSuffix(name, "/")
	if isDir {
		k = list
	}
	a, err := r.answer("open", dir, k)
	if err != nil {
		return nil, err
	}
	if isDir {
		a = &answer{stop: unix.EISDIR}
	}
	f := &file{answer: a, mu: &r.mu, end: io.EOF}
	if a.stop != nil {
		f.end = host.PathError("read", name, a.stop)
	}
	return f, nil
}

// file is an open file of which the bytes are known: a host.File.
type file struct {
	*answer
	mu  *sync.Mutex
	end error // what follows the bytes
	at  int64 // where Read goes on
}

func (f *file) Read(buf []byte) (int, error) {
	n, err := f.ReadAt(buf, f.at)
	f.at += int64(n)
	return n, err
}

func (f *file) ReadAt(buf []byte, at int64) (int, error) {
	f.mu.Lock()
	f.upTo = max(f.upTo, at+int64(len(buf)))
	f.mu.Unlock()
	n := copy(buf, f.data[min(at, int64(len(f.data))):])
	if n < len(buf) {
		return n, f.end
	}
	return n, nil
}

func (f *file) Close() error { return nil }
