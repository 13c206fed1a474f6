package rdma

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// watch notes which entries of some directories below dir are opened from now
// on, and gives their names, sorted, when asked.
func watch(t *testing.T, dir string, below ...string) (opened func() []string) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	watched := map[int32]string{}
	for _, name := range below {
		id, err := unix.InotifyAddWatch(fd, filepath.Join(dir, name), unix.IN_OPEN)
		if err != nil {
			t.Fatal(err)
		}
		watched[int32(id)] = name
	}
	return func() []string {
		var names []string
		buf := make([]byte, 64<<10)
		for {
			n, err := unix.Read(fd, buf)
			if errors.Is(err, unix.EAGAIN) {
				slices.Sort(names)
				return slices.Compact(names)
			}
			if err != nil {
				t.Fatal(err)
			}
			for events := buf[:n]; len(events) > 0; {
				id := int32(binary.NativeEndian.Uint32(events))
				end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
				// An event of the directory itself has no name.
				if name := bytes.TrimRight(events[unix.SizeofInotifyEvent:end], "\x00"); len(name) > 0 {
					names = append(names, watched[id]+string(name))
				}
				events = events[end:]
			}
		}
	}
}
