package featurefile

import "golang.org/x/sys/unix"

// readWatch notices that anybody reads a file, even from another container: the kernel
// reports it for the inode, wherever that is moved (inotify(7), IN_ACCESS).
type readWatch int

// noReadWatch never notices anything: it is no file descriptor.
const noReadWatch readWatch = -1

// watchReads begins to watch a file; it gives noReadWatch where that does not work.
func watchReads(path string) readWatch {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return noReadWatch
	}
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_ACCESS); err != nil {
		_ = unix.Close(fd)
		return noReadWatch
	}
	return readWatch(fd)
}

// read reports whether the file has been read since watchReads.
func (w readWatch) read() bool {
	var event [unix.SizeofInotifyEvent + unix.NAME_MAX + 1]byte
	n, err := unix.Read(int(w), event[:])
	return err == nil && n > 0
}

func (w readWatch) close() {
	_ = unix.Close(int(w))
}
