package featurefile

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gdr-features/internal/label"
	"gdr-features/internal/publish"
)

// kills is how often TestKilled kills; `hack/check.sh faults` has it do so a thousand times.
var kills = flag.Int("kills", 40, "how many writers are killed")

// helperDoes is the environment variable that makes this program a helper.
const helperDoes = "GDR_FEATURES_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperDoes) {
	case "":
		os.Exit(m.Run())
	case "full":
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{}); err != nil {
			panic(err)
		}
	}
	write()
}

// helper runs this program to write into a directory, features.d.
func helper(t *testing.T, does, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self)
	c.Dir, c.Env = filepath.Dir(dir), append(os.Environ(), helperDoes+"="+does)
	return c
}

// write writes one file after the other, until it fails.
func write() {
	p := New("features.d", func() time.Time { return noon })
	for i := 0; ; i++ {
		if _, err := p.Publish(context.Background(), publish.Content{Labels: versions[i%2], Seen: noon}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// versions are two sets of labels whose files have different lengths.
var versions = []label.Set{hardware(ready()), ready()}

// whole reports whether a text is one of the two.
func whole(text []byte) bool {
	for _, labels := range versions {
		if string(text) == format(publish.Content{Labels: labels}, expiry) {
			return true
		}
	}
	return false
}

// memory makes a directory that is cheap to write to.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "gdr-features-test-") //nolint:usetesting // a disk would be slow
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// A reader sees a whole file each time while it is written a thousand times, and no other
// file in the directory.
func TestWhole(t *testing.T) {
	parent := memory(t)
	p := at(t, parent, filepath.Join(parent, "features.d"))
	p.must(true, versions[1])
	done := make(chan struct{})
	read := make(chan int)
	go func() {
		seen := map[string]bool{}
		n := 0
		for {
			select {
			case <-done:
				if len(seen) != 2 {
					t.Errorf("saw %d versions in %d readings", len(seen), n)
				}
				read <- n
				return
			default:
			}
			entries, err := os.ReadDir(p.dir)
			if err != nil || len(entries) != 1 {
				t.Errorf("%d files in the directory, error %v", len(entries), err)
			}
			text, err := os.ReadFile(filepath.Join(p.dir, Name))
			if err != nil || !whole(text) {
				t.Errorf("error %v, read:\n%s", err, text)
			}
			seen[string(text)] = true
			n++
		}
	}()
	for i := range 1000 {
		p.must(true, versions[i%2])
	}
	close(done)
	t.Logf("read %d times", <-read)
	p.wantFile(text)
}

// A writer that is killed leaves the old file or the new one; the next one removes what
// else it leaves.
func TestKilled(t *testing.T) {
	parent := memory(t)
	p := at(t, parent, filepath.Join(parent, "features.d"))
	p.must(true, versions[1])
	for range *kills {
		c := helper(t, "write", p.dir)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5*time.Millisecond + rand.N(30*time.Millisecond))
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the writer ended by itself: %v", err)
		}
		text, err := os.ReadFile(filepath.Join(p.dir, Name))
		if err != nil || !whole(text) {
			t.Fatalf("error %v, left behind:\n%s", err, text)
		}
	}
	t.Logf("%d writers killed; temporary files left: %d", *kills, len(p.left()))
	later := at(t, parent, p.dir)
	later.clock = time.Now().Add(time.Hour)
	later.must(true, versions[1])
	later.wantClean()
}
