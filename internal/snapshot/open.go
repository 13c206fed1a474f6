package snapshot

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"gdr-features/host"
)

// Is tells whether a root is a file, not a directory: it can only be a snapshot.
func Is(root string) bool {
	info, err := os.Stat(root)
	return err == nil && info.Mode().IsRegular()
}

// Open opens a machine: its files, or a snapshot of it.
func Open(o host.Options) (*host.FS, error) {
	if fs, err := host.Open(o); err == nil || !Is(o.Root) {
		return fs, err
	}
	if o.Sysfs != "" || o.Procfs != "" {
		return nil, fmt.Errorf("--sysfs and --procfs do not go with --root %s, a snapshot", o.Root)
	}
	text, err := load(o.Root)
	if err != nil {
		return nil, err
	}
	t, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Root, err)
	}
	return t.FS(o.Root), nil
}

func load(name string) (string, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) //nolint:gosec // the file that --root names
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxText+1))
	return string(text), err
}
