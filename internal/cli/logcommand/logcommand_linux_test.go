package logcommand

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newTerminal returns a terminal, and what is shown on it so far.
func newTerminal(t *testing.T) (screen *os.File, shown func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return screen, func() string {
		_ = screen.Close() // the other side then reads to the end
		var text bytes.Buffer
		_, _ = io.Copy(&text, master) // ends with EIO
		return text.String()
	}
}

// TestLogProgress: what takes longer than a second says on a terminal how far it is, once a
// second, and leaves nothing there; nothing elsewhere.
func TestLogProgress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte(strings.Repeat("a line of a program\n", 1<<18)), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(errs io.Writer, step time.Duration) {
		now := time.Unix(0, 0)
		log := Log{Out: io.Discard, Err: errs, Page: io.Discard, Now: func() time.Time {
			now = now.Add(step)
			return now
		}}
		if _, err := log.read([]string{file}); err != nil {
			t.Fatal(err)
		}
	}
	screen, shown := newTerminal(t)
	read(screen, 600*time.Millisecond)
	lines := strings.Split(shown(), "\r\x1b[K")
	if len(lines) < 4 || lines[0] != "" || lines[len(lines)-1] != "" {
		t.Fatalf("%q", lines)
	}
	for _, line := range lines[1 : len(lines)-1] {
		if !strings.HasPrefix(line, "read ") || !strings.HasSuffix(line, " of 5 MiB") {
			t.Errorf("%q", line)
		}
	}
	screen, shown = newTerminal(t)
	read(screen, time.Microsecond)
	if text := shown(); text != "" {
		t.Errorf("a quick one shows %q", text)
	}
	var piped bytes.Buffer
	if read(&piped, time.Minute); piped.Len() > 0 {
		t.Errorf("no terminal is shown %q", &piped)
	}
}
