package machineflags

import (
	"fmt"

	"gdr-features/internal/expect"
	"gdr-features/internal/regular"
	"gdr-features/internal/yamlfile"
)

// ExpectOnce reads a file of expectations, for the options of a report. No path gives nil.
func ExpectOnce(path string) (func() (*expect.File, error), error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no file is no error
	}
	file, err := readExpect(path)
	return func() (*expect.File, error) { return file, nil }, err
}

// ExpectAgain returns the same for a program that keeps running: the file is read at
// each call. While it cannot be read or is wrong, each call gives an error, and the
// last good expectations stay in force. No path gives nil.
func ExpectAgain(path string) func() (*expect.File, error) {
	if path == "" {
		return nil
	}
	var good *expect.File // the last one; nil before the first
	return func() (*expect.File, error) {
		file, err := readExpect(path)
		switch {
		case err == nil:
			good = file
			return file, nil
		case good == nil:
			return nil, fmt.Errorf("%w; no expectations until the file is corrected", err)
		}
		return good, fmt.Errorf("%w; the last good version stays in force", err)
	}
}

func readExpect(path string) (*expect.File, error) {
	text, err := regular.ReadFile(path, yamlfile.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("--expect: %w", err)
	}
	file, err := expect.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--expect: %s:%w", path, err) // path:line:column: reason
	}
	return file, nil
}
