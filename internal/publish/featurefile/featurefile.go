// Package featurefile publishes labels as a feature file, which the nfd-worker
// of the node reads.
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

	"gdr-features/internal/label"
	"gdr-features/internal/publish"
)

const (
	// Name of the file.
	Name = "gdr-features.features"
	// life is how long state labels last; they are renewed at half of it.
	life = time.Hour
	// nudging is how long a file is touched after it has moved in, every so
	// often, until somebody has read it. NFD 0.19 acts on the first event in the
	// directory and ignores all others until its ticker of a second has ticked
	// (source/local, runNotifier): so it notices the file at last, soon after.
	nudging = 1100 * time.Millisecond
	often   = 100 * time.Millisecond
	// longest is the size NFD reads (source/local, MaxFeatureFileSize).
	longest = 64 << 10
	mode    = 0o644
	// staged begins the names of temporary files.
	staged = "." + Name + "."
)

// Publisher writes the file. It appears whole or not at all: it is written
// beside the directory, where nobody watches, and moved in.
type Publisher struct {
	dir    string
	now    func() time.Time
	stop   chan struct{} // closed to end the nudging; nil before any
	nudged chan struct{} // closed after it
	swept  bool          // of what a killed predecessor left behind

	text string      // of the file as it was last read or written
	info os.FileInfo // of that file; nil for none
}

var _ publish.Publisher = (*Publisher)(nil)

// New publishes in a directory, features.d as a rule. It need not exist yet.
func New(dir string, now func() time.Time) *Publisher { return &Publisher{dir: dir, now: now} }

// Name implements publish.Publisher.
func (*Publisher) Name() string { return "file" }

// Changed is nil: the file is compared at every Publish.
func (*Publisher) Changed() <-chan struct{} { return nil }

func (p *Publisher) path() string { return filepath.Join(p.dir, Name) }

// Last reads the file back, without what has expired.
func (p *Publisher) Last(context.Context) (label.Set, error) {
	text, err := p.read()
	if err != nil {
		return nil, err
	}
	return parse(text).alive(p.now()), nil
}

// Publish writes the file when the labels in it are others, or when its state
// labels have lived half their time. Without labels there is no file.
func (p *Publisher) Publish(_ context.Context, c publish.Content) (wrote bool, err error) {
	text, err := p.read()
	if err != nil {
		return false, err
	}
	if len(c.Labels) == 0 {
		return p.remove()
	}
	f := parse(text)
	fresh := f.expiry.Sub(c.Seen) > life/2 && !f.expiry.After(c.Seen.Add(life))
	if text == format(c.Labels, f.expiry) && (fresh || !f.expires) {
		return false, nil
	}
	err = p.write(format(c.Labels, c.Seen.Add(life)))
	return err == nil, err
}

// Remove removes the file, and what a killed agent has left of others.
func (p *Publisher) Remove(context.Context) error {
	p.sweep(p.beside(), p.dir)
	_, err := p.remove()
	return err
}

// Close waits for the end of the nudging, so that the worker has noticed the file.
func (p *Publisher) Close(ctx context.Context) error {
	if p.stop == nil {
		return nil
	}
	select {
	case <-p.nudged:
	case <-ctx.Done():
	}
	return nil
}

// open opens the file, and no other one that a link leads to.
func (p *Publisher) open() (*os.File, error) {
	return os.OpenFile(p.path(), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}

// read gives the text of the file, "" when there is none, or something else in
// its place. A file that is still the one it was is not read again: whoever
// reads it is to be NFD.
func (p *Publisher) read() (string, error) {
	if info, err := os.Lstat(p.path()); err == nil && p.same(info) {
		return p.text, nil
	}
	p.info = nil
	f, err := p.open()
	for _, none := range []error{fs.ErrNotExist, syscall.ELOOP, syscall.ENXIO} {
		if errors.Is(err, none) { // nothing, a link, a socket
			return "", nil
		}
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, longest))
	if err == nil {
		p.text, p.info = string(text), info
	}
	return string(text), err
}

// same tells whether a file is the one whose text is known.
func (p *Publisher) same(info os.FileInfo) bool {
	return p.info != nil && os.SameFile(info, p.info) && info.Size() == p.info.Size() && info.ModTime().Equal(p.info.ModTime())
}

// beside is where files are staged.
func (p *Publisher) beside() string { return filepath.Dir(filepath.Clean(p.dir)) }

// write puts the text beside the directory and moves it in. Where that is no
// place to write to, or on another file system, the directory itself has to do:
// NFD passes over names that begin with a dot.
func (p *Publisher) write(text string) error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil { //nolint:gosec // the worker, which is not root, must see into it
		return err
	}
	p.sweep(p.beside(), p.dir)
	err := p.place(p.beside(), text)
	if err != nil {
		if inside := p.place(p.dir, text); inside != nil {
			return errors.Join(err, inside)
		}
	}
	p.text = text
	return nil
}

// sweep removes temporary files that a killed agent has left. One that is young
// may belong to an agent that is just being replaced, and is left for later.
func (p *Publisher) sweep(dirs ...string) {
	if p.swept {
		return
	}
	p.swept = true
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || !strings.HasPrefix(e.Name(), staged) {
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

// place writes a temporary file in a directory and moves it to its place.
func (p *Publisher) place(dir, text string) (err error) {
	f, err := os.CreateTemp(dir, staged+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
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
	p.nudge(w)
	return nil
}

// remove takes away what stands in the file's place.
func (p *Publisher) remove() (removed bool, err error) {
	err = os.Remove(p.path())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.nudge(nobody)
	return true, nil
}

// nudge touches the file for a while, in place of any nudging before, until the
// witness has seen it read.
func (p *Publisher) nudge(w witness) {
	if p.stop != nil {
		close(p.stop)
	}
	stop, nudged := make(chan struct{}), make(chan struct{})
	p.stop, p.nudged = stop, nudged
	go func() {
		defer close(nudged)
		defer w.close()
		ticks := time.NewTicker(often)
		defer ticks.Stop()
		for range nudging / often {
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

// touch makes an event in the directory: setting the mode that the file has, or,
// where it was removed, putting a hidden file there for a moment.
func (p *Publisher) touch() {
	if f, err := p.open(); err == nil {
		err = f.Chmod(mode)
		_ = f.Close()
		if err == nil {
			return
		}
	}
	if f, err := os.CreateTemp(p.dir, staged+"*"); err == nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}
