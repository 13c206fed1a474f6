package initramfs_test

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/test/vm/initramfs"
)

// entry is one of an archive, read by the format's description.
type entry struct {
	Name, Body string
	Mode       uint64
}

func unpack(t *testing.T, archive string) []entry {
	t.Helper()
	var all []entry
	for rest := archive; ; {
		field := func(i int) uint64 {
			n, err := strconv.ParseUint(rest[6+8*i:14+8*i], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if len(rest) < 110 || rest[:6] != "070701" {
			t.Fatalf("no header in %q", rest)
		}
		mode, size, nameSize := field(1), field(6), field(11)
		name := rest[110 : 110+nameSize]
		if name[nameSize-1] != 0 {
			t.Fatalf("name %q", name)
		}
		body := (110 + nameSize + 3) &^ 3
		all = append(all, entry{name[:nameSize-1], rest[body : body+size], mode})
		rest = rest[(body+size+3)&^3:]
		if name == "TRAILER!!!\x00" {
			if rest != "" {
				t.Errorf("%q behind the end", rest)
			}
			return all
		}
	}
}

func TestArchive(t *testing.T) {
	var out bytes.Buffer
	w := initramfs.NewWriter(&out)
	w.Dir("proc")
	w.File("init", []byte("one"))
	w.File("a/b/c", []byte("12345"))
	w.File("a/b/empty", nil)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := []entry{
		{"proc", "", 0o040755},
		{"init", "one", 0o100755},
		{"a", "", 0o040755},
		{"a/b", "", 0o040755},
		{"a/b/c", "12345", 0o100755},
		{"a/b/empty", "", 0o100755},
		{"TRAILER!!!", "", 0},
	}
	if diff := cmp.Diff(want, unpack(t, out.String())); diff != "" {
		t.Errorf("archive (-want +got):\n%s", diff)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriteError(t *testing.T) {
	w := initramfs.NewWriter(full{})
	w.File("init", []byte("one"))
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("error %v", err)
	}
}
