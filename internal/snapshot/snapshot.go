// Package snapshot keeps what was read of a machine in one text file and answers
// from it as the machine did.
//
// A Tape stands between the readers and the machine and notes each question and
// its answer: a file's content, a link's target, the names in a directory, and as
// well that there was none, that it was not allowed, or that no answer came. What
// was asked once is answered from the tape from then on, so that all verbs see one
// moment. A tape that was read back knows no machine: it never opens a file, and a
// link leads to what the tape knows at most. What nobody asked is "not in the snapshot", another
// thing than a file that was not there.
//
// The text, a question and its answer at a time, sorted by name:
//
//	gdr-features snapshot 1
//	# anything about it
//
//	/sys/class/infiniband/
//	- mlx5_0
//	/sys/class/infiniband/mlx5_0 -> ../../devices/pci0000:15/...
//	/sys/class/infiniband/mlx5_0/board_id !ENOENT
//	/sys/class/infiniband/mlx5_0/ports/1/state !no-answer
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
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	"gdr-features/host"
)

// Sentinel errors, to be tested with errors.Is.
var (
	// ErrNotRecorded: nobody asked the machine this when the snapshot was taken.
	ErrNotRecorded = errors.New("not in the snapshot")
	// ErrNoAnswer: the machine had not answered when the snapshot was taken.
	ErrNoAnswer = errors.New("no answer when the snapshot was taken")
)

// fault is an error in the text: the name of an errno, or one of the words below;
// "" for none.
type fault string

const (
	noAnswer fault = "no-answer" // ErrNoAnswer
	tooLarge fault = "too-large" // host.ErrTooLarge
)

// faultOf gives the fault for an error of host.FS. What the kernel cannot have
// said counts as EIO.
func faultOf(err error) fault {
	errno, ok := errors.AsType[unix.Errno](err)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrNoAnswer):
		return noAnswer
	case errors.Is(err, host.ErrTooLarge):
		return tooLarge
	case ok && unix.ErrnoName(errno) != "":
		return fault(unix.ErrnoName(errno))
	}
	return "EIO"
}

// valid tells whether f is a fault that faultOf can give.
func (f fault) valid() bool { return f == noAnswer || f == tooLarge || errnoNamed(string(f)) != 0 }

// err gives the error without its name; nil for none.
func (f fault) err() error {
	switch f {
	case "":
		return nil
	case noAnswer:
		return ErrNoAnswer
	case tooLarge:
		return host.ErrTooLarge
	}
	return errnoNamed(string(f))
}

func errnoNamed(name string) unix.Errno {
	const highest = 133 // EHWPOISON, on every architecture but MIPS, PA-RISC and SPARC
	for e := unix.Errno(1); e <= highest; e++ {
		if unix.ErrnoName(e) == name {
			return e
		}
	}
	return 0
}

// node is all that is known of one name: an answer for each question.
type node struct {
	asking sync.Mutex // held while the machine is asked

	link    answer[string]
	exists  answer[bool]
	dir     answer[struct{}] // opening it as a directory
	names   answer[[]string] // and listing it
	open    answer[struct{}] // opening it as a file
	content content          // and reading it
}

// answer is what the machine said to one question.
type answer[T any] struct {
	known, busy bool // busy: asked, and no answer yet
	value       T
	fault       fault
}
