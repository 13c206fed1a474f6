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
//	{"format":"gdr-features snapshot 3","notes":["anything about it"]}
//	{"read":"/proc/driver/nvidia/version","text":"NVRM version: ...\nGCC version: ...\n"}
//	{"read":"/sys/bus/pci/devices/0000:15:01.0/config","hex":"0000000001008114","stop":"more"}
//	{"list":"/sys/class/infiniband","names":["mlx5_0"]}
//	{"link":"/sys/class/infiniband/mlx5_0","to":"../../devices/pci0000:15/..."}
//	{"read":"/sys/class/infiniband/mlx5_0/board_id","error":"ENOENT"}
//	{"read":"/sys/class/infiniband/mlx5_0/ports/1/state","error":"no-answer"}
//	{"exists":"/sys/module/mlx_compat"}
//	{"end":true}
//
// See entry for the meaning of each field.
package snapshot

import (
	"cmp"
	"errors"

	"golang.org/x/sys/unix"

	"gdr-features/host"
)

// Sentinel errors, to be tested with errors.Is.
var (
	// ErrNotRecorded: the machine was not asked this when the snapshot was taken.
	ErrNotRecorded = host.ErrNotRecorded
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
}

// kind is one of the questions of a host.Source.
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

// answer is a machine's answer to one question.
type answer struct {
	err    error    // in place of an answer
	target string   // of a link
	names  []string // of a directory
	data   []byte   // of a file, from its beginning
	stop   error    // why names or data end before their end, as ErrNotRecorded says
	upTo   int64    // how far readers have asked for a file
}
