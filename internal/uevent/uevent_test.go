package uevent_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"gdr-features/internal/uevent"
)

func TestParse(t *testing.T) {
	for message, want := range map[string]uevent.Event{
		"add@/module/nvidia_peermem\x00ACTION=add\x00DEVPATH=/module/nvidia_peermem\x00SUBSYSTEM=module\x00SEQNUM=1\x00": {Action: "add", Subsystem: "module", Path: "/module/nvidia_peermem"},
		"bind@/devices/pci0000:00/0000:00:01.0\x00ACTION=bind\x00SUBSYSTEM=pci\x00":                                      {Action: "bind", Subsystem: "pci", Path: "/devices/pci0000:00/0000:00:01.0"},
		"remove@/devices/pci0000:00/0000:00:01.0/infiniband/mlx5_0\x00SUBSYSTEM=infiniband\x00DEVPATH=/a@b":              {Action: "remove", Subsystem: "infiniband", Path: "/devices/pci0000:00/0000:00:01.0/infiniband/mlx5_0"},
	} {
		if e, ok := uevent.Parse([]byte(message)); !ok || e != want {
			t.Errorf("%q: got %v %v, want %v", message, e, ok, want)
		}
	}
	for _, message := range []string{"", "libudev\x00\xfe\xed\xca\xfe", "add", "@/x\x00SUBSYSTEM=pci", "add@/x\x00", "add@/x\x00NOSUBSYSTEM=pci\x00", "\x00\x00\x00"} {
		if e, ok := uevent.Parse([]byte(message)); ok {
			t.Errorf("%q: got %v, want none", message, e)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("add@/module/x\x00ACTION=add\x00SUBSYSTEM=module\x00"))
	f.Fuzz(func(t *testing.T, message []byte) {
		e, ok := uevent.Parse(message)
		if !ok {
			return
		}
		if e.Action == "" || e.Subsystem == "" || strings.ContainsRune(e.Action+e.Path+e.Subsystem, 0) {
			t.Errorf("%q: %v", message, e)
		}
	})
}

// Listening needs no privileges and ends with its context.
func TestListen(t *testing.T) {
	run, err := uevent.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, func(uevent.Event) {}) }()
	time.Sleep(20 * time.Millisecond)
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it goes on")
	}
}

// The kernel sends events that root triggers.
func TestRun(t *testing.T) {
	const made = "/sys/class/net/lo/uevent"
	run, err := uevent.Listen()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(made, []byte("change"), 0o644); err != nil {
		t.Skipf("only root of the first user namespace can make events up: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	want := uevent.Event{Action: "change", Subsystem: "net", Path: "/devices/virtual/net/lo"}
	heard := false
	if err := run(ctx, func(e uevent.Event) {
		if e == want {
			heard = true
			cancel()
		}
	}); err != nil {
		t.Error(err)
	}
	if !heard {
		t.Errorf("%v was not received", want)
	}
}
