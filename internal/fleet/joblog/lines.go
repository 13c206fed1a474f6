package joblog

import (
	"bytes"
	"io"
)

// longest is how many bytes of a line are read as messages.
const longest = 64 << 10

// lines cuts a log into lines, which end with \n or with \r: a progress bar writes \r only.
type lines struct {
	from       io.Reader
	buf        []byte
	start, end int
	newline    int // where the first \n from start on is, end for none
	err        error
	within     bool // the last piece was the beginning of a line that is too long
}

// piece is a line, or what fits into the buffer of it.
type piece struct {
	text []byte
	// continued: it is not the beginning of its line. open: something may follow that is not in
	// it, because the line is too long or the log ends without a line end.
	continued, open bool
}

func newLines(from io.Reader) *lines {
	return &lines{from: from, buf: make([]byte, longest)}
}

// next returns the next piece, and an error at the end. A piece is valid until the next call.
func (s *lines) next() (piece, error) {
	for {
		if n := s.lineEnd(); n < s.end {
			p := piece{text: s.buf[s.start:n], continued: s.within}
			s.start, s.within = n+1, false
			return p, nil
		}
		if s.end-s.start == len(s.buf) || s.err != nil && s.start < s.end {
			p := piece{text: s.buf[s.start:s.end], continued: s.within, open: true}
			s.start, s.within = s.end, true
			return p, nil
		}
		if s.err != nil {
			return piece{}, s.err
		}
		s.fill()
	}
}

// lineEnd returns where the line ends, s.end if that is not known yet.
func (s *lines) lineEnd() int {
	if s.newline < s.start {
		s.newline = s.end
		if n := bytes.IndexByte(s.buf[s.start:s.end], '\n'); n >= 0 {
			s.newline = s.start + n
		}
	}
	if r := bytes.IndexByte(s.buf[s.start:s.newline], '\r'); r >= 0 {
		return s.start + r
	}
	return s.newline
}

// fill reads more, after moving what is left to the front.
func (s *lines) fill() {
	s.end = copy(s.buf, s.buf[s.start:s.end])
	s.start, s.newline = 0, -1
	n := 0
	for tries := 0; n == 0 && s.err == nil && tries < 100; tries++ {
		n, s.err = s.from.Read(s.buf[s.end:])
	}
	if n == 0 && s.err == nil {
		s.err = io.ErrNoProgress
	}
	s.end += n
}
