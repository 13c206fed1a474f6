package terminal

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// TestColorsOnTerminal: there are colors on a terminal, and none in a pipe or where they are not
// wanted.
func TestColorsOnTerminal(t *testing.T) {
	pipe, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		file    *os.File
		noColor string
		term    string
		want    bool
	}{
		{pseudo(t), "", "xterm", true}, {pseudo(t), "1", "xterm", false}, {pseudo(t), "", "dumb", false}, {pipe, "", "xterm", false},
	} {
		env := map[string]string{"NO_COLOR": tc.noColor, "TERM": tc.term}
		if got := Colors(term.IsTerminal(int(tc.file.Fd())), func(name string) string { return env[name] }); got != tc.want {
			t.Errorf("%s, %v: %v", tc.file.Name(), env, got)
		}
	}
}

// pseudo is a terminal of this test's own.
func pseudo(t *testing.T) *os.File {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal("no pseudo terminal here: ", err)
	}
	t.Cleanup(func() { _ = control.Close() })
	fd := int(control.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal("no pseudo terminal here: ", err)
	}
	terminal, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal("no pseudo terminal here: ", err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return terminal
}
