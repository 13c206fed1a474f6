package featurefile

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/label"
	"gdr-features/internal/publish"
)

// testPublisher is a publisher with a directory and a clock.
type testPublisher struct {
	*testing.T
	parent, dir string
	clock       time.Time
	*Publisher
}

// newPublisher makes a publisher whose directory is not there yet.
func newPublisher(t *testing.T) *testPublisher {
	t.Helper()
	parent := t.TempDir()
	return at(t, parent, filepath.Join(parent, "features.d"))
}

func at(t *testing.T, parent, dir string) *testPublisher {
	t.Helper()
	p := &testPublisher{T: t, parent: parent, dir: dir, clock: noon}
	p.Publisher = New(dir, func() time.Time { return p.clock })
	t.Cleanup(func() {
		if p.stopTouching != nil {
			close(p.stopTouching)
			<-p.touched
		}
	})
	return p
}

// publish publishes labels that were read now.
func (p *testPublisher) publish(labels label.Set) (wrote bool, err error) {
	return p.Publish(p.Context(), publish.Content{Labels: labels, Seen: p.clock})
}

// must publishes, and checks whether that wrote the file.
func (p *testPublisher) must(write bool, labels label.Set) {
	p.Helper()
	if wrote, err := p.publish(labels); wrote != write || err != nil {
		p.Errorf("wrote %v, want %v; error %v", wrote, write, err)
	}
}

// wantFile checks the file and that nothing else was left.
func (p *testPublisher) wantFile(want string) {
	p.Helper()
	file := filepath.Join(p.dir, Name)
	got, err := os.ReadFile(file)
	if err != nil {
		p.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		p.Errorf("the file (-want +got):\n%s", diff)
	}
	if info, err := os.Lstat(file); err != nil || info.Mode() != fileMode {
		p.Errorf("mode %v, error %v", info.Mode(), err)
	}
	p.wantClean()
}

// left lists temporary files.
func (p *testPublisher) left() (names []string) {
	p.Helper()
	for _, dir := range []string{p.parent, p.dir} {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			p.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				names = append(names, filepath.Join(dir, e.Name()))
			}
		}
	}
	return names
}

func (p *testPublisher) wantClean() {
	p.Helper()
	if left := p.left(); len(left) > 0 {
		p.Errorf("left behind: %v", left)
	}
}

func (p *testPublisher) put(text string) {
	p.Helper()
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, Name), []byte(text), 0o644); err != nil {
		p.Fatal(err)
	}
}

// wantAbsent checks that there is no file.
func (p *testPublisher) wantAbsent() {
	p.Helper()
	if _, err := os.Lstat(filepath.Join(p.dir, Name)); !os.IsNotExist(err) {
		p.Errorf("there is a file, error %v", err)
	}
	p.wantClean()
}

// A file is written when labels have changed and when half the lifetime of state labels is
// over, and not otherwise.
func TestPublish(t *testing.T) {
	p := newPublisher(t)
	notReady := ready()
	notReady[label.Ready], notReady[label.Reason] = "false", "NoActivePort"
	at := func(minutes float64) time.Time { return noon.Add(time.Duration(minutes * float64(time.Minute))) }
	tests := []struct {
		now    float64 // minutes after noon
		labels label.Set
		wrote  bool
		expiry float64
	}{
		{0, ready(), true, 60},
		{0, ready(), false, 60},
		{29.9, ready(), false, 60},
		{30, ready(), true, 90},
		{59.9, ready(), false, 90},
		{59.9, notReady, true, 119.9},
		{60, notReady, false, 119.9},
		{60, ready(), true, 120},
		{300, ready(), true, 360},     // after sleep
		{299, ready(), true, 359},     // the clock was set back
		{-9000, ready(), true, -8940}, // a lot
		{0, ready(), true, 60},
		{0, hardware(ready()), true, 60},
		{100000, hardware(ready()), false, 60},
		{100000, ready(), true, 100060},
	}
	for i, test := range tests {
		p.clock = at(test.now)
		if wrote, err := p.publish(test.labels); wrote != test.wrote || err != nil {
			t.Errorf("%d: wrote %v, error %v", i, wrote, err)
		}
		p.wantFile(format(publish.Content{Labels: test.labels}, at(test.expiry)))
	}
	p.must(true, nil)
	p.wantAbsent()
	p.must(false, nil)
}

// A node without labels gets neither file nor directory.
func TestNothing(t *testing.T) {
	p := newPublisher(t)
	p.must(false, nil)
	if last, err := p.Last(t.Context()); len(last.Labels) > 0 || err != nil {
		t.Errorf("last %v, error %v", last, err)
	}
	if err := p.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.dir); !os.IsNotExist(err) {
		t.Errorf("directory: %v", err)
	}
}

