// Package initramfs packs the file system that the kernel of the virtual machine
// starts with, and finds the modules that a module needs.
package initramfs

import (
	"fmt"
	"io"
	"path"
)

// Writer writes an archive as the kernel reads it
// (Documentation/driver-api/early-userspace/buffer-format.rst, "newc").
type Writer struct {
	out  io.Writer
	err  error
	seen map[string]bool
	inum int
}

// NewWriter begins an archive.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out, seen: map[string]bool{}} }

const (
	directory  = 0o040755
	executable = 0o100755
)

// File adds a file that all may run, and the directories above it.
func (w *Writer) File(name string, body []byte) {
	w.Dir(path.Dir(name))
	w.entry(name, executable, body)
}

// Dir adds a directory and those above it.
func (w *Writer) Dir(name string) {
	if name == "." || name == "/" || w.seen[name] {
		return
	}
	w.Dir(path.Dir(name))
	w.seen[name] = true
	w.entry(name, directory, nil)
}

// Close ends the archive and gives the first error.
func (w *Writer) Close() error {
	w.entry("TRAILER!!!", 0, nil)
	return w.err
}

// entry writes a header of 110 bytes, the name and the body, padded to four bytes.
func (w *Writer) entry(name string, mode int, body []byte) {
	w.inum++
	const (
		links = 1
		none  = 0 // owner, group, time, device numbers, checksum: not used
	)
	head := []byte("070701")
	for _, field := range []int{w.inum, mode, none, none, links, none, len(body), none, none, none, none, len(name) + 1, none} {
		head = fmt.Appendf(head, "%08x", field)
	}
	w.padded(append(head, name+"\x00"...))
	w.padded(body)
}

func (w *Writer) padded(data []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(data)
	}
	if pad := -len(data) & 3; pad > 0 && w.err == nil {
		_, w.err = w.out.Write(make([]byte, pad))
	}
}
