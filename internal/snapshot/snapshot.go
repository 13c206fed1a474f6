// Package snapshot keeps what was read of a machine in one text file and answers
// from it as the machine did.
//
// A Recorder stands between the readers and the machine. It notes each question
// and its answer: a file's content, a link's target, the names in a directory,
// and also that a file was missing, that it was not allowed to read it, or that
// no answer came. A Recording is what it noted; it is written to a file, read
// back, and then answers in place of a machine. It never opens a file, and what
// was not asked before is ErrNotRecorded, which is not the same as a missing file.
//
// The text has an entry for each question, sorted by name:
//
//	gdr-features snapshot 1
//	# anything about it
//
//	/sys/class/infiniband/
//	- mlx5_0
//	/sys/class/infiniband/mlx5_0 -> ../../devices/pci0000:15/...
//	/sys/class/infiniband/mlx5_0/board_id !ENOENT
//	/sys/class/infiniband/mlx5_0/ports/1/state !no-answer
//	/sys/module/
//	...
//	/sys/module/mlx_compat exists no
//	/sys/class/dmi/id/product_name = Example 9000
//	/proc/driver/nvidia/version
//	|NVRM version: ...
//	|GCC version: ...
//	/sys/bus/pci/devices/0000:15:01.0/config
//	:100 0100811400000000
//	...
//	end
//
// A directory's name ends in "/" and its entries follow, each after "- ". A file of
// one line follows " = ". The lines of another one follow after "|", a last one
// without newline after "\", bytes that are no text after ":" and their offset, all
// numbers hexadecimal. Below them, "..." tells that the rest was not read, ".40"
// that the file ended there, "!EIO" that reading failed there. Names with characters
// beyond printable ASCII are quoted as in Go.
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

// faults are the errors that are not named after an errno, by their word.
var faults = map[string]error{"no-answer": ErrNoAnswer, "too-large": host.ErrTooLarge}

// fault gives the word for an error, "" for none. What the kernel cannot have
// said is EIO.
func fault(err error) string {
	if err == nil {
		return ""
	}
	for word, is := range faults {
		if errors.Is(err, is) {
			return word
		}
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok && unix.ErrnoName(errno) != "" {
		return unix.ErrnoName(errno)
	}
	return "EIO"
}

// faultNamed gives the error for a word, nil where there is none.
func faultNamed(word string) error {
	const highest = 133 // EHWPOISON, on every architecture but MIPS, PA-RISC and SPARC
	for e := unix.Errno(1); e <= highest; e++ {
		if word != "" && unix.ErrnoName(e) == word {
			return e
		}
	}
	return faults[word]
}

// question is what a machine can be asked about a name.
type question struct {
	name string
	kind kind
}

// kind is one of the questions of a host.Source, in the order of the text.
type kind byte

const (
	link kind = iota
	exists
	list
	read
)

func compareQuestions(a, b question) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind))
}

// answer is what a machine said to one question.
type answer struct {
	done   chan struct{} // of a Recorder: closed when the machine has answered
	err    error         // of the question itself; it has no other answer then
	target string        // of a link
	names  []string      // of a directory
	listed error         // of listing it, once it was open; ErrNotRecorded if it was not listed
	content
}

// content is what was read of a file, in pieces: of configuration space only a
// few bytes here and there are.
type content struct {
	parts   []part // not overlapping
	ended   bool   // a read at end gave nothing
	end     int64
	err     error // a read at failed gave it
	failed  int64
	reading chan struct{} // of a Recorder: closed when the read at asked comes back
	asked   int64
}

type part struct {
	at   int64
	data []byte
}

func (p part) end() int64 { return p.at + int64(len(p.data)) }

// known tells whether it is known what a read at an offset gives.
func (c *content) known(offset int64) bool {
	return c.at(offset) != nil || c.ended && offset >= c.end || c.err != nil && offset == c.failed
}

// at gives the bytes from an offset on up to the next gap, nil for none.
func (c *content) at(offset int64) []byte {
	for _, p := range c.parts {
		if p.at <= offset && offset < p.end() {
			return p.data[offset-p.at:]
		}
	}
	return nil
}

// read gives what is known at an offset, up to the next gap. Where nothing is, a
// file that failed somewhere fails too.
func (c *content) read(buf []byte, offset int64) (int, error) {
	data := c.at(offset)
	switch {
	case data != nil:
		return copy(buf, data), nil
	case c.ended && offset >= c.end:
		return 0, io.EOF
	case c.err != nil:
		return 0, c.err
	}
	return 0, ErrNotRecorded
}

// gap gives how many of size bytes from an offset on are not known.
func (c *content) gap(offset int64, size int) int {
	for _, p := range c.parts {
		if p.at > offset {
			size = int(min(int64(size), p.at-offset))
		}
	}
	return size
}

// note notes what a read at an offset gave.
func (c *content) note(data []byte, offset int64, err error) {
	if last := len(c.parts) - 1; last >= 0 && c.parts[last].end() == offset {
		c.parts[last].data = append(c.parts[last].data, data...)
	} else if len(data) > 0 {
		c.parts = append(c.parts, part{offset, slices.Clone(data)})
	}
	switch end := offset + int64(len(data)); {
	case errors.Is(err, io.EOF):
		c.finish(end)
	case err != nil && !errors.Is(err, ErrNotRecorded):
		c.fail(err, end)
	}
}

// finish notes that the file ends at an offset.
func (c *content) finish(offset int64) {
	if !c.ended || offset < c.end {
		c.ended, c.end = true, offset
	}
}

// fail notes that reading failed at an offset.
func (c *content) fail(err error, offset int64) {
	if c.err == nil {
		c.err, c.failed = err, offset
	}
}

// join sorts the parts and makes one of those that touch.
func (c *content) join() {
	slices.SortFunc(c.parts, func(a, b part) int { return cmp.Compare(a.at, b.at) })
	var joined []part
	for _, p := range c.parts {
		if last := len(joined) - 1; last >= 0 && joined[last].end() == p.at {
			joined[last].data = append(joined[last].data, p.data...)
		} else {
			joined = append(joined, part{p.at, slices.Clone(p.data)})
		}
	}
	c.parts = joined
}

// last is the offset behind the last byte.
func (c *content) last() int64 {
	if len(c.parts) == 0 {
		return 0
	}
	return c.parts[len(c.parts)-1].end()
}

// whole gives the bytes of a file of which everything from the beginning up to
// where reading stopped is known.
func (c *content) whole() (data []byte, ok bool) {
	switch {
	case len(c.parts) == 0:
		return nil, true
	case len(c.parts) == 1 && c.parts[0].at == 0:
		return c.parts[0].data, true
	}
	return nil, false
}
