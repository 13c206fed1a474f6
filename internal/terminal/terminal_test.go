package terminal

import (
	"errors"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"github.com/google/go-cmp/cmp"
)

func TestBreak(t *testing.T) {
	const text = `OK    driver   loaded
WARN  peermem  PeermemNotLoaded: not loaded, though the stack has the interface
               fix: modprobe nvidia-peermem, then see what the kernel log says
0123456789 0123456789 0123456789 0123456789 0123456789
      --flag list   what it does, which is more than fits into one line
word-that-is-longer-than-any-line-of-this-terminal-can-be and more
ノード名前 ノード名前 ノード名前 ノード名前 ノード名前 ノード

the end`
	const want = `OK    driver   loaded
WARN  peermem  PeermemNotLoaded: not
               loaded, though the stack
               has the interface
               fix: modprobe
               nvidia-peermem, then see
               what the kernel log says
0123456789 0123456789 0123456789
0123456789 0123456789
      --flag list   what it does, which
                    is more than fits
                    into one line
word-that-is-longer-than-any-line-of-thi
s-terminal-can-be and more
ノード名前 ノード名前 ノード名前
ノード名前 ノード名前 ノード

the end`
	if diff := cmp.Diff(want, broken(text, 40)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := broken(text, 200); got != text {
		t.Errorf("broken without need:\n%s", got)
	}
	for _, size := range []int{1, 3, 7, len(text)} { // however the text is cut into pieces
		var out strings.Builder
		w := NewWriter(&out, 40)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if got, err := w.Write([]byte(rest[:n])); err != nil || got != n {
				t.Fatal(got, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("in pieces of %d (-want +got):\n%s", size, diff)
		}
	}
	for _, width := range []int{0, narrowest - 1} { // no terminal, and one that is too narrow
		var out strings.Builder
		w := NewWriter(&out, width)
		if _, err := w.Write([]byte(text)); err != nil || out.String() != text || Columns(w) != 0 {
			t.Errorf("width %d: %v\n%s", width, err, out.String())
		}
	}
	if n := Columns(NewWriter(nil, 80)); n != 80 {
		t.Errorf("%d columns", n)
	}
	if n := Columns(&strings.Builder{}); n != 0 {
		t.Errorf("%d columns of a file", n)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestFails(t *testing.T) {
	w := NewWriter(failing{}, 80)
	if _, err := w.Write([]byte("no end")); err != nil {
		t.Error("an error too early")
	}
	if w.Close() == nil {
		t.Error("the end is lost without an error")
	}
	if _, err := w.Write([]byte("a line\n")); err == nil {
		t.Error("a line is lost without an error")
	}
}

// FuzzBreak: no line is too wide, and no text is lost but spaces; a tie becomes one. What marks do
// to the width of their neighbours is left out.
func FuzzBreak(f *testing.F) {
	f.Add("WARN  peermem  a text that is too long", 20)
	f.Add("\t\x1b[1mbold\x1b[0m 名前", 30)
	f.Add("run "+Whole("modprobe nvidia_peermem"), 20)
	f.Fuzz(func(t *testing.T, text string, width int) {
		if width < narrowest || width > 300 {
			return
		}
		out := broken(text, width)
		ascii := !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' || r > '~' })
		for line := range strings.Lines(out) {
			if w := displaywidth.String(strings.TrimSuffix(line, "\n")); ascii && w > width {
				t.Errorf("%d columns: %q", w, line)
			}
		}
		bare := func(s string) string { return strings.NewReplacer(" ", "", tie, "", "\n", "").Replace(s) }
		if bare(out) != bare(text) {
			t.Errorf("%q becomes %q", text, out)
		}
	})
}
