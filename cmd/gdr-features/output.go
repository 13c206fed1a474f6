package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// write writes what a command prints: to standard output, or to a file of this name. The
// file is written under another name and renamed, so that it is never seen in part.
func (a *app) write(name string, text []byte) error {
	if name == "" {
		_, err := a.out.Write(text)
		return err
	}
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
