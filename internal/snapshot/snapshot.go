// Package snapshot keeps what was read of a machine in one text file and answers
// from it as the machine did.
//
// A Recorder is between the readers and the machine. It notes each question and its
// answer: a file's content, a link's target, the names in a directory, and also that
// a file was missing or must not be read, or that there was no answer. A Recording
// is what it noted; it is written to a file, read back, and then answers in place of
// a machine. It never opens a file, and what was not asked before is ErrNotRecorded,
// which is not the same as a missing file.
//
// The text has a JSON object in each line, one for each question, sorted by name:
//
//	{"format":"gdr-features snapshot 2","notes":["anything about it"]}
//	{"read":"/proc/driver/nvidia/version","text":"NVRM version: ...\nGCC version: ...\n"}
//	{"read":"/sys/bus/pci/devices/0000:15:01.0/config","bytes":[{"at":256,"hex":"01008114"}],"stop":"more"}
//	{"list":"/sys/class/infiniband","names":["mlx5_0"]}
//	{"link":"/sys/class/infiniband/mlx5_0","to":"../../devices/pci0000:15/..."}
//	{"read":"/sys/class/infiniband/mlx5_0/board_id","error":"ENOENT"}
//	{"read":"/sys/class/infiniband/mlx5_0/ports/1/state","stop":"no-answer"}
//	{"list":"/sys/module","stop":"more"}
//	{"exists":"/sys/module/mlx_compat"}
//	{"end":true}
//
// See entry for the meaning of each field.
package snapshot

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"gdr-features/host"
)

// Sentinel errors, to be tested with errors.Is.
var (
	// ErrNotRecorded: the machine was not asked this when the snapshot was taken.
	ErrNotRecorded = errors.New("not in the snapshot")
	// ErrNoAnswer: the machine had not answered when the snapshot was taken.
	ErrNoAnswer = errors.New("no answer when the snapshot was taken")
)

// words are the words of the text for errors that are not named after an errno.
var words = map[string]error{
	"": nil, "more": ErrNotRecorded, "no-answer": ErrNoAnswer, "too-large": host.ErrTooLarge,
}

// word returns the word for an error: EIO for one that the kernel cannot have given.
func word(err error) string {
	for word, is := range words {
		if errors.Is(err, is) {
			return word
		}
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok && unix.ErrnoName(errno) != "" {
		return unix.ErrnoName(errno)
	}
	return "EIO"
}

// errorOf returns the error of a word.
func errorOf(word string) (is, err error) {
	if is, ok := words[word]; ok {
		return is, nil
	}
	const highest = 133 // EHWPOISON, on every architecture but MIPS, PA-RISC and SPARC
	for e := unix.Errno(1); e <= highest; e++ {
		if unix.ErrnoName(e) == word {
			return e, nil
		}
	}
	return nil, errForm
}

// question is what a machine can be asked about a name.
type question struct {
	name string
	kind kind
	at   int64 // of a Recorder: where in an open file,
	size int   // and how much of it; 0 to open it
}

// kind is one of the questions of a host.Source.
type kind byte

const (
	link kind = iota
	exists
	list // this one and the next end with content.stop
	read
)

func compareQuestions(a, b question) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind), cmp.Compare(a.at, b.at), cmp.Compare(a.size, b.size))
}

// answer is a machine's answer to one question.
type answer struct {
	err    error    // in place of an answer
	target string   // of a link
	names  []string // of a directory
	content
}

// content is what was read of a file, in parts: of configuration space, only a few
// bytes in several places are read. A directory has only stop.
type content struct {
	parts []part // sorted, neither overlapping nor touching
	stop  error  // why no more was read: io.EOF, an error, or ErrNotRecorded
	at    int64  // where
}

type part struct {
	at   int64
	data []byte
}

func (p part) end() int64 { return p.at + int64(len(p.data)) }

// last is the offset after the last byte.
func (c *content) last() int64 {
	if len(c.parts) == 0 {
		return 0
	}
	return c.parts[len(c.parts)-1].end()
}

// add notes what a read gave. Reads are added by their offsets.
func (c *content) add(data []byte, at int64, err error) {
	last := c.last()
	if known := min(max(last-at, 0), int64(len(data))); known > 0 {
		data, at = data[known:], at+known
	}
	switch {
	case len(data) == 0:
	case at == last && last > 0:
		end := &c.parts[len(c.parts)-1]
		end.data = append(end.data, data...)
	default:
		c.parts = append(c.parts, part{at, slices.Clone(data)})
	}
	if c.stop == nil || errors.Is(c.stop, ErrNotRecorded) {
		c.stop, c.at = err, at+int64(len(data))
	}
}

// read returns what is known from an offset on, up to the next gap.
func (c *content) read(buf []byte, at int64) (int, error) {
	for _, p := range c.parts {
		if p.at <= at && at < p.end() {
			return copy(buf, p.data[at-p.at:]), nil
		}
	}
	if errors.Is(c.stop, io.EOF) && at < c.at {
		return 0, ErrNotRecorded
	}
	return 0, c.stop
}

// whole returns the bytes of a file that was read from its beginning without gaps.
func (c *content) whole() (data []byte, ok bool) {
	switch {
	case len(c.parts) == 0:
		return nil, true
	case len(c.parts) == 1 && c.parts[0].at == 0:
		return c.parts[0].data, true
	}
	return nil, false
}

// replace replaces the bytes of a whole file; what came after them comes after the
// new ones.
func (c *content) replace(data []byte) {
	last, stop, at := c.last(), c.stop, c.at
	*c = content{}
	c.add(data, 0, stop)
	if at != last {
		c.at = at
	}
}
