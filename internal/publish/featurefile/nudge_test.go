package featurefile

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// watcher sees what NFD's own watcher (fsnotify) sees of a directory.
type watcher struct {
	*testing.T
	fd int
}

func watch(t *testing.T, dir string) *watcher {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	const all = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	if _, err := unix.InotifyAddWatch(fd, dir, all); err != nil {
		t.Fatal(err)
	}
	return &watcher{t, fd}
}

// events gives what has happened since the last call.
func (w *watcher) events() (names []string) {
	w.Helper()
	buffer := make([]byte, 64<<10)
	n, err := unix.Read(w.fd, buffer)
	if errors.Is(err, unix.EAGAIN) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	for buffer = buffer[:n]; len(buffer) > 0; {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&buffer[0]))
		name := buffer[unix.SizeofInotifyEvent:][:e.Len]
		buffer = buffer[unix.SizeofInotifyEvent+e.Len:]
		words := map[uint32]string{
			unix.IN_CREATE: "create", unix.IN_MODIFY: "modify", unix.IN_ATTRIB: "attrib",
			unix.IN_DELETE: "delete", unix.IN_MOVED_FROM: "from", unix.IN_MOVED_TO: "to",
		}
		text := words[e.Mask&^unix.IN_ISDIR] + " " + strings.TrimRight(string(name), "\x00")
		if strings.Contains(text, staged) {
			text, _, _ = strings.Cut(text, " ")
		}
		names = append(names, text)
	}
	return names
}

func (w *watcher) want(what string, want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.events()); diff != "" {
		w.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// NFD sees one event when a file moves in, and then one every 100 ms until it
// surely listens again: 1.1 s after the last of several writes, and none later.
func TestNudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		if err := os.Mkdir(p.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		w := watch(t, p.dir)
		step := func(what string, want ...string) {
			t.Helper()
			time.Sleep(often)
			synctest.Wait()
			w.want(what, want...)
		}
		for i := range 3 {
			p.must(true, versions[i%2])
			synctest.Wait()
			w.want("a write", "to "+Name)
			for range 5 {
				step("nudged", "attrib "+Name)
			}
		}
		for range 6 {
			step("nudged on", "attrib "+Name)
		}
		step("afterwards")
		time.Sleep(time.Hour)
		synctest.Wait()
		w.want("ever after")
		p.must(false, versions[0])
		time.Sleep(time.Hour)
		synctest.Wait()
		w.want("after nothing was written")
	})
}

// Once somebody has read the file it is left alone: every touch makes NFD look,
// and then overlook for a second. That the agent itself looks does not count.
func TestNudgeUntilRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		if err := os.Mkdir(p.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		w := watch(t, p.dir)
		p.must(true, ready())
		p.must(false, ready())
		if _, err := p.Last(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * often)
		synctest.Wait()
		w.want("not read yet", "to "+Name, "attrib "+Name)
		if _, err := os.ReadFile(p.path()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		w.want("read")
	})
}

// A file that goes is noticed too.
func TestNudgeRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		p.must(true, ready())
		time.Sleep(time.Hour)
		w := watch(t, p.dir)
		p.must(true, nil)
		w.want("removed", "delete "+Name)
		for range nudging / often {
			time.Sleep(often)
			synctest.Wait()
			w.want("nudged", "create", "delete")
		}
		p.must(false, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		w.want("after nothing was removed")
		p.clean()
	})
}

// Close waits for the nudging, and no longer than it may.
func TestClose(t *testing.T) {
	tests := []struct {
		name              string
		before, may, took time.Duration
		nudged            bool
	}{
		{"at once", 0, time.Minute, nudging, true},
		{"soon", time.Second, time.Minute, nudging - time.Second, true},
		{"in time", nudging, time.Minute, 0, true},
		{"long ago", time.Hour, time.Minute, 0, true},
		{"no time", 0, often / 2, often / 2, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlace(t)
				p.must(true, ready())
				w := watch(t, p.dir)
				time.Sleep(test.before)
				ctx, cancel := context.WithTimeout(t.Context(), test.may)
				defer cancel()
				start := time.Now()
				if err := p.Close(ctx); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took != test.took {
					t.Errorf("took %v", took)
				}
				if nudged := len(w.events()) == 1; nudged != test.nudged {
					t.Errorf("nudged: %v", nudged)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := newPlace(t).Close(t.Context()); err != nil || time.Since(start) != 0 {
			t.Errorf("without any write: error %v after %v", err, time.Since(start))
		}
	})
}
