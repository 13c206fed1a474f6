package featurefile

import "golang.org/x/sys/unix"

// witness notices that somebody reads a file, be it in another container: the
// kernel tells it of the inode, wherever that moves (inotify(7), IN_ACCESS).
type witness int

// nobody has nothing to tell.
const nobody witness = -1

// watchReads begins to watch a file. Where that does not work, nobody does.
func watchReads(path string) witness {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nobody
	}
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_ACCESS); err != nil {
		_ = unix.Close(fd)
		return nobody
	}
	return witness(fd)
}

// read tells whether the file was read since it is watched.
func (w witness) read() bool {
	if w == nobody {
		return false
	}
	var event [unix.SizeofInotifyEvent + unix.NAME_MAX + 1]byte
	n, err := unix.Read(int(w), event[:])
	return err == nil && n > 0
}

func (w witness) close() {
	if w != nobody {
		_ = unix.Close(int(w))
	}
}
