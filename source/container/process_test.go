package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gdr-features/host"
	"gdr-features/tristate"
)

const (
	limits = "Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max cpu time              unlimited            unlimited            seconds   \n" +
		"Max locked memory         8388608              16777216             bytes     \n" +
		"Max address space         unlimited            unlimited            bytes     \n"
	status = "Name:\tgdr-features\nUid:\t1000\t1001\t1000\t1000\nCapPrm:\t0000000000000000\n" +
		"CapEff:\t0000000000200000\nCapBnd:\t00000000a80465fb\nCapAmb:\t0000000000000000\n"
	initial = "         0          0 4294967295\n"
)

// read reads a process whose files have these texts; "" for a file that is missing.
func read(t *testing.T, limits, status, uidMap string) Process {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "proc/self")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"limits": limits, "status": status, "uid_map": uidMap} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fs, err := host.Open(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	return readProcess(fs)
}

func TestProcess(t *testing.T) {
	caps := &Capabilities{Effective: 1 << CapSysAdmin, Bounding: 0xa80465fb}
	tests := []struct {
		name                   string
		limits, status, uidMap string
		want                   Process
		problems               int
	}{
		{"all", limits, status, initial, Process{&Limit{Bytes: 8 << 20}, caps, 1001, tristate.False, nil}, 0},
		{"its own users", limits, status, "0 100000 65536\n", Process{&Limit{Bytes: 8 << 20}, caps, 1001, tristate.True, nil}, 0},
		{"no user namespaces", limits, status, "", Process{&Limit{Bytes: 8 << 20}, caps, 1001, tristate.False, nil}, 0},
		{"nothing, as in a copy of a machine", "", "", "", Process{nil, nil, -1, tristate.Unknown, nil}, 3},
		{"garbage", "\x7fELF", "CapEff:\tx\n", "\n", Process{nil, nil, -1, tristate.Unknown, nil}, 3},
		{"its own users, of several ranges", limits, status, "0 1000 1\n1 100000 65536\n", Process{&Limit{Bytes: 8 << 20}, caps, 1001, tristate.True, nil}, 0},
		{"garbage in place of the map", limits, status, "0 0 many\n", Process{&Limit{Bytes: 8 << 20}, caps, 1001, tristate.Unknown, nil}, 1},
		{"half of a map", limits, status, "0 0\n", Process{&Limit{Bytes: 8 << 20}, caps, 1001, tristate.Unknown, nil}, 1},
		{"half of the sets", limits, "Uid:\t0\t0\t0\t0\nCapEff:\t0\n", initial, Process{&Limit{Bytes: 8 << 20}, nil, -1, tristate.False, nil}, 1},
		{"a negative user", limits, strings.Replace(status, "1001", "-5", 1), initial, Process{&Limit{Bytes: 8 << 20}, nil, -1, tristate.False, nil}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := read(t, tt.limits, tt.status, tt.uidMap)
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Process{}, "Problems")); diff != "" || len(got.Problems) != tt.problems {
				t.Errorf("problems %v, want %d; (-want +got):\n%s", got.Problems, tt.problems, diff)
			}
		})
	}
}

// TestSelf reads the process that runs this test: the kernel's own files are understood.
func TestSelf(t *testing.T) {
	fs, err := host.Open(host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	got := readProcess(fs)
	if got.Locked == nil || got.Capabilities == nil || got.User != os.Geteuid() || got.OwnUsers == tristate.Unknown || len(got.Problems) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestLockedMemory(t *testing.T) {
	tests := map[string]struct {
		want Limit
		ok   bool
	}{
		limits: {Limit{Bytes: 8 << 20}, true},
		"Max locked memory         unlimited            unlimited            bytes     \n": {Limit{Unlimited: true}, true},
		"Max locked memory         0                    0                    bytes\n":      {Limit{}, true},
		"": {}, "Max locked memory \n": {}, "Max locked memory  65536 65536 pages\n": {}, "Max locked memory -1 -1 bytes\n": {},
		"Max locked memory 99999999999999999999 0 bytes\n": {}, "Max locked memoryunlimited unlimited bytes\n": {},
	}
	for text, tt := range tests {
		got, err := lockedMemory(text)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, tt.want)
		}
	}
}

func TestHas(t *testing.T) {
	if HasCapability(0xa80425fb, CapIPCLock) || !HasCapability(0xa80465fb, CapIPCLock) || !HasCapability(1<<CapSysAdmin, CapSysAdmin) {
		t.Error("CAP_IPC_LOCK is bit 14, CAP_SYS_ADMIN bit 21")
	}
}

// FuzzProcess: no text makes the reader panic, and what it gives is whole or nothing.
func FuzzProcess(f *testing.F) {
	f.Add(limits, status)
	f.Add("Max locked memory unlimited unlimited bytes", "Uid:\nCapEff: \nCapBnd:\t")
	f.Fuzz(func(t *testing.T, limits, status string) {
		if limit, err := lockedMemory(limits); err != nil && limit != (Limit{}) {
			t.Errorf("%+v beside %v", limit, err)
		}
		p := Process{User: -1}
		if err := p.status(status); (err == nil) != (p.Capabilities != nil) || (err == nil) != (p.User >= 0) {
			t.Errorf("%+v, %v", p, err)
		}
	})
}
