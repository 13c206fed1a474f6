package joblog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Read reads a log to its end. Of a line only the first 64 KiB count. It calls progress with
// the number of bytes read so far, about once a mebibyte.
func Read(from io.Reader, progress func(read int64)) (*Log, error) {
	const most, step = 64 << 10, 1 << 20
	in := bufio.NewReaderSize(from, most)
	if err := isText(in); err != nil {
		return nil, err
	}
	l := newLog()
	var read, told int64
	for within := false; ; {
		line, err := in.ReadSlice('\n')
		if !within {
			l.line(line)
		}
		within = errors.Is(err, bufio.ErrBufferFull)
		if read += int64(len(line)); read-told >= step {
			told = read
			progress(read)
		}
		switch {
		case err == nil || within:
		case errors.Is(err, io.EOF):
			return l, nil
		default:
			return nil, fmt.Errorf("reading the log: %w", err)
		}
	}
}

// isText refuses what a log must be turned into text from.
func isText(in *bufio.Reader) error {
	begin, _ := in.Peek(4) // an error comes again
	for magic, hint := range map[string]string{
		"\x1f\x8b":         "it is compressed: gzip -dc FILE | gdr-features log",
		"\x28\xb5\x2f\xfd": "it is compressed: zstd -dc FILE | gdr-features log",
		"\xff\xfe":         "it is UTF-16, as PowerShell writes files: convert it to UTF-8",
	} {
		if bytes.HasPrefix(begin, []byte(magic)) {
			return errors.New(hint)
		}
	}
	return nil
}
