package snapshot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gdr-features/host"
)

// oddTree holds one of everything that can be in the place of a file.
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

// questions is everything that can be asked of a tree, and what it says.
func questions(tree *host.FS) map[string]string {
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
				say(fmt.Sprint("ReadAt ", name, at), string(buf[:n]), err)
			}
			_ = file.Close()
		}
		dir, err := tree.Open(name + "/")
		say("Open "+name+"/", "", err)
		if err == nil {
			_ = dir.Close()
		}
	}
	return said
}

// TestReplay: the machine, the recorder, and the recording that is read back all
// give the same answers.
func TestReplay(t *testing.T) {
	tree := oddTree(t)
	want := questions(tree)
	recorder := Record(tree)
	for _, again := range []string{"", ", again"} {
		if diff := cmp.Diff(want, questions(recorder.FS(""))); diff != "" {
			t.Errorf("while recording%s (-machine +recorder):\n%s", again, diff)
		}
	}
	recording, late := recorder.Finish()
	if late != nil {
		t.Errorf("no answer from %q", late)
	}
	if diff := cmp.Diff(want, questions(recording.FS(""))); diff != "" {
		t.Errorf("(-machine +recording):\n%s", diff)
	}
	read := parse(t, written(t, recording))
	if diff := cmp.Diff(want, questions(read.FS(""))); diff != "" {
		t.Errorf("read back (-machine +recording):\n%s", diff)
	}
	// A snapshot of a snapshot is the same snapshot.
	second := Record(read.FS(""))
	_ = questions(second.FS(""))
	again, _ := second.Finish()
	if diff := cmp.Diff(written(t, read), written(t, again)); diff != "" {
		t.Errorf("recorded again (-first +second):\n%s", diff)
	}
}

func written(t *testing.T, r *Recording) string {
	t.Helper()
	text, err := r.Text()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func parse(t *testing.T, text string) *Recording {
	t.Helper()
	r, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Readers that go further than others add to what is known, and what was read once
// is not read again.
func TestReadFurther(t *testing.T) {
	tree := oddTree(t)
	recorder := Record(tree)
	limits := []int{7000, 4000, 20000}
	compare := func(which string, fs *host.FS) {
		for _, limit := range limits {
			want, wantErr := strings.Repeat("x", min(limit, 10000)), limit < 10000
			if got, err := fs.Bytes("sys/large", limit); string(got) != want || (err != nil) != wantErr {
				t.Errorf("%s, up to %d: %d bytes, %v", which, limit, len(got), err)
			}
		}
	}
	compare("first", recorder.FS(""))
	if err := os.WriteFile(filepath.Join(tree.Root(), "sys/large"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	compare("after a change", recorder.FS(""))
	recording, _ := recorder.Finish()
	compare("from the recording", parse(t, written(t, recording)).FS(""))
}

// What was not asked is not the same as what was missing.
func TestNotRecorded(t *testing.T) {
	tree := parse(t, begin+`{"list":"/sys/class","names":["net"]}
{"read":"/sys/gone","error":"ENOENT"}
{"read":"/sys/secret","error":"EACCES"}
{"list":"/sys/secret","error":"EACCES"}
{"exists":"/sys/secret","error":"EACCES"}
{"link":"/sys/secret/below","error":"EACCES"}
{"read":"/sys/part","text":"begin","stop":"more"}
{"list":"/sys/bus/x","names":["a"],"stop":"EIO"}
{"end":true}
`).FS("snapshot")
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
		{"directory not listed, to be opened", of(tree.Open("sys/devices/")), ErrNotRecorded},
		{"directory listed, to be opened", of(tree.Open("sys/class/")), nil},
		{"directory may not be opened", of(tree.Open("sys/secret/")), fs.ErrPermission},
		{"below a directory not listed", of(tree.Line("sys/devices/a")), ErrNotRecorded},
		{"below one listed in part", of(tree.Line("sys/bus/x/b")), ErrNotRecorded},
		{"read in part", of(tree.Bytes("sys/part", 100)), ErrNotRecorded},
	} {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, tt.err, tt.want)
		}
	}
	file, err := tree.Open("sys/part")
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 5)
	if n, err := file.ReadAt(buf, 0); string(buf[:n]) != "begin" || err != nil {
		t.Errorf("the part that was read: %q, %v", buf[:n], err)
	}
}

// What Parse would refuse is not written.
func TestNotWritten(t *testing.T) {
	names := make([]string, maxNames+1)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	recording := &Recording{answers: map[question]*answer{{name: "sys", kind: list}: {names: names}}}
	if _, err := recording.Text(); err == nil || !strings.Contains(err.Error(), "more than a machine has") {
		t.Errorf("%v", err)
	}
}

