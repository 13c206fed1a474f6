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

// Where there is no writing beside the directory, the directory itself has to do.
func TestNotBeside(t *testing.T) {
	parent := t.TempDir()
	open, err := os.Open(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	// Nobody, not even root, makes files in /proc/self/fd.
	p := at(t, parent, fmt.Sprintf("/proc/self/fd/%d", open.Fd()))
	if beside, err := os.CreateTemp(p.beside(), ""); err == nil {
		t.Fatalf("wrote %s", beside.Name())
	}
	p.must(true, ready())
	p.shows(text)
	p.must(true, hardware(ready()))
	p.must(true, nil)
	p.absent()
}

// So it is where beside is another file system, as in a pod that has the
// directory alone mounted.
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
	p.shows(text)
	p.must(true, nil)
	p.absent()
}

// A relative directory, a trailing slash, a dot: all are directories.
func TestNames(t *testing.T) {
	for _, dir := range []string{"features.d", "features.d/", "./a/../features.d", "."} {
		t.Run(dir, func(t *testing.T) {
			parent := t.TempDir()
			t.Chdir(parent)
			p := at(t, parent, dir)
			p.must(true, ready())
			p.shows(text)
		})
	}
}

// A directory that is gone comes back with the next look.
func TestDirectoryVanishes(t *testing.T) {
	p := newPlace(t)
	p.must(true, ready())
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	p.touch()
	p.must(true, ready())
	p.shows(text)
}

// No place at all is an error for as long as it is so.
func TestNoPlace(t *testing.T) {
	p := newPlace(t)
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
	if p.stop != nil {
		t.Error("touches what it has not written")
	}
	if err := os.Remove(p.dir); err != nil {
		t.Fatal(err)
	}
	p.must(true, ready())
	p.shows(text)
}

// On a full disk the old file stays, whole, and nothing is left of the new one.
// A process that may not write files of any size has a full disk.
func TestFull(t *testing.T) {
	p := newPlace(t)
	p.must(true, ready())
	out, err := helper(t, "full", p.dir).CombinedOutput()
	if want := "file too large"; err == nil || !strings.Contains(string(out), want) {
		t.Fatalf("error %v, says %q, want %q", err, out, want)
	}
	p.shows(text)
}

// What killed agents have left is removed, when it is no longer young, and
// nothing else is.
func TestSweep(t *testing.T) {
	p := newPlace(t)
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
	leave(p.parent, staged+"1", time.Hour)
	leave(p.dir, staged+"2", 61*time.Second)
	young := leave(p.parent, staged+"3", 59*time.Second)
	future := leave(p.dir, staged+"4", -time.Hour)
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