func TestLast(t *testing.T) {
	p := newPublisher(t)
	p.must(true, ready())
	for _, test := range []struct {
		now  time.Time
		want label.Set
	}{{noon, ready()}, {expiry, hardware(ready())}} {
		p.clock = test.now
		got, err := p.Last(t.Context())
		if diff := cmp.Diff(test.want, got.Labels); diff != "" || err != nil {
			t.Errorf("error %v (-want +got):\n%s", err, diff)
		}
	}
	if err := p.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	p.wantAbsent()
}

// Any change of the file by others is reverted.
func TestEdited(t *testing.T) {
	for name, edited := range map[string]string{
		"empty":      "",
		"half":       text[:len(text)/2],
		"value":      strings.Replace(text, "PIX", "SYS", 1),
		"more":       text + "feature.node.kubernetes.io/other=1\n",
		"less":       strings.Replace(text, "feature.node.kubernetes.io/gdr.gpus=8\n", "", 1),
		"comment":    "# mine\n" + text,
		"lasting":    strings.Replace(text, "# +expiry-time=2026-11-21T13:00:00Z\n", "", 1),
		"no expiry":  strings.Replace(text, "2026-11-21T13:00:00Z", "0001-01-01T00:00:00Z", 1),
		"for ever":   strings.Replace(text, "2026", "2999", 1),
		"expired":    strings.Replace(text, "2026", "2016", 1),
		"elsewhere":  strings.Replace(text, "13:00:00Z", "14:00:00+01:00", 1),
		"lines":      strings.ReplaceAll(text, "\n", "\r\n"),
		"huge":       text + strings.Repeat("#", 8<<20),
		"not a text": "\x00\xff\xfe",
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublisher(t)
			p.put(edited)
			p.must(true, ready())
			p.wantFile(text)
			p.must(false, ready())
		})
	}
}

// Something else in place of the file counts as nothing published, and is removed by the
// next publication; the target of a symlink stays as it is.
func TestInItsPlace(t *testing.T) {
	for name, make := range map[string]func(p *testPublisher, path string) error{
		"pipe":       func(_ *testPublisher, path string) error { return syscall.Mkfifo(path, 0o600) },
		"lost link":  func(_ *testPublisher, path string) error { return os.Symlink("nowhere", path) },
		"loop":       func(_ *testPublisher, path string) error { return os.Symlink(Name, path) },
		"empty file": func(_ *testPublisher, path string) error { return os.WriteFile(path, nil, 0o600) },
		"link":       func(p *testPublisher, path string) error { return os.Symlink(filepath.Join(p.parent, "theirs"), path) },
		"directory":  func(_ *testPublisher, path string) error { return os.Mkdir(path, 0o700) },
		"socket": func(p *testPublisher, _ string) error {
			p.Chdir(p.dir) // a socket's path must be short
			s, err := net.ListenUnix("unix", &net.UnixAddr{Name: Name, Net: "unix"})
			if err == nil {
				s.SetUnlinkOnClose(false)
				err = s.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublisher(t)
			theirs := filepath.Join(p.parent, "theirs")
			if err := os.WriteFile(theirs, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, labels := range []label.Set{nil, ready()} {
				if err := os.RemoveAll(p.dir); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(p.dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := make(p, filepath.Join(p.dir, Name)); err != nil {
					t.Fatal(err)
				}
				p.touch()
				if last, err := p.Last(t.Context()); len(last.Labels) > 0 || err != nil {
					t.Errorf("last %v, error %v", last, err)
				}
				if labels != nil && name == "directory" {
					if wrote, err := p.publish(labels); wrote || err == nil {
						t.Errorf("wrote %v, error %v", wrote, err)
					}
					p.wantClean()
					continue
				}
				p.must(true, labels)
				if labels == nil {
					p.wantAbsent()
				} else {
					p.wantFile(text)
				}
			}
			if got, err := os.ReadFile(theirs); err != nil || string(got) != text {
				t.Errorf("the target of the link was changed, error %v", err)
			}
			if info, err := os.Stat(theirs); err != nil || info.Mode() != 0o600 {
				t.Errorf("mode of the target of the link: %v, error %v", info.Mode(), err)
			}
		})
	}
}

// The file can be read by a worker that is not root, whatever the umask.
func TestUmask(t *testing.T) {
	p := newPublisher(t)
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0o077))
	p.must(true, ready())
	p.wantFile(text)
}
