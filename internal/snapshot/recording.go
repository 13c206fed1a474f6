package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gdr-features/host"
)

// Recording is what a machine answered. It is a host.Source.
type Recording struct {
	// Notes are for people, at the beginning of the text.
	Notes []string

	answers map[question]*answer
	timeout <-chan struct{} // closed when waiting for missing answers ends with an error
}

// answerTimeout is how long a question that the machine did not answer is not
// answered here either. It is longer than any command waits, but finite, so that no
// reader waits for ever.
const answerTimeout = 5 * time.Second

// Is reports whether a root is a file, not a directory: it can only be a snapshot.
func Is(root string) bool {
	info, err := os.Stat(root)
	return err == nil && info.Mode().IsRegular()
}

// Open opens a machine: its files, or a snapshot of it.
func Open(o host.Options) (*host.FS, error) {
	if fs, err := host.Open(o); err == nil || !Is(o.Root) {
		return fs, err
	}
	if o.Sysfs != "" || o.Procfs != "" {
		return nil, fmt.Errorf("--sysfs and --procfs do not go with --root %s, a snapshot", o.Root)
	}
	file, err := os.OpenFile(o.Root, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxText+1))
	if err != nil {
		return nil, err
	}
	r, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Root, err)
	}
	return r.FS(o.Root), nil
}

// FS is the tree of files that the recording answers for. root is the name to show.
func (r *Recording) FS(root string) *host.FS { return host.New(r, root) }

// answer returns the answer to a question. op names it in an error.
func (r *Recording) answer(op, name string, k kind) (*answer, error) {
	a := r.answers[question{name: name, kind: k}]
	switch {
	case a == nil:
		return nil, host.PathError(op, name, r.unknown(name))
	case errors.Is(a.err, ErrNoAnswer):
		<-r.timeout
		fallthrough
	case a.err != nil:
		return nil, host.PathError(op, name, a.err)
	}
	return a, nil
}

// unknown is the error for what was not asked: a name is known to be missing if its
// directory was listed without it.
func (r *Recording) unknown(name string) error {
	dir, base := path.Split(name)
	above := r.answers[question{name: path.Clean(dir), kind: list}]
	if above == nil || above.err != nil || above.stop != nil || slices.Contains(above.names, base) {
		return ErrNotRecorded
	}
	return unix.ENOENT
}

// Link implements host.Source.
func (r *Recording) Link(name string) (string, error) {
	a, err := r.answer("readlink", name, link)
	if err != nil {
		return "", err
	}
	return a.target, nil
}

// Inode implements host.Source.
func (r *Recording) Inode(name string) (uint64, error) {
	_, err := r.answer("stat", name, exists)
	return 0, err
}

// Names implements host.Source.
func (r *Recording) Names(name string) ([]string, error) {
	a, err := r.answer("open", name, list)
	if err != nil {
		return nil, err
	}
	if a.stop != nil {
		err = host.PathError("readdir", name, a.stop)
	}
	return slices.Clone(a.names), err
}

// Open implements host.Source.
func (r *Recording) Open(name string) (host.File, error) {
	if dir, ok := strings.CutSuffix(name, "/"); ok {
		_, err := r.answer("open", dir, list)
		return openDir(name, err)
	}
	a, err := r.answer("open", name, read)
	if err != nil {
		return nil, err
	}
	stop := a.stop
	if stop != nil {
		stop = host.PathError("read", name, stop)
	}
	return newFile(a.data, stop, func(int64) {}), nil
}
