package machineflags

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// file is one that expects so many GPUs of a type of a name.
func file(name string) string {
	return "types:\n- name: " + name + "\n  match: any\n  expect:\n    gpus: 8\n"
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The file is read at each call; the last good version stays in force until the
// next.
func TestExpectAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "expect.yaml")
	current := ExpectAgain(path)
	remove := func() {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	link := func(version, text string) { // as a ConfigMap is updated
		write(t, filepath.Join(dir, version), text)
		if err := os.Symlink(version, path+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	const until, still = "no expectations until the file is corrected", "the last good version stays in force"
	for _, step := range []struct {
		name string
		do   func()
		want string // the type's name, "" for no file
		err  string
	}{
		{"not there", func() {}, "", "no such file or directory; " + until},
		{"empty", func() { write(t, path, "") }, "", "expect.yaml:1:1: the file is empty; it must have the key types; " + until},
		{"wrong", func() { write(t, path, "types: 1") }, "", path + ":1:8: types: must be a list"},
		{"right", func() { write(t, path, file("a")) }, "a", ""},
		{"the same", func() {}, "a", ""},
		{"of the same size", func() { write(t, path, file("b")) }, "b", ""},
		{"wrong again", func() { write(t, path, file("b")+"x: 1\n") }, "b", "expect.yaml:6:1: unknown key x; known keys: types; " + still},
		{"still wrong", func() {}, "b", still},
		{"gone", remove, "b", "no such file or directory; " + still},
		{"back, and still wrong", func() { write(t, path, file("b")+"x: 1\n") }, "b", ":6:1: "},
		{"right as before", func() { write(t, path, file("b")) }, "b", ""},
		{"gone again", remove, "b", still},
		{"the same again", func() { write(t, path, file("b")) }, "b", ""},
		{"a link", func() { link("1", file("c")) }, "c", ""},
		{"another link", func() { link("2", file("d")) }, "d", ""},
		{"too large", func() { link("3", strings.Repeat("#", 1<<18+1)) }, "d", "larger than 262144 bytes; " + still},
		{"a directory", func() {
			remove()
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "d", "not a regular file; " + still},
		{"a pipe that nobody writes to", func() {
			remove()
			if err := syscall.Mkfifo(path, 0o644); err != nil {
				t.Fatal(err)
			}
		}, "d", "not a regular file; " + still},
	} {
		step.do()
		f, err := current()
		got, text := "", ""
		if f != nil {
			got = f.Types[0].Name
		}
		if err != nil {
			text = err.Error()
		}
		if got != step.want || (err == nil) != (step.err == "") || !strings.Contains(text, step.err) || strings.Contains(text, "\n") {
			t.Errorf("%s: %q, %v; want %q, %s", step.name, got, err, step.want, step.err)
		}
		if err != nil && !strings.HasPrefix(text, "--expect: ") {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}

func TestExpectNothing(t *testing.T) {
	if ExpectAgain("") != nil {
		t.Error("ExpectAgain without a path is not nil")
	}
	if once, err := ExpectOnce(""); once != nil || err != nil {
		t.Errorf("ExpectOnce without a path is not nil, or fails: %v", err)
	}
}
