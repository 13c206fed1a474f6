package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gdr-features/host"
)

// Recording is what a machine answered.
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
func (r *Recording) FS(root string) *host.FS { return host.New(&replay{ask: r.known}, root) }

// known returns the recorded answer to a question.
func (r *Recording) known(q question) *answer {
	a := r.answers[q]
	switch {
	case a == nil:
		return &answer{err: r.unknown(q.name)}
	case errors.Is(a.err, ErrNoAnswer):
		<-r.timeout
	}
	return a
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
