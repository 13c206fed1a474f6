package snapshot

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"gdr-features/host"
)

// Recorder asks a machine and notes what it says. What was asked once is not asked
// again: all commands see one moment of the machine. It is a host.Source.
type Recorder struct {
	machine host.Source

	mu      sync.Mutex // of all that follows; not held while the machine is asked
	answers map[question]*answer
}

// Record gives a recorder of a machine.
func Record(machine host.Source) *Recorder {
	return &Recorder{machine: machine, answers: map[question]*answer{}}
}

// FS is the tree of files that the recorder answers for. root is the name to show.
func (r *Recorder) FS(root string) *host.FS { return host.New(r, root) }

// answer gives the answer to a question, for which it calls ask if the machine was
// not asked before.
func (r *Recorder) answer(q question, ask func(*answer) error) *answer {
	r.mu.Lock()
	a, asked := r.answers[q]
	if !asked {
		a = &answer{done: make(chan struct{})}
		r.answers[q] = a
	}
	r.mu.Unlock()
	if asked {
		<-a.done
		return a
	}
	a.err = ask(a)
	close(a.done)
	return a
}

// Link implements host.Source.
func (r *Recorder) Link(name string) (string, error) {
	a := r.answer(question{name, link}, func(a *answer) (err error) {
		a.target, err = r.machine.Link(name)
		return err
	})
	return a.target, a.err
}

// Inode implements host.Source.
func (r *Recorder) Inode(name string) (uint64, error) {
	a := r.answer(question{name, exists}, func(*answer) error {
		_, err := r.machine.Inode(name)
		return err
	})
	return 0, a.err
}

// Names implements host.Source.
func (r *Recorder) Names(name string) ([]string, error) {
	a := r.answer(question{name, list}, func(a *answer) error {
		names, err := r.machine.Names(name)
		if path, ok := errors.AsType[*fs.PathError](err); ok && path.Op == "open" {
			return err
		}
		a.names, a.listed = names, err
		return nil
	})
	return slices.Clone(a.names), cmp.Or(a.err, a.listed)
}

// Open implements host.Source.
func (r *Recorder) Open(name string) (host.File, error) {
	f := &recordedFile{r: r, name: name}
	f.answer = r.answer(question{name, read}, func(*answer) (err error) {
		f.machine, err = r.machine.Open(name)
		return err
	})
	if f.answer.err != nil {
		return nil, f.answer.err
	}
	return f, nil
}

// recordedFile is an open file of a Recorder.
type recordedFile struct {
	r       *Recorder
	name    string
	answer  *answer
	machine host.File // nil if it was opened before and all that was read is noted
}

func (f *recordedFile) ReadAt(buf []byte, offset int64) (n int, err error) {
	for n < len(buf) && err == nil {
		var more int
		more, err = f.read(buf[n:], offset+int64(n))
		n += more
	}
	return n, err
}

// read gives what is noted at an offset, or else reads the machine up to the next
// bytes that are.
func (f *recordedFile) read(buf []byte, offset int64) (int, error) {
	c := &f.answer.content
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	for c.reading != nil && !c.known(offset) { // another reader may get there
		reading := c.reading
		f.r.mu.Unlock()
		<-reading
		f.r.mu.Lock()
	}
	if c.known(offset) {
		return c.read(buf, offset)
	}
	buf = buf[:c.gap(offset, len(buf))]
	c.reading, c.asked = make(chan struct{}), offset
	f.r.mu.Unlock()
	n, err := f.readMachine(buf, offset)
	f.r.mu.Lock()
	c.note(buf[:n], offset, err)
	close(c.reading)
	c.reading = nil
	return n, err
}

func (f *recordedFile) readMachine(buf []byte, offset int64) (n int, err error) {
	if f.machine == nil {
		if f.machine, err = f.r.machine.Open(f.name); err != nil {
			return 0, err
		}
	}
	return f.machine.ReadAt(buf, offset)
}

func (f *recordedFile) Close() error {
	if f.machine == nil {
		return nil
	}
	return f.machine.Close()
}

// Finish gives the recording, and the names of what gave no answer. Readers that
// still wait for one do not change it any more.
func (r *Recorder) Finish() (recording *Recording, late []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	recording = &Recording{answers: map[question]*answer{}}
	for q, a := range r.answers {
		noted := a.copy()
		if errors.Is(cmp.Or(noted.err, noted.listed, noted.content.err), ErrNoAnswer) {
			late = append(late, "/"+q.name)
		}
		if dir, ok := strings.CutSuffix(q.name, "/"); ok { // a directory that was opened
			q = question{dir, list}
			noted.listed = ErrNotRecorded
			if r.answers[q] != nil {
				continue
			}
		}
		if !errors.Is(noted.err, ErrNotRecorded) {
			recording.answers[q] = noted
		}
	}
	slices.Sort(late)
	return recording, slices.Compact(late)
}

// copy gives what is known by now.
func (a *answer) copy() *answer {
	select {
	case <-a.done:
	default:
		return &answer{err: ErrNoAnswer}
	}
	noted := &answer{err: told(a.err), target: a.target, names: slices.Clone(a.names), listed: told(a.listed), content: a.content}
	noted.content.err = told(a.content.err)
	noted.join()
	if a.reading != nil {
		noted.fail(ErrNoAnswer, a.asked)
		noted.reading = nil
	}
	return noted
}

// told gives an error as the text of a snapshot tells it, without the file's name.
func told(err error) error {
	if errors.Is(err, ErrNotRecorded) {
		return ErrNotRecorded
	}
	return faultNamed(fault(err))
}
