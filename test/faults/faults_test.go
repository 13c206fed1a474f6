//go:build faults

// Package faults tests the node agent with a disk that fails and recovers. It needs root,
// to mount a small file system; `hack/check.sh faults` runs it.
package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gdr-features/test/machine"
)

// noticeTimeout is how long the agent may take to notice something.
const noticeTimeout = 10 * time.Second

// testAgent is an agent with the small file system that it writes its feature file to.
type testAgent struct {
	*testing.T
	disk, tree, address string
	log                 string
	process             *exec.Cmd
}

func newPlace(t *testing.T) *testAgent {
	t.Helper()
	p := &testAgent{T: t, disk: t.TempDir(), log: filepath.Join(t.TempDir(), "log")}
	if err := syscall.Mount("tmpfs", p.disk, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("mounting a small file system, which only root may: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(p.disk, syscall.MNT_DETACH) })
	m, err := machine.Load("../../testdata/machines/dell-xe9680-h100.txt")
	if err != nil {
		t.Fatal(err)
	}
	state, ok := machine.StateNamed("ready")
	if !ok {
		t.Fatal("no state ready")
	}
	p.tree = m.Tree(t, state)
	p.start()
	return p
}

// start starts the agent and waits until it has published.
func (p *testAgent) start() {
	p.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.Fatal(err)
	}
	p.address = free.Addr().String()
	_ = free.Close()
	log, err := os.Create(p.log)
	if err != nil {
		p.Fatal(err)
	}
	defer log.Close()
	p.process = exec.CommandContext(context.WithoutCancel(p.Context()), "../../bin/gdr-features", "run", "--publish=file", "--features-dir="+p.dir(),
		"--interval=200ms", "--settle=0s", "--listen="+p.address, "--root="+p.tree)
	p.process.Stderr = log
	if err := p.process.Start(); err != nil {
		p.Fatalf("%v; make build builds it", err)
	}
	p.Cleanup(func() {
		_ = p.process.Process.Signal(syscall.SIGTERM)
		if err := p.process.Wait(); err != nil {
			p.Errorf("the agent ended with %v", err)
		}
	})
	p.until("the first publication", func() bool { return p.file() != "" })
}

func (p *testAgent) dir() string { return filepath.Join(p.disk, "nfd", "features.d") }

// file returns the text of the feature file; "" for none.
func (p *testAgent) file() string {
	text, err := os.ReadFile(filepath.Join(p.dir(), "gdr-features.features"))
	if err != nil {
		return ""
	}
	return string(text)
}

// change loads or unloads nvidia-fs on the machine.
func (p *testAgent) change(loaded bool) (label string) {
	p.Helper()
	module := filepath.Join(p.tree, "sys/module/nvidia_fs")
	err := os.RemoveAll(module)
	if loaded {
		if err = os.MkdirAll(module, 0o755); err == nil {
			err = os.WriteFile(filepath.Join(module, "initstate"), []byte("live\n"), 0o644)
		}
	}
	if err != nil {
		p.Fatal(err)
	}
	return fmt.Sprintf("gpudirect.storage=%v\n", loaded)
}

func (p *testAgent) until(what string, is func() bool) {
	p.Helper()
	for end := time.Now().Add(noticeTimeout); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(p.log)
			p.Fatalf("no %s in %v\n%s", what, noticeTimeout, log)
		}
	}
}

// metric returns the value of a metric as it is printed.
func (p *testAgent) metric(name string) string {
	p.Helper()
	answer, err := http.Get("http://" + p.address + "/metrics") //nolint:noctx // a test
	if err != nil {
		p.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// said counts the lines of the log that contain a text.
func (p *testAgent) said(text string) int {
	log, err := os.ReadFile(p.log)
	if err != nil {
		p.Fatal(err)
	}
	return bytes.Count(log, []byte(text))
}

// A full disk, a read-only one and a directory that vanishes: what is published stays whole,
// the failure is logged once and counted, and afterwards the agent recovers by itself. Its
// memory does not grow.
func TestFaults(t *testing.T) {
	p := newPlace(t)
	const failed = `gdr_publish_total{publisher="file",result="failed"}`
	filler := filepath.Join(p.disk, "filler")
	faults := []struct {
		name     string
		begin    func() error
		end      func() error
		vanishes bool // the file is gone meanwhile
	}{
		{"full disk", func() error {
			f, err := os.Create(filler)
			if err != nil {
				return err
			}
			defer f.Close()
			for err == nil {
				_, err = f.Write(make([]byte, 512))
			}
			return nil
		}, func() error { return os.Remove(filler) }, false},
		{"read-only disk", func() error {
			return syscall.Mount("", p.disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
		}, func() error {
			return syscall.Mount("", p.disk, "", syscall.MS_REMOUNT, "size=64k")
		}, false},
		{"a file in place of the directory", func() error {
			if err := os.RemoveAll(filepath.Dir(p.dir())); err != nil {
				return err
			}
			return os.WriteFile(filepath.Dir(p.dir()), nil, 0o644)
		}, func() error { return os.Remove(filepath.Dir(p.dir())) }, true},
	}
	grew := p.metric("go_goroutines")
	for i, fault := range faults {
		loaded := i%2 == 0
		before, count := p.file(), p.metric(failed)
		if err := fault.begin(); err != nil {
			t.Fatalf("%s: %v", fault.name, err)
		}
		want := p.change(loaded)
		p.until("failure counted: "+fault.name, func() bool { return p.metric(failed) != count })
		time.Sleep(3 * time.Second)
		if now := p.file(); now != before && !fault.vanishes {
			t.Errorf("%s: the file has changed to\n%s", fault.name, now)
		}
		if n := p.said("publishing fails"); n != i+1 {
			t.Errorf("%s: failures were logged %d times, want %d", fault.name, n, i+1)
		}
		if err := fault.end(); err != nil {
			t.Fatalf("end of %s: %v", fault.name, err)
		}
		p.until("recovery from "+fault.name, func() bool { return strings.Contains(p.file(), want) })
		p.until("log of the recovery from "+fault.name, func() bool { return p.said("publishing works again") == i+1 })
	}
	if err := os.RemoveAll(p.dir()); err != nil {
		t.Fatal(err)
	}
	p.until("file after its directory vanished", func() bool { return p.file() != "" })
	t.Logf("goroutines %s before, %s after", grew, p.metric("go_goroutines"))
}

// Files of the machine whose reads hang never stop the main loop.
func TestSickMachine(t *testing.T) {
	p := newPlace(t)
	files, err := filepath.Glob(filepath.Join(p.tree, "sys/class/infiniband/*/ports/*/state"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	files = append(files, filepath.Join(p.tree, "sys/module/nvidia_peermem/initstate"), filepath.Join(p.tree, "proc/kallsyms"))
	before := p.file()
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := p.change(true) // which still shows
	p.until("change", func() bool { return strings.Contains(p.file(), want) })
	for line := range strings.Lines(before) {
		if !strings.Contains(line, "=") || strings.Contains(line, "gpudirect.storage") || strings.HasPrefix(line, "#") {
			continue
		}
		if !strings.Contains(p.file(), line) {
			t.Errorf("lost %s", line)
		}
	}
}
