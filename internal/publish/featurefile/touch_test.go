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

// watcher sees the events of a directory that NFD's own watcher (fsnotify) sees.
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

// events returns what has happened since the last call.
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
		if strings.Contains(text, stagedPrefix) {
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

// A file that is moved in causes one event, and then one every 100 ms until NFD surely
// listens again: 1.1 s after the last of several writes, and none later.
func TestTouch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPublisher(t)
		if err := os.Mkdir(p.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		w := watch(t, p.dir)
		step := func(what string, want ...string) {
			t.Helper()
			time.Sleep(touchEvery)
			synctest.Wait()
			w.want(what, want...)
		}
		for i := range 3 {
			p.must(true, versions[i%2])
			synctest.Wait()
			w.want("a write", "to "+Name)
			for range 5 {
				step("touched", "attrib "+Name)
			}
		}
		for range 6 {
			step("touched later", "attrib "+Name)
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

// Once somebody has read the file it is not touched any more: after each event NFD ignores
// others for a second. Reads by the agent itself do not count.
func TestTouchUntilRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPublisher(t)
		if err := os.Mkdir(p.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		w := watch(t, p.dir)
		p.must(true, ready())
		p.must(false, ready())
		if _, err := p.Last(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * touchEvery)
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

// The removal of a file is noticed too.
func TestTouchRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPublisher(t)
		p.must(true, ready())
		time.Sleep(time.Hour)
		w := watch(t, p.dir)
		p.must(true, nil)
		w.want("removed", "delete "+Name)
		for range touchFor / touchEvery {
			time.Sleep(touchEvery)
			synctest.Wait()
			w.want("touched", "create", "delete")
		}
		p.must(false, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		w.want("after nothing was removed")
		p.wantClean()
	})
}

// Close waits until the file is not touched any more, but no longer than its context.
func TestClose(t *testing.T) {
	tests := []struct {
		name              string
		before, may, took time.Duration
		touched           bool
	}{
		{"at once", 0, time.Minute, touchFor, true},
		{"soon", time.Second, time.Minute, touchFor - time.Second, true},
		{"in time", touchFor, time.Minute, 0, true},
		{"long ago", time.Hour, time.Minute, 0, true},
		{"no time", 0, touchEvery / 2, touchEvery / 2, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPublisher(t)
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
				if touched := len(w.events()) == 1; touched != test.touched {
					t.Errorf("touched: %v", touched)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := newPublisher(t).Close(t.Context()); err != nil || time.Since(start) != 0 {
			t.Errorf("without any write: error %v after %v", err, time.Since(start))
		}
	})
}