// hung is a machine of which some files never answer.
type hung struct {
	host.Source
	hangs []string      // "read sys/line", "list sys/dir"
	end   chan struct{} // closed when they answer all the same
	asked atomic.Int32  // how often they were asked
}

func (s *hung) ask(question string) {
	if slices.Contains(s.hangs, question) {
		s.asked.Add(1)
		<-s.end
	}
}

func (s *hung) Open(name string) (host.File, error) {
	file, err := s.Source.Open(name)
	return sickFile{file, s, name}, err
}

func (s *hung) Names(name string) ([]string, error) {
	s.ask("list " + name)
	return s.Source.Names(name)
}

type sickFile struct {
	host.File
	s    *hung
	name string
}

func (f sickFile) Read(buf []byte) (int, error) {
	f.s.ask("read " + f.name)
	return f.File.Read(buf)
}

func (f sickFile) ReadAt(buf []byte, offset int64) (int, error) {
	f.s.ask("read " + f.name)
	return f.File.ReadAt(buf, offset)
}

// readAndList asks both that hang, in the background.
func readAndList(tree *host.FS) chan error {
	answers := make(chan error, 2)
	go func() { _, err := tree.Line("sys/line"); answers <- err }()
	go func() { _, err := tree.Names("sys/dir"); answers <- err }()
	return answers
}

// What gave no answer gives none in the snapshot, but only for a limited time. A
// machine that does not answer is asked once, and can be asked something else
// meanwhile.
func TestNoAnswer(t *testing.T) {
	machine := oddTree(t)
	synctest.Test(t, func(t *testing.T) {
		s := &hung{Source: machine, end: make(chan struct{}), hangs: []string{"read sys/line", "list sys/dir"}}
		recorder := Record(s)
		tree := recorder.FS("")
		late := readAndList(tree)
		synctest.Wait()
		later := readAndList(tree)
		synctest.Wait()
		if n := s.asked.Load(); n != 2 {
			t.Errorf("asked %d times, want 2", n)
		}
		if line, err := tree.Line("sys/dir/inner"); line != "inner" || err != nil {
			t.Errorf("meanwhile: %q, %v", line, err)
		}
		recording, names := recorder.Finish()
		if diff := cmp.Diff([]string{"/sys/dir", "/sys/line"}, names); diff != "" {
			t.Errorf("late (-want +got):\n%s", diff)
		}
		want := written(t, recording)
		close(s.end) // what comes now is too late
		for range 2 {
			<-late
			<-later
		}
		const said = `{"list":"/sys/dir","error":"no-answer"}
{"read":"/sys/dir/inner","text":"inner\n"}
{"read":"/sys/line","error":"no-answer"}
{"end":true}
`
		if got := written(t, recording); got != want || !strings.HasSuffix(got, said) {
			t.Errorf("%s\nwant at its end\n%s", got, said)
		}
		start := time.Now()
		read := parse(t, want).FS("")
		answers := readAndList(read)
		for range 2 {
			if err := <-answers; !errors.Is(err, ErrNoAnswer) || host.Absent(err) {
				t.Errorf("%v, want %v", err, ErrNoAnswer)
			}
		}
		if took := time.Since(start); took != answerTimeout {
			t.Errorf("ended after %v", took)
		}
	})
}

// TestReaderLeftBehind: a recording that ends while a reader still has its file open
// knows where the file ends.
func TestReaderLeftBehind(t *testing.T) {
	recorder := Record(oddTree(t))
	file, err := recorder.Open("sys/line")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := file.ReadAt(make([]byte, 256), 0); n != len("value\n") || !errors.Is(err, io.EOF) {
		t.Fatalf("%d bytes, %v", n, err)
	}
	recording, _ := recorder.Finish()
	if got := written(t, recording); !strings.Contains(got, `{"read":"/sys/line","text":"value\n"}`) {
		t.Error(got)
	}
	_ = file.Close()
}

// TestScrubBesideReader: data that a reader left behind may still hold is not
// overwritten; the race detector checks that.
func TestScrubBesideReader(t *testing.T) {
	recorder := Record(oddTree(t))
	tree, done := recorder.FS(""), make(chan struct{})
	if names, err := tree.Names("sys"); len(names) == 0 || err != nil {
		t.Fatal(names, err)
	}
	recording, _ := recorder.Finish()
	go func() {
		defer close(done)
		for range 1000 {
			_, _ = tree.Names("sys")
			_, _ = tree.Bytes("sys/large", 20000)
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
			recording.Scrub()
			recording, _ = recorder.Finish()
		}
	}
}
