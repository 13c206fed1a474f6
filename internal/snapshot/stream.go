package snapshot

import (
	"errors"
	"io"

	"gdr-features/host"
)

// attribute is the size of the largest file of one line, a page.
const attribute = 4096

// stream is an open file.
type stream struct {
	t    *Tape
	n    *node
	name string
	at   int64      // where Read goes on
	file *host.File // of the machine; nil before it is needed
	pos  int64      // where file's own Read goes on
}

// Open opens a file.
func (t *Tape) Open(name string) (host.Handle, error) {
	n := t.node(name)
	s := &stream{t: t, n: n, name: name}
	_, err := once(t, n, &n.open, name, func() (none struct{}, err error) {
		s.file, err = t.from.Open(name)
		return none, err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Read goes on where the read before ended. A reader of one line is content with one
// read; another one, at once, tells that this was all.
func (s *stream) Read(buf []byte) (int, error) {
	n, err := s.once(buf, s.at, s.readMachine, func() ([]byte, error) {
		tail := make([]byte, attribute)
		n, err := s.file.Read(tail)
		s.pos += int64(n)
		return tail[:n], err
	})
	s.at += int64(n)
	return n, err
}

// ReadAt fills buf from an offset, or as far as the file goes.
func (s *stream) ReadAt(buf []byte, offset int64) (int, error) {
	for done := 0; ; {
		at := offset + int64(done)
		n, err := s.once(buf[done:], at, func(buf []byte) (int, error) { return s.readMachineAt(buf, at) }, nil)
		done += n
		if n == 0 || err != nil || done == len(buf) {
			return done, err
		}
	}
}

// Close closes the machine's file.
func (s *stream) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// once gives what is known at an offset, or reads the machine and keeps what it
// gives. behind, where it is not nil, reads on where a small file seems to end.
func (s *stream) once(buf []byte, offset int64, read func([]byte) (int, error), behind func() ([]byte, error)) (int, error) {
	t, c := s.t, &s.n.content
	defer t.ask(s.n)()
	t.mu.Lock()
	n, f, known := c.read(buf, offset, t.from == nil)
	if known || t.from == nil {
		t.mu.Unlock()
		if !known {
			return 0, ErrNotRecorded
		}
		return n, t.raise(f)
	}
	c.busy, c.asked = true, offset
	t.mu.Unlock()
	n, err := read(buf)
	end := offset + int64(n)
	var tail []byte
	tailErr := ErrNotRecorded // nobody asked
	if behind != nil && err == nil && n > 0 && n < len(buf) && end < attribute {
		tail, tailErr = behind()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c.busy = false
	if t.sealed || errors.Is(err, ErrNotRecorded) {
		return 0, ErrNotRecorded
	}
	c.keep(buf[:n], offset, err)
	if !errors.Is(tailErr, ErrNotRecorded) {
		c.keep(tail, end, tailErr)
	}
	return n, faultOf(err).err()
}

// machine opens the file itself, where that was done for an earlier stream.
func (s *stream) machine() (err error) {
	if s.file == nil {
		s.file, err = s.t.from.Open(s.name)
	}
	return err
}

// readMachine reads from where the stream stands: what is known of the beginning
// is passed over.
func (s *stream) readMachine(buf []byte) (int, error) {
	if err := s.machine(); err != nil {
		return 0, err
	}
	if _, err := io.CopyN(io.Discard, forward{s}, s.at-s.pos); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	n, err := s.file.Read(buf)
	s.pos += int64(n)
	return n, err
}

// forward reads the machine's file as io.Reader has it.
type forward struct{ s *stream }

func (f forward) Read(buf []byte) (int, error) {
	n, err := f.s.file.Read(buf)
	f.s.pos += int64(n)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

func (s *stream) readMachineAt(buf []byte, offset int64) (int, error) {
	if err := s.machine(); err != nil {
		return 0, err
	}
	return s.file.ReadAt(buf, offset)
}
