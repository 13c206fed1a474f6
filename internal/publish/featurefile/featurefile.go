// Package featurefile publishes labels as a feature file, which nfd-worker reads.
package featurefile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gdr-features/internal/publish"
)

const (
	// Name of the file.
	Name = "gdr-features.features"
	// stateTTL is how long state labels last; they are renewed at half of it.
	stateTTL = time.Hour
	// touchFor is how long a file is touched every touchEvery after it was moved in, unless it
	// is read before. After an event NFD 0.19 ignores others until its ticker of a second has
	// ticked (source/local, runNotifier): it notices one of these.
	touchFor   = 1100 * time.Millisecond
	touchEvery = 100 * time.Millisecond
	// maxFileSize in bytes is what NFD reads (source/local, MaxFeatureFileSize).
	maxFileSize = 64 << 10
	fileMode    = 0o644
	// stagedPrefix begins the names of temporary files.
	stagedPrefix = "." + Name + "."
)

// Publisher writes the file, which appears whole or not at all: it is staged in the
// parent directory, which is not watched, then renamed into place.
type Publisher struct {
	dir          string
	now          func() time.Time
	stopTouching chan struct{} // closed to stop touching the file; nil at first
	touched      chan struct{} // closed when that has ended
	swept        bool          // no staged files of killed agents are left

	text string      // of the file as last read or written
	info os.FileInfo // of that file; nil for none
}

var _ publish.Publisher = (*Publisher)(nil)

// New returns a publisher for a directory, usually features.d, which need not exist yet.
func New(dir string, now func() time.Time) *Publisher { return &Publisher{dir: dir, now: now} }

// Name implements publish.Publisher.
func (*Publisher) Name() string { return "file" }

// Changed is nil: the file is compared at every Publish.
func (*Publisher) Changed() <-chan struct{} { return nil }

func (p *Publisher) path() string { return filepath.Join(p.dir, Name) }

// Last reads the file back, without what has expired.
func (p *Publisher) Last(context.Context) (publish.Content, error) {
	text, err := p.read()
	if err != nil {
		return publish.Content{}, err
	}
	f := parse(text)
	return publish.Content{Labels: f.unexpired(p.now()), BootID: f.bootID}, nil
}

// Publish writes the file when its labels are not these, or when half the lifetime of its
// state labels is over. Without labels there is no file.
func (p *Publisher) Publish(_ context.Context, c publish.Content) (wrote bool, err error) {
	text, err := p.read()
	if err != nil {
		return false, err
	}
	if len(c.Labels) == 0 {
		return p.remove()
	}
	f := parse(text)
	fresh := f.expiry.Sub(c.Seen) > stateTTL/2 && !f.expiry.After(c.Seen.Add(stateTTL))
	if text == format(c, f.expiry) && (fresh || !f.expires) {
		return false, nil
	}
	err = p.write(format(c, c.Seen.Add(stateTTL)))
	return err == nil, err
}

// Remove removes the file, and staged files that killed agents have left.
func (p *Publisher) Remove(context.Context) error {
	p.removeStaged()
	_, err := p.remove()
	return err
}

// Close waits until the file is not touched any more, so that nfd-worker has noticed it.
func (p *Publisher) Close(ctx context.Context) error {
	if p.stopTouching == nil {
		return nil
	}
	select {
	case <-p.touched:
	case <-ctx.Done():
	}
	return nil
}

// open opens the file, but does not follow a symlink in its place.
func (p *Publisher) open() (*os.File, error) {
	return os.OpenFile(p.path(), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}

// read returns the text of the file, "" when there is none or something else in its place.
// A file that has not changed is not read again, so that a read of it is one by NFD.
func (p *Publisher) read() (string, error) {
	if info, err := os.Lstat(p.path()); err == nil && p.unchanged(info) {
		return p.text, nil
	}
	p.info = nil
	f, err := p.open()
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO): // nothing, a link, a socket
		return "", nil
	case err != nil:
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFileSize))
	if err == nil {
		p.text, p.info = string(text), info
	}
	return string(text), err
}

