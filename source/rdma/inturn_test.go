package rdma

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/source"
)

// A device that does not answer costs its own answer only, and those that are
// merely slow are not asked at once. The clock is synctest's: nothing waits.
func TestInTurn(t *testing.T) {
	const (
		stuck   = time.Hour
		timeout = 10 * time.Second
		ms      = time.Millisecond
	)
	tests := []struct {
		name    string
		delays  []time.Duration // until each device answers
		want    []bool          // which have answered
		took    time.Duration   // at the most
		readers int32           // at once, at the most
	}{
		{"all answer at once", make([]time.Duration, 5), []bool{true, true, true, true, true}, 0, 1},
		{"all are slow", []time.Duration{200 * ms, 200 * ms, 200 * ms, 200 * ms}, []bool{true, true, true, true}, 800 * ms, 1},
		{"one is stuck", []time.Duration{0, stuck, 0, 0}, []bool{true, false, true, true}, timeout, 2},
		{"the first is stuck", []time.Duration{stuck, 0, 0}, []bool{false, true, true}, timeout, 2},
		{"the last is stuck", []time.Duration{0, 0, stuck}, []bool{true, true, false}, timeout, 1},
		{"one takes long", []time.Duration{0, 2 * time.Second, 0}, []bool{true, true, true}, 2 * time.Second, 2},
		{"two are stuck", []time.Duration{stuck, 0, stuck, 0}, []bool{false, true, false, true}, timeout, 3},
		{"all are stuck", []time.Duration{stuck, stuck, stuck}, []bool{false, false, false}, timeout, 3},
		{"one takes as long as there is time", []time.Duration{timeout - ms, 0}, []bool{true, true}, timeout - ms, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				var reading, most atomic.Int32
				read := func(i int) answer {
					most.Store(max(most.Load(), reading.Add(1)))
					defer reading.Add(-1)
					time.Sleep(tt.delays[i])
					return answer{ports: []Port{{Number: i}}}
				}
				start := time.Now()
				answers := inTurn(ctx, len(tt.delays), read)
				if took := time.Since(start); took > tt.took {
					t.Errorf("took %v, want %v at the most", took, tt.took)
				}
				var got []bool
				for i, a := range answers {
					got = append(got, a != nil)
					if a != nil && a.ports[0].Number != i {
						t.Errorf("device %d has the answer of %d", i, a.ports[0].Number)
					}
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("answered (-want +got):\n%s", diff)
				}
				if n := most.Load(); n > tt.readers {
					t.Errorf("%d readers at once, want %d", n, tt.readers)
				}
				time.Sleep(2 * stuck) // for the readers that were left behind
			})
		})
	}
}

// A device that an earlier scan is still stuck in is not touched again.
func TestStuck(t *testing.T) {
	var s Scanner
	fs, err := host.Open(host.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if a := s.ports(fs, target{dir: "dev"}, source.What{}); a.err == nil || errors.Is(a.err, errStuck) {
		t.Errorf("before: %v", a.err)
	}
	s.stuck.Store("dev", true)
	if a := s.ports(fs, target{dir: "dev"}, source.What{}); !errors.Is(a.err, errStuck) {
		t.Errorf("stuck: %v", a.err)
	}
	s.stuck.Delete("dev")
	if a := s.ports(fs, target{dir: "dev"}, source.What{}); a.err == nil || errors.Is(a.err, errStuck) {
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
