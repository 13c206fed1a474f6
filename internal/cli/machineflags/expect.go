package machineflags

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"gdr-features/internal/expect"
)

// DefineExpect adds the flag --expect to a set.
func DefineExpect(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "expect", "", "YAML file of what is expected of machines, see docs/expect.md")
}

// ExpectOnce reads a file of expectations, for the options of a report; nil for
// none.
func ExpectOnce(path string) (func() (*expect.File, error), error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no file is no error
	}
	text, err := readExpect(path)
	if err != nil {
		return nil, fmt.Errorf("--expect: %w", err)
	}
	file, err := expect.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--expect %s: %w", path, err)
	}
	return func() (*expect.File, error) { return file, nil }, nil
}

// ExpectAgain gives the same for one who stays: the file is read at each call. One
// that cannot be read, or is wrong, is an error, and what the last good one said
// still holds. No path gives nil.
func ExpectAgain(path string) func() (*expect.File, error) {
	if path == "" {
		return nil
	}
	return (&replaced{path: path}).current
}

// replaced is a file that somebody may replace, or write, at any time.
type replaced struct {
	path  string
	text  []byte       // as last read; nil for never
	wrong error        // with that text
	good  *expect.File // the last good one; nil for none yet
}

func (r *replaced) current() (*expect.File, error) {
	text, err := r.read()
	if err == nil {
		r.parse(text)
		err = r.wrong
	}
	switch {
	case err == nil:
		return r.good, nil
	case r.good == nil:
		return nil, fmt.Errorf("--expect: %w; nothing is expected until that is right", err)
	}
	return r.good, fmt.Errorf("--expect: %w; what it said before still holds", err)
}

// read refuses what might never answer, a pipe for one.
func (r *replaced) read() ([]byte, error) {
	info, err := os.Stat(r.path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", r.path)
	}
	return readExpect(r.path)
}

// parse takes a text that is not the one before. It is small: comparing it is
// surer than any time of change.
func (r *replaced) parse(text []byte) {
	if r.text != nil && bytes.Equal(r.text, text) {
		return
	}
	r.text = text
	file, err := expect.Parse(text)
	if r.wrong = err; err != nil {
		r.wrong = fmt.Errorf("%s: %w", r.path, err)
		return
	}
	r.good = file
}

// readExpect reads the whole file.
func readExpect(path string) ([]byte, error) {
	in, err := os.Open(path) //nolint:gosec // the administrator names it
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, expect.MaxSize+1))
	if err != nil {
		return nil, err
	}
	if len(text) > expect.MaxSize {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, expect.MaxSize)
	}
	return text, nil
}
