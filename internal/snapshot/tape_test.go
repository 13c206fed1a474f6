package snapshot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gdr-features/host"
)

// oddTree holds one of everything that can stand where a file should.
func oddTree(t *testing.T) *host.FS {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("sys/line", "value\n")
	write("sys/empty", "")
	write("sys/blank", " \n\t\n")
	write("sys/binary", "\x00\x01\xfe\xff")
	write("sys/large", strings.Repeat("x", 10000))
	write("sys/dir/inner", "inner\n")
	for name, to := range map[string]string{
		"sys/link": "line", "sys/dangling": "nowhere", "sys/loop": "pool", "sys/pool": "loop", "sys/dir/up": "../line",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "sys/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	tree, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	return tree
}

// asked is everything that can be asked of a tree, and what it says.
func asked(tree *host.FS) map[string]string {
	said := map[string]string{}
	say := func(question, answer string, err error) {
		if err != nil {
			answer += " " + err.Error()
		}
		said[question] = answer
	}
	for _, name := range []string{
		"sys", "sys/line", "sys/empty", "sys/blank", "sys/binary", "sys/large", "sys/dir", "sys/dir/inner", "sys/link",
		"sys/dangling", "sys/loop", "sys/fifo", "sys/dir/up", "sys/missing", "sys/missing/below", "sys/line/below",
	} {
		line, err := tree.Line(name)
		say("Line "+name, line, err)
		data, err := tree.Bytes(name, 100)
		say("Bytes "+name, string(data), err)
		to, err := tree.Link(name)
		say("Link "+name, to, err)
		to, err = tree.Resolve(name)
		say("Resolve "+name, to, err)
		names, err := tree.Names(name)
		say("Names "+name, strings.Join(names, " "), err)
		ok, err := tree.Exists(name)
		say("Exists "+name, map[bool]string{false: "no", true: "yes"}[ok], err)
		if file, err := tree.Open(name); err == nil && name != "sys/fifo" { // which fails otherwise when read at an offset
			buf := make([]byte, 8)
			for _, at := range []int64{2, 5000, 9998, 20000} {
				n, err := file.ReadAt(buf, at)
				say("ReadAt "+name, string(buf[:n]), err)
			}
			_ = file.Close()
		}
		if dir, err := tree.Dir(name); err == nil {
			to, err := dir.Link("link")
			say("Dir.Link "+name, to, err)
			_ = dir.Close()
		}
	}
	return said
}

// TestReplay: the machine, the tape while it records, and the tape read back all
// say the same.
func TestReplay(t *testing.T) {
	tree := oddTree(t)
	want := asked(tree)
	tape := Record(tree)
	if diff := cmp.Diff(want, asked(tape.FS("tape"))); diff != "" {
		t.Errorf("while recording (-machine +tape):\n%s", diff)
	}
	if late := tape.Finish(); late != nil {
		t.Errorf("no answer from %q", late)
	}
	read := reread(t, tape)
	if diff := cmp.Diff(want, asked(read.FS("tape"))); diff != "" {
		t.Errorf("read back (-machine +tape):\n%s", diff)
	}
	// A snapshot of a snapshot is the same snapshot.
	second := Record(read.FS("tape"))
	_ = asked(second.FS("tape"))
	if diff := cmp.Diff(text(t, read), text(t, second)); diff != "" {
		t.Errorf("recorded again (-first +second):\n%s", diff)
	}
}

func text(t *testing.T, tape *Tape) string {
	t.Helper()
	text, err := tape.Text()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func reread(t *testing.T, tape *Tape) *Tape {
	t.Helper()
	read, err := Parse(text(t, tape))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// A second reader that goes further has read what the first left, and the file is
// read once.
func TestReadFurther(t *testing.T) {
	tree := oddTree(t)
	tape := Record(tree)
	for _, limit := range []int{4000, 7000, 20000} {
		want, wantErr := tree.Bytes("sys/large", limit)
		got, err := tape.FS("").Bytes("sys/large", limit)
		if string(got) != string(want) || (err == nil) != (wantErr == nil) {
			t.Errorf("up to %d: %d bytes, %v; want %d, %v", limit, len(got), err, len(want), wantErr)
		}
	}
	if err := os.WriteFile(filepath.Join(tree.Root(), "sys/large"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := tape.FS("").Bytes("sys/large", 20000); len(got) != 10000 || err != nil {
		t.Errorf("after a change: %d bytes, %v; want what was read before", len(got), err)
	}
}

// What nobody asked is another thing than what was not there.
func TestNotRecorded(t *testing.T) {
	tape, err := Parse(magic + `

/sys/class/
- net
/sys/devices/
...
/sys/gone !ENOENT
/sys/secret !EACCES
/sys/secret/ !EACCES
/sys/secret exists !EACCES
/sys/secret/below -> !EACCES
/sys/part
|begin
...
/sys/bus/x/
- a
!EIO
end
`)
	if err != nil {
		t.Fatal(err)
	}
	tree := tape.FS("snapshot")
	of := func(_ any, err error) error { return err }
	for _, tt := range []struct {
		name string
		err  error
		want error
	}{
		{"never asked", of(tree.Line("sys/never")), ErrNotRecorded},
		{"never asked to be listed", of(tree.Names("sys/never")), ErrNotRecorded},
		{"never asked whether it is a link", of(tree.Link("sys/never")), ErrNotRecorded},
		{"never asked whether it is there", of(tree.Exists("sys/never")), ErrNotRecorded},
		{"was not there", of(tree.Line("sys/gone")), fs.ErrNotExist},
		{"may not be read", of(tree.Line("sys/secret")), fs.ErrPermission},
		{"may not be listed", of(tree.Names("sys/secret")), fs.ErrPermission},
		{"may not be looked at", of(tree.Exists("sys/secret")), fs.ErrPermission},
		{"may not be entered", of(tree.Link("sys/secret/below")), fs.ErrPermission},
		{"was not there; another question", of(tree.Link("sys/gone")), ErrNotRecorded},
		{"listed, and never read", of(tree.Line("sys/class/net")), ErrNotRecorded},
		{"not in the list of its directory", of(tree.Line("sys/class/infiniband")), fs.ErrNotExist},
		{"not there, by that list", of(tree.Exists("sys/class/infiniband")), nil},
		{"directory not listed", of(tree.Names("sys/devices")), ErrNotRecorded},
		{"below a directory not listed", of(tree.Line("sys/devices/a")), ErrNotRecorded},
		{"below one listed in part", of(tree.Line("sys/bus/x/b")), ErrNotRecorded},
		{"read in part", of(tree.Bytes("sys/part", 100)), ErrNotRecorded},
		{"inodes are never asked", of(tree.Inode("sys/class")), unix.ENOTSUP},
	} {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, tt.err, tt.want)
		}
	}
	if line, err := tree.Line("sys/part"); line != "begin" || err != nil {
		t.Errorf("the part that was read: %q, %v", line, err)
	}
}

// What would be refused from a stranger is not written.
func TestNotKept(t *testing.T) {
	dir := t.TempDir()
	tree, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	for i := range maxNames + 1 {
		if err := os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tape := Record(tree)
	if _, err := tape.FS("").Names("."); err != nil {
		t.Fatal(err)
	}
	if _, err := tape.Text(); !errors.Is(err, errCount) {
		t.Errorf("%v, want %v", err, errCount)
	}
}

// sick is a machine of which some files never answer.
type sick struct {
	host.Source
	hangs func(question, name string) bool
	end   chan struct{}
}

func (s sick) Open(name string) (host.Handle, error) {
	s.ask("open", name)
	from, err := s.Source.Open(name)
	return sickHandle{from, s, name}, err
}

func (s sick) Dir(name string) (host.Lister, error) { s.ask("dir", name); return s.Source.Dir(name) }

func (s sick) ask(question, name string) {
	if s.hangs(question, name) {
		<-s.end
	}
}

type sickHandle struct {
	host.Handle
	s    sick
	name string
}

func (h sickHandle) Read(buf []byte) (int, error) {
	h.s.ask("read", h.name)
	return h.Handle.Read(buf)
}

// What gave no answer gives none in the snapshot, and that ends.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	machine := Record(oddTree(t))
	s := sick{Source: machine, end: make(chan struct{}), hangs: func(question, name string) bool {
		return question+" "+name == "read sys/line" || question+" "+name == "dir sys/dir"
	}}
	tape := Record(host.From(s, ""))
	tree := tape.FS("")
	ask := func(tree *host.FS) chan error {
		answers := make(chan error, 2)
		go func() { _, err := tree.Line("sys/line"); answers <- err }()
		go func() { _, err := tree.Names("sys/dir"); answers <- err }()
		return answers
	}
	late := ask(tree)
	time.Sleep(100 * time.Millisecond)
	if diff := cmp.Diff([]string{"/sys/dir", "/sys/line"}, tape.Finish()); diff != "" {
		t.Errorf("late (-want +got):\n%s", diff)
	}
	want := text(t, tape)
	close(s.end) // what comes now is too late
	for range 2 {
		<-late
	}
	const said = "/sys/dir/ !no-answer\n/sys/line\n!no-answer\nend\n"
	if got := text(t, tape); got != want || !strings.HasSuffix(got, said) {
		t.Errorf("%s\nwant at its end\n%s", got, said)
	}
	start := time.Now()
	read := reread(t, tape)
	answers := ask(read.FS(""))
	time.Sleep(100 * time.Millisecond)
	if file, err := read.FS("").Open("sys/line"); err != nil || time.Since(start) > patience-time.Second {
		t.Fatalf("opening what another reader waits for: %v after %v", err, time.Since(start))
	} else if err := file.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-answers:
		t.Errorf("an answer: %v", err)
	case <-time.After(patience - time.Second):
	}
	for range 2 {
		if err := <-answers; !errors.Is(err, ErrNoAnswer) || host.Absent(err) {
			t.Errorf("%v, want %v", err, ErrNoAnswer)
		}
	}
	if took := time.Since(start); took > patience+2*time.Second {
		t.Errorf("ended after %v", took)
	}
}