// unchanged reports whether a file is the one whose text is known.
func (p *Publisher) unchanged(info os.FileInfo) bool {
	return p.info != nil && os.SameFile(info, p.info) && info.Size() == p.info.Size() && info.ModTime().Equal(p.info.ModTime())
}

func (p *Publisher) stagingDir() string { return filepath.Dir(filepath.Clean(p.dir)) }

// write stages the text and moves it in. Where the parent directory cannot be written, or
// is another file system, the text is staged in the directory itself: NFD ignores names
// that begin with a dot.
func (p *Publisher) write(text string) error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil { //nolint:gosec // the worker, which is not root, must see into it
		return err
	}
	p.removeStaged()
	err := p.moveIn(p.stagingDir(), text)
	if err != nil {
		if inside := p.moveIn(p.dir, text); inside != nil {
			return errors.Join(err, inside)
		}
	}
	p.text = text
	return nil
}

// removeStaged removes staged files that killed agents have left. A young one may belong
// to an agent that is just being replaced, and is left for later.
func (p *Publisher) removeStaged() {
	if p.swept {
		return
	}
	p.swept = true
	for _, dir := range []string{p.stagingDir(), p.dir} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || !strings.HasPrefix(e.Name(), stagedPrefix) {
				continue
			}
			if p.now().Sub(info.ModTime()) <= time.Minute {
				p.swept = false
				continue
			}
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// moveIn stages a file in a directory and renames it into place.
func (p *Publisher) moveIn(dir, text string) (err error) {
	f, err := os.CreateTemp(dir, stagedPrefix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(fileMode), f.Sync())
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Close()); err != nil {
		return err
	}
	w := watchReads(f.Name())
	if err = os.Rename(f.Name(), p.path()); err != nil {
		w.close()
		return err
	}
	p.info = info
	p.touchUntilRead(w)
	return nil
}

// remove removes the file, or what is in its place.
func (p *Publisher) remove() (removed bool, err error) {
	err = os.Remove(p.path())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.touchUntilRead(noReadWatch)
	return true, nil
}

// touchUntilRead touches the file for a while, until w has seen a read of it. It
// stops the touching of an earlier file.
func (p *Publisher) touchUntilRead(w readWatch) {
	if p.stopTouching != nil {
		close(p.stopTouching)
	}
	stop, touched := make(chan struct{}), make(chan struct{})
	p.stopTouching, p.touched = stop, touched
	go func() {
		defer close(touched)
		defer w.close()
		ticks := time.NewTicker(touchEvery)
		defer ticks.Stop()
		for range touchFor / touchEvery {
			select {
			case <-ticks.C:
				if w.read() {
					return
				}
				p.touch()
			case <-stop:
				return
			}
		}
	}()
}

// touch causes an event in the directory: it sets the mode that the file has, or, where
// the file was removed, creates a hidden file and removes it.
func (p *Publisher) touch() {
	if f, err := p.open(); err == nil {
		err = f.Chmod(fileMode)
		_ = f.Close()
		if err == nil {
			return
		}
	}
	if f, err := os.CreateTemp(p.dir, stagedPrefix+"*"); err == nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}

// readWatch notices that anybody reads a file, even from another container: the kernel
// reports it for the inode, wherever that is moved (inotify(7), IN_ACCESS).
type readWatch int

// noReadWatch never notices anything: it is no file descriptor.
const noReadWatch readWatch = -1

// watchReads begins to watch a file; it gives noReadWatch where that does not work.
func watchReads(path string) readWatch {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return noReadWatch
	}
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_ACCESS); err != nil {
		_ = unix.Close(fd)
		return noReadWatch
	}
	return readWatch(fd)
}

func (w readWatch) read() bool {
	var event [unix.SizeofInotifyEvent + unix.NAME_MAX + 1]byte
	n, err := unix.Read(int(w), event[:])
	return err == nil && n > 0
}

func (w readWatch) close() {
	_ = unix.Close(int(w))
}
