package host

// Source answers in place of the kernel: a machine that was recorded, or what
// records one. Names are as in FS. Errors are bare, without the name.
type Source interface {
	Open(name string) (Handle, error)
	Dir(name string) (Lister, error)
	Link(name string) (string, error)
	Exists(name string) (bool, error)
}

// Handle is an open file of a Source. It reads as File does.
type Handle interface {
	Read(buf []byte) (int, error)
	ReadAt(buf []byte, offset int64) (int, error)
	Close() error
}

// Lister is an open directory of a Source. It lists as Dir does.
type Lister interface {
	Names() ([]string, error)
	Close() error
}

// From gives the tree that a source knows. root is what to call it.
func From(source Source, root string) *FS { return &FS{source: source, dir: root} }

func (f *FS) openSource(name string) (*File, error) {
	from, err := f.source.Open(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &File{name: name, from: from}, nil
}

func (f *FS) existsInSource(name string) (bool, error) {
	ok, err := f.source.Exists(name)
	if err != nil {
		return false, pathError("stat", name, err)
	}
	return ok, nil
}

func (f *FS) linkInSource(name string) (string, error) {
	to, err := f.source.Link(name)
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	return to, nil
}

func (f *FS) dirInSource(name string) (*Dir, error) {
	from, err := f.source.Dir(name)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &Dir{name: name, from: from, tree: f}, nil
}

func (d *Dir) listSource() ([]string, error) {
	names, err := d.from.Names()
	if err != nil {
		return names, pathError("readdir", d.name, err)
	}
	return names, nil
}

// named adds the file's name to the error of a read.
func (f *File) named(n int, err error) (int, error) {
	if err != nil {
		return n, pathError("read", f.name, err)
	}
	return n, nil
}
