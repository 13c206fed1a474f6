package snapshot

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"gdr-features/host"
)

// Recorder reads a machine and notes its answers. Each question is asked only once,
// so that all commands see the machine at one time. It is a host.Source.
type Recorder struct {
	machine host.Source

	mu    sync.Mutex // of asked; not held while the machine is asked
	asked map[question]*asked
}

// asked is a question that a Recorder has asked.
type asked struct {
	done chan struct{} // closed when the machine has answered
	answer
	data []byte // of a read
}

// Record returns a recorder of a machine.
func Record(machine host.Source) *Recorder {
	return &Recorder{machine: machine, asked: map[question]*asked{}}
}

// FS is the tree of files that the recorder answers for. root is the name to show.
func (r *Recorder) FS(root string) *host.FS { return host.New(r, root) }

// ask returns the answer to a question, for which it calls machine if it was not asked
// before.
func (r *Recorder) ask(q question, machine func(*asked) error) *asked {
	r.mu.Lock()
	a, ok := r.asked[q]
	if !ok {
		a = &asked{done: make(chan struct{})}
		r.asked[q] = a
	}
	r.mu.Unlock()
	if ok {
		<-a.done
		return a
	}
	a.err = machine(a)
	close(a.done)
	return a
}

// Link implements host.Source.
func (r *Recorder) Link(name string) (string, error) {
	a := r.ask(question{name: name, kind: link}, func(a *asked) (err error) {
		a.target, err = r.machine.Link(name)
		return err
	})
	return a.target, a.err
}

// Inode implements host.Source.
func (r *Recorder) Inode(name string) (uint64, error) {
	a := r.ask(question{name: name, kind: exists}, func(*asked) error {
		_, err := r.machine.Inode(name)
		return err
	})
	return 0, a.err
}

// Names implements host.Source.
func (r *Recorder) Names(name string) ([]string, error) {
	a := r.ask(question{name: name, kind: list}, func(a *asked) error {
		names, err := r.machine.Names(name)
		if path, ok := errors.AsType[*fs.PathError](err); ok && path.Op == "open" {
			return err
		}
		a.names, a.stop = names, cmp.Or(err, io.EOF)
		return nil
	})
	err := cmp.Or(a.err, a.stop)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return slices.Clone(a.names), err
}

// Open implements host.Source.
func (r *Recorder) Open(name string) (host.File, error) {
	f := &recordedFile{r: r, name: name}
	a := r.ask(question{name: name, kind: read}, func(*asked) (err error) {
		f.machine, err = r.machine.Open(name)
		return err
	})
	if a.err != nil {
		return nil, a.err
	}
	return openFile{io.NewSectionReader(f, 0, maxOffset), f}, nil
}

// openFile is a file that is read at offsets.
type openFile struct {
	*io.SectionReader
	io.Closer
}

// recordedFile is an open file of a Recorder.
type recordedFile struct {
	r       *Recorder
	name    string
	machine host.File // nil if it was opened before, until more is read
}

func (f *recordedFile) ReadAt(buf []byte, at int64) (int, error) {
	a := f.r.ask(question{f.name, read, at, len(buf)}, func(a *asked) (err error) {
		if f.machine == nil {
			if f.machine, err = f.r.machine.Open(f.name); err != nil {
				return err
			}
		}
		n, err := f.machine.ReadAt(buf, at)
		a.data = slices.Clone(buf[:n])
		return err
	})
	return copy(buf, a.data), a.err
}

func (f *recordedFile) Close() error {
	if f.machine == nil {
		return nil
	}
	return f.machine.Close()
}

// Finish returns the recording, and the names of what gave no answer. Readers that
// still wait for an answer no longer change it.
func (r *Recorder) Finish() (recording *Recording, late []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	recording = &Recording{answers: map[question]*answer{}}
	for _, q := range slices.SortedFunc(maps.Keys(r.asked), compareQuestions) {
		a := r.asked[q].byNow()
		if errors.Is(cmp.Or(a.err, a.stop), ErrNoAnswer) {
			late = append(late, "/"+q.name)
		}
		if q.size > 0 { // a read, which is sorted after the opening of its file
			if file := recording.answers[question{name: q.name, kind: read}]; file != nil {
				file.add(a.data, q.at, cmp.Or(a.err, ErrNotRecorded))
			}
			continue
		}
		if dir, ok := strings.CutSuffix(q.name, "/"); ok { // a directory was opened
			q = question{name: dir, kind: list}
		}
		if known := recording.answers[q]; known == nil && !errors.Is(a.err, ErrNotRecorded) {
			a.stop = cmp.Or(a.stop, ErrNotRecorded)
			recording.answers[q] = &a.answer
		}
	}
	slices.Sort(late)
	return recording, slices.Compact(late)
}

// byNow returns a copy of the answer if there is one by now. Errors are as in the
// text, without the file's name.
func (a *asked) byNow() asked {
	select {
	case <-a.done:
	default:
		return asked{answer: answer{err: ErrNoAnswer}}
	}
	return asked{data: a.data, answer: answer{
		err: asWritten(a.err), target: a.target, names: slices.Clone(a.names), content: content{stop: asWritten(a.stop)},
	}}
}

// asWritten returns an error as it is written in a snapshot.
func asWritten(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	is, _ := errorOf(word(err))
	return is
}
