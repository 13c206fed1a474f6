package terminal

import (
	"strings"
	"testing"
)

// TestWhole: a command runs over the edge instead of being broken, and nothing else does.
func TestWhole(t *testing.T) {
	const command = "dkms build --force nvidia/570.86.15 && dkms install --force nvidia/570.86.15"
	got := broken("WARN  peermem  rebuild the driver: "+Whole(command)+" and load it again\n", 40)
	want := "WARN  peermem  rebuild the driver:\n               " + command + "\n               and load it again\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := broken("  "+Whole("a b")+"\n", 40); got != "  a b\n" {
		t.Errorf("%q", got)
	}
}

// TestUnwrap: the lines of a paragraph and of an item are one; blocks stay as they are.
func TestUnwrap(t *testing.T) {
	const page = "# A page\n\nOne line\nand another.\n\n1. An item\n   that goes on\n2. The next: `ls\n-l`\n\n```text\na\nb\n```\n| a | b |\n| c | d |\n"
	const want = "# A page\n\nOne line and another.\n\n1. An item that goes on\n2. The next: `ls" + tie + "-l`\n\n```text\na\nb\n```\n| a | b |\n| c | d |\n"
	if got := Unwrap(page); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestColors: how checks ended has a color on a terminal that has some, and in nothing else.
func TestColors(t *testing.T) {
	const text = "OK    driver  loaded\nWARN  port    down\nFAIL: not a check\nUNKNOWN  x  y\n"
	const want = "\x1b[32mOK\x1b[0m    driver  loaded\n\x1b[33mWARN\x1b[0m  port    down\nFAIL: not a check\n\x1b[36mUNKNOWN\x1b[0m  x  y\n"
	for color, want := range map[bool]string{true: want, false: text} {
		var out strings.Builder
		w := NewWriter(&out, 80).Colored(color)
		if _, err := w.Write([]byte(text)); err != nil || w.Close() != nil || out.String() != want {
			t.Errorf("%v: %q, want %q", color, out.String(), want)
		}
	}
}
