package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"gdr-features/internal/report"
	"gdr-features/internal/uevent"
)

// Ten thousand events of the kernel, as fast as it sends them, are merged while the agent is
// busy; a single event after them is received too. They come from a network namespace of the
// test's own.
func TestStorm(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, for a network namespace")
	}
	sys := t.TempDir()
	send := make(chan int)
	sent, ready := make(chan error), make(chan error)
	var socket uevent.Run
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine, and its namespaces with it
		err := syscall.Unshare(syscall.CLONE_NEWNET | syscall.CLONE_NEWNS)
		if err == nil {
			err = syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, "")
		}
		if err == nil {
			err = syscall.Mount("sysfs", sys, "sysfs", 0, "")
		}
		if err == nil {
			socket, err = uevent.Listen()
		}
		ready <- err
		for n := range send {
			var err error
			for range n {
				if err = os.WriteFile(filepath.Join(sys, "class/net/lo/uevent"), []byte("add"), 0); err != nil {
					break
				}
			}
			sent <- err
		}
	}()
	t.Cleanup(func() { close(send) })
	if err := <-ready; err != nil {
		t.Skip("this machine allows no namespaces: ", err)
	}
	log, _ := logtest.NewNullLogger()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := events(ctx, log, func() (uevent.Run, error) { return socket, nil })
	receive := func(within time.Duration) (parts report.Parts) {
		select {
		case parts = <-got:
		case <-time.After(within):
		}
		return parts
	}

	send <- 10_000
	began := time.Now()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	t.Logf("10000 events in %v", time.Since(began).Round(time.Millisecond))
	received := 0
	for receive(time.Second) != 0 {
		received++
		time.Sleep(100 * time.Millisecond)
	}
	if received == 0 || received > 20 {
		t.Errorf("received %d times", received)
	}
	send <- 1
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if parts := receive(10 * time.Second); parts&report.RDMA == 0 {
		t.Errorf("the event after them: parts %b", parts)
	}
}
