package snapshot

import (
	"errors"
	"io"
	"io/fs"
	"slices"

	"gdr-features/host"
)

// Recorder reads a machine and notes its answers. Each question is asked only once,
// and a file is read whole, so that all commands see the machine at one time. It is a
// host.Source.
type Recorder struct {
	replay
	machine host.Source
	asked   map[question]*asked // has the lock of replay, which is not held while the machine is asked
}

// asked is a question that a Recorder has asked.
type asked struct {
	done chan struct{} // closed when the machine has answered
	answer
}

// Record returns a recorder of a machine.
func Record(machine host.Source) *Recorder {
	r := &Recorder{machine: machine, asked: map[question]*asked{}}
	r.ask = r.once
	return r
}

// FS is the tree of files that the recorder answers for. root is the name to show.
func (r *Recorder) FS(root string) *host.FS { return host.New(r, root) }

// once returns the answer to a question. It asks the machine if that was not asked before.
func (r *Recorder) once(q question) *answer {
	r.mu.Lock()
	a, ok := r.asked[q]
	if !ok {
		a = &asked{done: make(chan struct{})}
		r.asked[q] = a
	}
	r.mu.Unlock()
	if ok {
		<-a.done
	} else {
		a.answer = answerOf(r.machine, q)
		close(a.done)
	}
	return &a.answer
}

// answerOf asks a machine. Errors are as in the text, without the file's name.
func answerOf(machine host.Source, q question) (a answer) {
	switch q.kind {
	case link:
		a.target, a.err = machine.Link(q.name)
	case exists:
		_, a.err = machine.Inode(q.name)
	case list:
		a.names, a.stop = machine.Names(q.name)
		if path, ok := errors.AsType[*fs.PathError](a.stop); ok && path.Op == "open" {
			a = answer{err: a.stop}
		}
	case read:
		a.data, a.stop, a.err = wholeFile(machine, q.name)
	}
	a.err, a.stop = asWritten(a.err), asWritten(a.stop)
	return a
}

// The largest kallsyms and the largest other file that a reader takes, and a byte more.
const (
	mostKallsyms = 128<<20 + 1
	mostFile     = 4<<20 + 1
)

func wholeFile(machine host.Source, name string) (data []byte, stop, err error) {
	f, err := machine.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	most := int64(mostFile)
	if name == kallsyms {
		most = mostKallsyms
	}
	data, stop = io.ReadAll(io.LimitReader(f, most))
	if int64(len(data)) == most {
		stop = host.ErrTooLarge
	}
	return data, stop, nil
}

// asWritten returns an error as it is written in a snapshot.
func asWritten(err error) error {
	if err == nil {
		return nil
	}
	is, _ := errorOf(word(err))
	return is
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
// asked for.
func (a *asked) byNow(k kind) *answer {
	select {
	case <-a.done:
	default:
		return &answer{err: ErrNoAnswer}
	}
	c := a.answer
	c.names, c.data = slices.Clone(a.names), slices.Clone(a.data)
	if k == read && a.err == nil && a.upTo <= int64(len(a.data)) { // nobody has seen its end
		c.data, c.stop = c.data[:a.upTo], ErrNotRecorded
	}
	return &c
}
