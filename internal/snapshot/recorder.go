package snapshot

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"gdr-features/host"
)

// Recorder reads a machine and notes its answers. Each question is asked only once,
// and a file is read whole, so that all commands see the machine at one time. It is a
// host.Source.
type Recorder struct {
	machine host.Source

	mu    sync.Mutex // of asked and upTo; not held while the machine is asked
	asked map[question]*asked
}

// asked is a question that a Recorder has asked.
type asked struct {
	done chan struct{} // closed when the machine has answered
	answer
	upTo int64 // how far readers have asked for a file
}

// Record returns a recorder of a machine.
func Record(machine host.Source) *Recorder {
	return &Recorder{machine: machine, asked: map[question]*asked{}}
}

// FS is the tree of files that the recorder answers for. root is the name to show.
func (r *Recorder) FS(root string) *host.FS { return host.New(r, root) }

// ask returns the answer to a question, for which it calls machine if it was not asked
// before.
func (r *Recorder) ask(name string, k kind, machine func(*answer) error) *asked {
	q := question{name, k}
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
	a.err = machine(&a.answer)
	close(a.done)
	return a
}

// Link implements host.Source.
func (r *Recorder) Link(name string) (string, error) {
	a := r.ask(name, link, func(a *answer) (err error) {
		a.target, err = r.machine.Link(name)
		return err
	})
	return a.target, a.err
}

// Inode implements host.Source.
func (r *Recorder) Inode(name string) (uint64, error) {
	a := r.ask(name, exists, func(*answer) error {
		_, err := r.machine.Inode(name)
		return err
	})
	return 0, a.err
}

// Names implements host.Source.
func (r *Recorder) Names(name string) ([]string, error) {
	a := r.list(name)
	return slices.Clone(a.names), cmp.Or(a.err, a.stop)
}

func (r *Recorder) list(name string) *asked {
	return r.ask(name, list, func(a *answer) error {
		names, err := r.machine.Names(name)
		if path, ok := errors.AsType[*fs.PathError](err); ok && path.Op == "open" {
			return err
		}
		a.names, a.stop = names, err
		return nil
	})
}

// The largest kallsyms and the largest other file that a reader takes, and a byte more.
const (
	mostKallsyms = 128<<20 + 1
	mostFile     = 4<<20 + 1
)

// Open implements host.Source. To open a directory it lists it.
func (r *Recorder) Open(name string) (host.File, error) {
	if dir, ok := strings.CutSuffix(name, "/"); ok {
		return openDir(name, r.list(dir).err)
	}
	a := r.ask(name, read, func(a *answer) error {
		f, err := r.machine.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		most := int64(mostFile)
		if name == kallsyms {
			most = mostKallsyms
		}
		a.data, a.stop = io.ReadAll(io.LimitReader(f, most))
		if int64(len(a.data)) == most {
			a.stop = host.PathError("read", name, host.ErrTooLarge)
		}
		return nil
	})
	if a.err != nil {
		return nil, a.err
	}
	return newFile(a.data, a.stop, func(upTo int64) {
		r.mu.Lock()
		a.upTo = max(a.upTo, upTo)
		r.mu.Unlock()
	}), nil
}

// openDir returns an open directory, which cannot be read as a file.
func openDir(name string, err error) (host.File, error) {
	if err != nil {
		return nil, err
	}
	return newFile(nil, host.PathError("read", name, unix.EISDIR), func(int64) {}), nil
}

// Finish returns the recording, and the names of what gave no answer. Readers that
// still wait for an answer no longer change it.
func (r *Recorder) Finish() (recording *Recording, late []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	recording = &Recording{answers: map[question]*answer{}}
	for q, asked := range r.asked {
		a := asked.byNow(q.kind)
		if errors.Is(a.err, ErrNoAnswer) {
			late = append(late, "/"+q.name)
		}
		if !errors.Is(a.err, ErrNotRecorded) {
			recording.answers[q] = a
		}
	}
	slices.Sort(late)
	return recording, slices.Compact(late)
}

// byNow returns a copy of the answer if there is one by now: of a file as much as was
// asked for. Errors are as in the text, without the file's name.
func (a *asked) byNow(k kind) *answer {
	select {
	case <-a.done:
	default:
		return &answer{err: ErrNoAnswer}
	}
	data, stop := a.data, a.stop
	if k == read && a.err == nil && a.upTo <= int64(len(data)) { // nobody has seen its end
		data, stop = data[:a.upTo], ErrNotRecorded
	}
	return &answer{asWritten(a.err), a.target, slices.Clone(a.names), slices.Clone(data), asWritten(stop)}
}

// asWritten returns an error as it is written in a snapshot.
func asWritten(err error) error {
	if err == nil {
		return nil
	}
	is, _ := errorOf(word(err))
	return is
}
