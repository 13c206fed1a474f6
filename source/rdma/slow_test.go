package rdma

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
)

// slow is a machine whose ports take a while to give their state.
type slow struct {
	*host.FS
	delay   atomic.Int64 // of each state, in nanoseconds
	reading atomic.Int32 // states that are being read
}

// slowTree writes a description of a machine and opens it.
func slowTree(t *testing.T, text string, delay time.Duration) (*slow, *host.FS) {
	t.Helper()
	fs, err := host.Open(host.Options{Root: write(t, text)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	s := &slow{FS: fs}
	s.delay.Store(int64(delay))
	return s, host.New(s, "slow")
}

func (s *slow) Open(name string) (host.File, error) {
	if strings.HasSuffix(name, "/state") {
		s.reading.Add(1)
		defer s.reading.Add(-1)
		time.Sleep(time.Duration(s.delay.Load()))
	}
	return s.FS.Open(name)
}

// withNICs describes a machine with some NICs, an RDMA device each.
func withNICs(n int) string {
	var b strings.Builder
	b.WriteString("pci0000:15\n")
	for i := range n {
		fmt.Fprintf(&b, "  0000:15:%02x.0 ib 15b3:1021 rdma=mlx5_%d\n", i, i)
	}
	return b.String()
}

// scanOf scans with a time limit.
func scanOf(t *testing.T, s *Scanner, fs *host.FS, limit time.Duration) Inventory {
	t.Helper()
	functions, err := pci.Scan(fs, family.Known(), source.What{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return s.Scan(ctx, fs, &functions, source.What{})
}

// A reader that a scan leaves behind reads no further device: to the next scan only
// the one that it is reading is busy.
func TestReadersEndWithTheirScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const devices, each, limit = 20, 250 * time.Millisecond, 2100 * time.Millisecond
		machine, fs := slowTree(t, withNICs(devices), each)
		var s Scanner
		if inv := scanOf(t, &s, fs, limit); len(inv.Problems) != devices-int(limit/each) {
			t.Errorf("%d problems with %d devices that take %v each, in %v: %v", len(inv.Problems), devices, each, limit, inv.Problems)
		}
		time.Sleep(each)
		synctest.Wait()
		if n := machine.reading.Load(); n != 0 {
			t.Errorf("%d devices are being read after the scan", n)
		}
		machine.delay.Store(0)
		for _, err := range scanOf(t, &s, fs, limit).Problems {
			t.Errorf("the next scan: %v", err)
		}
		time.Sleep(devices * each)
	})
}

// A device that is slow to answer Moved is still read by Scan.
func TestScanBesideMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		machine, fs := slowTree(t, withNICs(2), 0)
		var s Scanner
		before := scanOf(t, &s, fs, time.Minute)
		machine.delay.Store(int64(1500 * time.Millisecond))
		go s.Moved(fs, &before)
		time.Sleep(time.Second)
		inv := scanOf(t, &s, fs, time.Minute)
		for _, d := range inv.Devices {
			if !d.PortsRead {
				t.Errorf("the ports of %s were not read: %v", d.Name, inv.Problems)
			}
		}
		time.Sleep(time.Minute)
	})
}

// While Scan waits for a device, Moved does not ask it as well.
func TestMovedBesideScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		machine, fs := slowTree(t, withNICs(1), 0)
		var s Scanner
		before := scanOf(t, &s, fs, time.Minute)
		machine.delay.Store(int64(time.Hour))
		scanOf(t, &s, fs, time.Second)
		for range 3 {
			if s.Moved(fs, &before) {
				t.Error("a port has moved")
			}
		}
		if n := machine.reading.Load(); n != 1 {
			t.Errorf("the device is being read %d times", n)
		}
		time.Sleep(2 * time.Hour)
	})
}
