package snapshot

import (
	"errors"
	"path"
	"slices"
	"sync"
	"time"

	"gdr-features/host"
)

// Tape is a machine as it was read. It is a host.Source.
type Tape struct {
	// Header are the lines at the beginning, for people.
	Header []string

	from  *host.FS      // the machine; nil for a tape that was read back
	patch chan struct{} // closed when what has no answer ends with an error

	mu     sync.Mutex // of what follows and of all in the nodes but asking
	nodes  map[string]*node
	sealed bool // what comes later is not kept
}

// Record gives a tape that asks a machine and keeps what it said.
func Record(fs *host.FS) *Tape { return &Tape{from: fs, nodes: map[string]*node{}} }

// FS is the tree of files that the tape answers for. root is what to call it.
func (t *Tape) FS(root string) *host.FS { return host.From(t, root) }

// patience is how long a question that had no answer has none here either. It is
// longer than any verb waits, and keeps a snapshot from holding one up for ever.
const patience = 5 * time.Second

// replay makes a tape that was read back ready to answer.
func (t *Tape) replay() {
	t.patch = make(chan struct{})
	time.AfterFunc(patience, func() { close(t.patch) })
}

// node finds what is known of a name; while recording, it makes room for it.
func (t *Tape) node(name string) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodes[name]
	if n == nil {
		n = &node{}
		if t.from != nil {
			t.nodes[name] = n
		}
	}
	return n
}

// unknown is the error for what nobody asked: proven missing where the directory
// was listed without it.
func (t *Tape) unknown(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	dir, base := path.Split(name)
	above := t.nodes[path.Clean(dir)]
	if above == nil || !above.names.known || above.names.fault != "" || slices.Contains(above.names.value, base) {
		return ErrNotRecorded
	}
	return errnoNamed("ENOENT")
}

// raise gives the error for a fault; where no answer came, none comes.
func (t *Tape) raise(f fault) error {
	if f == noAnswer && t.patch != nil {
		<-t.patch
	}
	return f.err()
}

// ask keeps others from asking the machine the same, until the function it gives is
// called. A tape that was read back asks nobody, and nobody waits for another.
func (t *Tape) ask(n *node) (done func()) {
	if t.from == nil {
		return func() {}
	}
	n.asking.Lock()
	return n.asking.Unlock
}

// once gives the answer that is known, or asks the machine and keeps what it says.
func once[T any](t *Tape, n *node, a *answer[T], name string, ask func() (T, error)) (T, error) {
	defer t.ask(n)()
	t.mu.Lock()
	if known, value, f := a.known, a.value, a.fault; known || t.from == nil {
		t.mu.Unlock()
		if !known {
			return value, t.unknown(name)
		}
		return value, t.raise(f)
	}
	a.busy = true
	t.mu.Unlock()
	value, err := ask()
	t.mu.Lock()
	defer t.mu.Unlock()
	a.busy = false
	if t.sealed || errors.Is(err, ErrNotRecorded) {
		return value, ErrNotRecorded
	}
	a.known, a.value, a.fault = true, value, faultOf(err)
	return value, a.fault.err()
}

// Link gives the text of a symbolic link.
func (t *Tape) Link(name string) (string, error) {
	n := t.node(name)
	return once(t, n, &n.link, name, func() (string, error) { return t.from.Link(name) })
}

// Exists tells whether a name is there, following links.
func (t *Tape) Exists(name string) (bool, error) {
	n := t.node(name)
	there, err := once(t, n, &n.exists, name, func() (bool, error) { return t.from.Exists(name) })
	if host.Absent(err) {
		return false, nil
	}
	return there, err
}

// Dir opens a directory.
func (t *Tape) Dir(name string) (host.Lister, error) {
	n := t.node(name)
	l := &lister{t: t, n: n, name: name}
	_, err := once(t, n, &n.dir, name, func() (none struct{}, err error) {
		l.dir, err = t.from.Dir(name)
		return none, err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// lister is an open directory.
type lister struct {
	t    *Tape
	n    *node
	name string
	dir  *host.Dir // of the machine; nil before it is needed
}

func (l *lister) Names() ([]string, error) {
	names, err := once(l.t, l.n, &l.n.names, l.name, func() ([]string, error) {
		if l.dir == nil {
			return l.t.from.Names(l.name)
		}
		return l.dir.Names()
	})
	return slices.Clone(names), err
}

func (l *lister) Close() error {
	if l.dir == nil {
		return nil
	}
	return l.dir.Close()
}

// Finish ends the recording and names what gave no answer.
func (t *Tape) Finish() (late []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sealed = true
	for name, n := range t.nodes {
		if n.seal() {
			late = append(late, "/"+name)
		}
	}
	slices.Sort(late)
	return late
}

// seal turns questions without answer into faults, and tells whether there are.
func (n *node) seal() (late bool) {
	if c := &n.content; c.busy {
		c.busy = false
		c.fail(noAnswer, c.asked)
	}
	late = n.content.fault == noAnswer
	for _, busy := range [...]bool{
		n.link.seal(), n.exists.seal(), n.dir.seal(), n.names.seal(), n.open.seal(),
	} {
		late = late || busy
	}
	return late
}

func (a *answer[T]) seal() (late bool) {
	if a.busy {
		a.busy, a.known, a.fault = false, true, noAnswer
	}
	return a.fault == noAnswer
}
