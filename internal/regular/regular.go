// Package regular reads regular files that people name.
package regular

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadFile reads a regular file of at most so many bytes. Of others, such as a FIFO or a
// device, there may be no end.
func ReadFile(path string, most int64) ([]byte, error) {
	if err := Check(path, most); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	in, err := os.Open(path) //nolint:gosec // the administrator names it
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(data)) > most {
		err = tooLarge(path, most)
	}
	return data, err
}

// Check returns an error unless a path leads to a regular file of at most so many bytes.
func Check(path string, most int64) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: not a regular file", path)
	case info.Size() > most:
		return tooLarge(path, most)
	}
	return nil
}

func tooLarge(path string, most int64) error {
	return fmt.Errorf("%s: larger than %d bytes", path, most)
}
