package snapshot

import (
	"io"
	"math"
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

// Link implements host.Source.
func (r *replay) Link(name string) (string, error) {
	a, err := r.answer("readlink", name, link)
	if err != nil {
		return "", err
	}
	return a.target, nil
}

// Inode implements host.Source.
func (r *replay) Inode(name string) (uint64, error) {
	_, err := r.answer("stat", name, exists)
	return 0, err
}

// Names implements host.Source.
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

// Open implements host.Source. To open a directory it lists it.
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
	c := content{a, &r.mu, io.EOF}
	if a.stop != nil {
		c.end = host.PathError("read", name, a.stop)
	}
	return file{io.NewSectionReader(c, 0, math.MaxInt64)}, nil
}

// file is an open file of which the bytes are known: a host.File.
type file struct{ *io.SectionReader }

func (file) Close() error { return nil }

// content are the bytes of a file, for its reader.
type content struct {
	*answer
	mu  *sync.Mutex
	end error // what follows the bytes
}

func (c content) ReadAt(buf []byte, at int64) (int, error) {
	c.mu.Lock()
	c.upTo = max(c.upTo, at+int64(len(buf)))
	c.mu.Unlock()
	n := copy(buf, c.data[min(at, int64(len(c.data))):])
	if n < len(buf) {
		return n, c.end
	}
	return n, nil
}
