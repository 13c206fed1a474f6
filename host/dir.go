package host

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Names lists a directory, sorted.
func (f *FS) Names(name string) ([]string, error) {
	d, err := f.Dir(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Names()
}

// Dir is an open directory.
type Dir struct {
	fd   int
	name string
	from Lister // nil for the kernel
	tree *FS    // of from
}

// Dir opens a directory whose entries are listed and, where they are links,
// read: cheaper than by the whole name each time. The caller closes it.
func (f *FS) Dir(name string) (*Dir, error) {
	if f.source != nil {
		return f.dirInSource(name)
	}
	op, below := f.at(name)
	fd, err := op.open(below, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &Dir{fd: fd, name: name}, nil
}

// Names lists the directory, sorted: the same machine is told in the same order,
// problems too. After an error it holds what was listed until then.
func (d *Dir) Names() ([]string, error) {
	var names []string
	var err error
	if d.from != nil {
		names, err = d.listSource()
	} else {
		names, err = d.list()
	}
	slices.Sort(names)
	return names, err
}

func (d *Dir) list() ([]string, error) {
	var names []string
	buf := make([]byte, 16<<10)
	for {
		n, err := ignoringEINTR(func() (int, error) { return unix.ReadDirent(d.fd, buf) })
		if err != nil {
			return names, pathError("readdir", d.name, err)
		}
		if n <= 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
		if len(names) > maxNames {
			return names[:maxNames], pathError("readdir", d.name, ErrTooLarge)
		}
	}
}

// Link gives the text of the entry's link.
func (d *Dir) Link(entry string) (string, error) {
	if d.from != nil {
		return d.tree.Link(d.name + "/" + entry)
	}
	to, err := readlinkat(d.fd, entry)
	if err != nil {
		return "", pathError("readlink", d.name+"/"+entry, err)
	}
	return to, nil
}

// Close gives the handle back.
func (d *Dir) Close() error {
	if d.from != nil {
		return d.from.Close()
	}
	return unix.Close(d.fd)
}
