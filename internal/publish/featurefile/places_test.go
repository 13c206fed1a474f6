package featurefile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Where the parent directory cannot be written, files are staged in the directory itself.
func TestParentNotWritable(t *testing.T) {
	parent := t.TempDir()
	open, err := os.Open(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	// Nobody, not even root, makes files in /proc/self/fd.
	p := at(t, parent, fmt.Sprintf("/proc/self/fd/%d", open.Fd()))
	if f, err := os.CreateTemp(p.stagingDir(), ""); err == nil {
		t.Fatalf("wrote %s", f.Name())
	}
	p.must(true, ready())
	p.wantFile(text)
	p.must(true, hardware(ready()))
	p.must(true, nil)
	p.wantAbsent()
}

// The same holds where the parent directory is another file system, as in a Pod in which
// only the directory is mounted.
func TestOtherFileSystem(t *testing.T) {
	parent := memory(t)
	elsewhere := t.TempDir()
	dir := filepath.Join(parent, "features.d")
	if err := os.Symlink(elsewhere, dir); err != nil {
		t.Fatal(err)
	}
	source, target := filepath.Join(parent, "a"), filepath.Join(dir, "a")
	if err := os.WriteFile(source, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Rename(source, target) == nil {
		t.Fatalf("/dev/shm and %s are one file system; set TMPDIR to another one", elsewhere)
	}
	if err := os.Remove(source); err != nil {
		t.Fatal(err)
	}
	p := at(t, parent, dir)
	p.must(true, ready())
	p.wantFile(text)
	p.must(true, nil)
	p.wantAbsent()
}

// A relative directory, a trailing slash, a dot: all are directories.
func TestNames(t *testing.T) {
	for _, dir := range []string{"features.d", "features.d/", "./a/../features.d", "."} {
		t.Run(dir, func(t *testing.T) {
			parent := t.TempDir()
			t.Chdir(parent)
			p := at(t, parent, dir)
			p.must(true, ready())
			p.wantFile(text)
		})
	}
}

// A directory that was removed is created again by the next publication.
func TestDirectoryVanishes(t *testing.T) {
	p := newPublisher(t)
	p.must(true, ready())
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	p.touch()
	p.must(true, ready())
	p.wantFile(text)
}

// A file in place of the directory is an error until it is removed.
func TestNoDirectory(t *testing.T) {
	p := newPublisher(t)
	if err := os.WriteFile(p.dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if wrote, err := p.publish(ready()); wrote || err == nil {
			t.Errorf("wrote %v, error %v", wrote, err)
		}
		if wrote, err := p.publish(nil); wrote || err == nil {
			t.Errorf("without labels: wrote %v, error %v", wrote, err)
		}
	}
	if _, err := p.Last(t.Context()); err == nil {
		t.Error("read back")
	}
	if p.stopTouching != nil {
		t.Error("touches a file that it has not written")
	}
	if err := os.Remove(p.dir); err != nil {
		t.Fatal(err)
	}
	p.must(true, ready())
	p.wantFile(text)
}

// On a full disk the old file stays whole, and nothing is left of the new one. A file
// size limit of zero stands for the full disk.
func TestFull(t *testing.T) {
	p := newPublisher(t)
	p.must(true, ready())
	out, err := helper(t, "full", p.dir).CombinedOutput()
	if want := "file too large"; err == nil || !strings.Contains(string(out), want) {
		t.Fatalf("error %v, says %q, want %q", err, out, want)
	}
	p.wantFile(text)
}

// Staged files of killed agents are removed once they are a minute old, and nothing else
// is.
func TestRemoveStaged(t *testing.T) {
	p := newPublisher(t)
	p.put("")
	leave := func(dir, name string, age time.Duration) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, noon.Add(-age)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	leave(p.parent, stagedPrefix+"1", time.Hour)
	leave(p.dir, stagedPrefix+"2", 61*time.Second)
	young := leave(p.parent, stagedPrefix+"3", 59*time.Second)
	future := leave(p.dir, stagedPrefix+"4", -time.Hour)
	others := []string{leave(p.parent, ".other", time.Hour), leave(p.dir, ".hidden.features", time.Hour)}
	check := func(when string, want ...string) {
		t.Helper()
		got := p.left()
		slices.Sort(got)
		want = append(want, others...)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v are left, want %v", when, got, want)
		}
	}
	p.must(true, ready())
	check("at first", young, future)
	p.clock = noon.Add(10 * time.Second)
	p.must(true, hardware(ready()))
	check("later", future)
	p.clock = noon.Add(2 * time.Hour)
	if err := p.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	check("in the end")
}
