package rdma

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"gdr-features/host"
	"gdr-features/source"
)

// A device that an earlier scan is still stuck in is not touched again.
func TestStuck(t *testing.T) {
	var s Scanner
	fs, err := host.Open(host.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if a := s.ports(fs, "dev", "", source.What{}); a.err == nil || errors.Is(a.err, errStuck) {
		t.Errorf("before: %v", a.err)
	}
	s.stuck.Store("dev", true)
	if a := s.ports(fs, "dev", "", source.What{}); !errors.Is(a.err, errStuck) {
		t.Errorf("stuck: %v", a.err)
	}
	s.stuck.Delete("dev")
	if a := s.ports(fs, "dev", "", source.What{}); a.err == nil || errors.Is(a.err, errStuck) {
		t.Errorf("afterwards: %v", a.err)
	}
}

// A device that does not answer does not hide that the port of another one moves.
func TestMovedBesideStuck(t *testing.T) {
	dir := t.TempDir()
	var inv Inventory
	for _, name := range []string{"a", "b"} {
		port := filepath.Join(dir, "sys", name, "ports/1")
		if err := os.MkdirAll(port, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(port, "state"), []byte("1: DOWN\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		inv.Devices = append(inv.Devices, Device{Name: name, dir: "sys/" + name, PortsRead: true, Ports: []Port{{Number: 1, State: "ACTIVE"}}})
	}
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	var s Scanner
	for _, stuck := range []string{"a", "b"} {
		s.stuck.Store("sys/"+stuck, true)
		if !s.Moved(fs, &inv) {
			t.Errorf("%s is stuck: the other one was not looked at", stuck)
		}
		if stuck == "a" {
			s.stuck.Delete("sys/a")
		}
	}
	s.stuck.Store("sys/a", true)
	if s.Moved(fs, &inv) {
		t.Error("both are stuck, and something moved")
	}
}
