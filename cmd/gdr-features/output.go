package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// write writes what a command prints: to a file, whole or not at all, or without one to
// standard output.
func (a *app) write(file string, text []byte) error {
	if file == "" {
		_, err := a.out.Write(text)
		return err
	}
	return writeWhole(file, text)
}

// writeWhole writes a file under another name and renames it, so that it is never
// seen in part.
func writeWhole(name string, text []byte) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", name)
	}
	to, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = to.Write(text)
	const forOthers = 0o644 // it is to be sent, or read by another container
	if err = errors.Join(err, to.Chmod(forOthers), to.Close()); err == nil {
		err = os.Rename(to.Name(), name)
	}
	if err != nil {
		_ = os.Remove(to.Name())
	}
	return err
}
