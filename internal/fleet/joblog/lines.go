package joblog

import (
	"bufio"
	"bytes"
	"io"
)

// longest is how many bytes of a line are read as messages.
const longest = 64 << 10

// piece is a line, or what fits into the buffer of it.
type piece struct {
	text []byte
	// continued: it is not the beginning of its line. open: something may follow that is not in
	// it, because the line is too long or the log ends without a line end.
	continued, open bool
}

// lines cuts a log into lines, which end with \n or with \r: a progress bar writes \r only. The
// piece is valid until the next one is scanned.
type lines struct {
	*bufio.Scanner
	piece
	clear int // how many of the next bytes are known to have no \n
}

func newLines(from io.Reader) *lines {
	s := &lines{Scanner: bufio.NewScanner(from)}
	s.Buffer(make([]byte, longest), longest)
	s.Split(s.cut)
	return s
}

// cut is the bufio.SplitFunc.
func (s *lines) cut(data []byte, atEnd bool) (advance int, token []byte, err error) {
	at := bytes.IndexByte(data[s.clear:], '\n')
	if s.clear += at; at < 0 {
		s.clear = len(data)
	}
	n := bytes.IndexByte(data[:s.clear], '\r')
	if n < 0 {
		n = s.clear
	}
	open := n == len(data)
	if open && n < longest && (!atEnd || n == 0) {
		return 0, nil, nil
	}
	s.piece = piece{text: data[:n], continued: s.open, open: open}
	advance = min(n+1, len(data))
	s.clear = max(0, s.clear-advance)
	return advance, s.text, nil
}
