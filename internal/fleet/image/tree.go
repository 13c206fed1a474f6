package image

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// What reading one tree may cost. A real image needs less than a tenth of each.
const (
	mostBytes   = 48 << 20 // read in all
	mostSteps   = 200_000  // parts of paths looked up
	mostLinks   = 40       // in one path: the kernel's own limit
	mostEntries = 4096     // of one directory
)

var (
	errLinks   = errors.New("too many links")
	errLarge   = errors.New("more data than such files have")
	errBudget  = errors.New("the tree costs more to read than any image")
	errRegular = errors.New("not a regular file")
)

// tree reads files below a root. Links are followed within it, as if the root were "/".
type tree struct {
	fs          fs.FS // its files are io.ReaderAt, as those of os.Root
	bytes       int64 // that may still be read
	steps       int
	directories map[string]place // where directories lead
}

// place is where a path leads, or why it leads nowhere.
type place struct {
	path string
	err  error
}

func newTree(root fs.FS) *tree {
	return &tree{fs: root, bytes: mostBytes, steps: mostSteps, directories: map[string]place{}}
}

// resolve follows every link in a path and returns the name of the file that it leads to,
// relative to the root.
func (t *tree) resolve(name string) (string, error) {
	dir, base := path.Split(path.Clean("/" + name))
	known, ok := t.directories[dir]
	if !ok {
		known.path, known.err = t.walk(dir)
		t.directories[dir] = known
	}
	if known.err != nil {
		return "", known.err
	}
	return t.walk(known.path + "/" + base)
}

func (t *tree) walk(name string) (string, error) {
	todo, done, links := strings.Split(name, "/"), "/", 0
	for len(todo) > 0 {
		part, at := todo[0], path.Join(done, todo[0])
		todo = todo[1:]
		if part == "" || part == "." || part == ".." {
			done = at
			continue
		}
		if t.steps--; t.steps < 0 {
			return "", errBudget
		}
		info, err := fs.Lstat(t.fs, at[1:])
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = at
			continue
		}
		to, err := fs.ReadLink(t.fs, at[1:])
		if err != nil {
			return "", err
		}
		if links++; links > mostLinks || len(to) > 4096 {
			return "", &fs.PathError{Op: "open", Path: "/" + name, Err: errLinks}
		}
		if strings.HasPrefix(to, "/") {
			done = "/"
		}
		todo = append(strings.Split(to, "/"), todo...)
	}
	return cmp.Or(done[1:], "."), nil
}

// distinct returns where directories lead, the first so many, each once and without those that are missing.
func (t *tree) distinct(dirs []string, most int) (found []string) {
	seen := map[string]bool{}
	for _, dir := range dirs {
		if at, err := t.resolve(dir); err == nil && !seen[at] && len(found) < most {
			seen[at] = true
			found = append(found, at)
		}
	}
	return found
}

// enter opens what a path leads to if it is of the right kind: opening a FIFO may never end.
func (t *tree) enter(name string, right func(fs.FileMode) bool) (opened fs.File, at string, err error) {
	if at, err = t.resolve(name); err != nil {
		return nil, "", err
	}
	info, err := fs.Lstat(t.fs, at)
	if err != nil {
		return nil, "", err
	}
	if !right(info.Mode()) {
		return nil, "", &fs.PathError{Op: "open", Path: "/" + at, Err: errRegular}
	}
	opened, err = t.fs.Open(at)
	return opened, at, err
}

// file is an open regular file whose reads count.
type file struct {
	io.ReaderAt
	fs.File
	t    *tree
	path string // absolute
}

func (t *tree) open(name string) (*file, error) {
	opened, at, err := t.enter(name, fs.FileMode.IsRegular)
	if err != nil {
		return nil, err
	}
	return &file{opened.(io.ReaderAt), opened, t, "/" + at}, nil
}

func (f *file) ReadAt(to []byte, offset int64) (int, error) {
	if f.t.bytes -= int64(len(to)); f.t.bytes < 0 {
		return 0, errBudget
	}
	return f.ReaderAt.ReadAt(to, offset)
}

// read reads a whole file of at most limit bytes.
func (t *tree) read(name string, limit int64) ([]byte, error) {
	f, err := t.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, &fs.PathError{Op: "read", Path: "/" + name, Err: errLarge}
	}
	data := make([]byte, info.Size())
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("/%s: %w", name, err)
	}
	return data[:n], nil
}

// names lists a directory, sorted; of very many only the first, with an error. None where it
// is missing, or is no directory.
func (t *tree) names(dir string) ([]string, error) {
	opened, _, err := t.enter(dir, fs.FileMode.IsDir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errRegular) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	entries, err := opened.(fs.ReadDirFile).ReadDir(mostEntries)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if len(entries) == mostEntries {
		err = &fs.PathError{Op: "read", Path: "/" + dir, Err: errLarge}
	}
	t.steps -= len(entries)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	slices.Sort(names)
	return names, err
}
