package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answers is what can be read of a name.
func answers(tree *FS, name string) []string {
	say := func(answer string, err error) string { return fmt.Sprintf("%q %v", answer, err) }
	line, lineErr := tree.Line(name)
	data, dataErr := tree.Bytes(name, 100)
	to, linkErr := tree.Link(name)
	names, namesErr := tree.Names(name)
	there, thereErr := tree.Exists(name)
	dir, dirErr := tree.Open(name + "/")
	if dirErr == nil {
		dirErr = dir.Close()
	}
	return []string{
		"Line " + say(line, lineErr), "Bytes " + say(string(data), dataErr), "Link " + say(to, linkErr),
		"Names " + say(strings.Join(names, " "), namesErr), "Exists " + say(fmt.Sprint(there), thereErr), "Open " + say("", dirErr),
	}
}

// TestIn: names lead to the same files, with the same errors, whatever directory is open.
func TestIn(t *testing.T) {
	dir := oddTree(t)
	link(t, dir, "sys/absolute", "/sys/line")
	link(t, dir, "sys/todir", "dir")
	link(t, dir, "sys/dir/toup", "..")
	write(t, dir, "sys/dir/deep/er/file", "deep\n")
	if err := os.Mkdir(filepath.Join(dir, "sys/secret"), 0); err != nil {
		t.Fatal(err)
	}
	for _, v := range views(t, dir) {
		for _, in := range []string{"sys", "sys/dir", "sys/todir", "sys/missing", "sys/line", "sys/loop", "sys/secret"} {
			below := v.In(v.path(in))
			for _, name := range []string{
				"line", "empty", "blank", "large", "dir", "dir/inner", "inner", "up", "link", "absolute", "dangling", "loop", "fifo",
				"missing", "line/below", "toup/line", "deep/er/file", "../line", "todir/inner",
			} {
				if diff := cmp.Diff(answers(v.FS, v.path(in)+"/"+name), answers(below, v.path(in)+"/"+name)); diff != "" {
					t.Errorf("%s: %s in %s (-full name +below):\n%s", v.name, name, in, diff)
				}
			}
			for range 2 {
				names, err := v.Names(v.path(in))
				again, belowErr := below.Names(v.path(in))
				if diff := cmp.Diff(fmt.Sprint(names, err), fmt.Sprint(again, belowErr)); diff != "" {
					t.Errorf("%s: list of %s (-full name +below):\n%s", v.name, in, diff)
				}
			}
			if err := below.Close(); err != nil {
				t.Errorf("%s: %s: %v", v.name, in, err)
			}
		}
	}
}

// TestInMadeAgain: a directory that is removed and made again is found, as a device's is that
// comes back.
func TestInMadeAgain(t *testing.T) {
	dir := oddTree(t)
	for _, v := range views(t, dir) {
		below := v.In(v.path("sys/dir"))
		if err := os.Rename(filepath.Join(dir, "sys/dir"), filepath.Join(dir, "sys/old-"+v.name)); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "sys/old-"+v.name)); err != nil {
			t.Fatal(err)
		}
		write(t, dir, "sys/dir/inner", "again\n")
		if there, err := below.Exists(v.path("sys/dir/inner")); !there || err != nil {
			t.Errorf("%s: %v, %v", v.name, there, err)
		}
		if line, err := below.Line(v.path("sys/dir/inner")); line != "again" || err != nil {
			t.Errorf("%s: %q, %v", v.name, line, err)
		}
		if err := below.Close(); err != nil {
			t.Error(err)
		}
	}
}
