package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/snapshot"
	"gdr-features/source/rdma"
	"gdr-features/test/machine"
)

// withMTU is a machine whose NICs' network devices have an mtu; as is what else it has.
func withMTU(t *testing.T, mtu string) (dir string) {
	t.Helper()
	m, err := machine.Load(filepath.Join(machinesDir, snapshotMachine+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir = m.Tree(t, m.Ready())
	m.GIDs(t, dir, "0 v1 fe80::1 eth0", "1 v2 fe80::1 eth0", "3 v2 ::ffff:10.20.30.40 eth0")
	for i := range m.Functions {
		if f := &m.Functions[i]; f.IsNIC() {
			name := filepath.Join(dir, "sys/bus/pci/devices", f.Address, "net/eth0")
			if err := os.MkdirAll(name, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(name, "mtu"), []byte(mtu+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// published is what RoCE ports use, as published of a root.
func published(t *testing.T, root string) (all []rdma.RoCE) {
	t.Helper()
	fs, err := snapshot.Open(host.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	r := report.Collect(t.Context(), fs, report.ForPublishing)
	if len(r.Problems) > 0 {
		t.Errorf("%s: %v", root, r.Problems)
	}
	for i := range r.RDMA.Devices {
		for _, p := range r.RDMA.Devices[i].Ports {
			all = append(all, p.RoCE)
		}
	}
	return all
}

// TestSnapshotMTU: snapshots of machines that differ in the mtu alone differ in it, and what is
// published of ports is the same of the machine and of its snapshot. What an older snapshot lacks
// is unknown, and no problem.
func TestSnapshotMTU(t *testing.T) {
	var texts []string
	for mtu, want := range map[string]int{"9000": 4096, "1500": 1024} {
		dir := withMTU(t, mtu)
		file := takeSnapshot(t, dir)
		onMachine, onSnapshot := published(t, dir), published(t, file)
		if diff := cmp.Diff(onMachine, onSnapshot); diff != "" || len(onMachine) != 2 || onMachine[0].MTU != want || onMachine[0].GIDIndex == nil || *onMachine[0].GIDIndex != 3 {
			t.Errorf("mtu %s: %+v (-machine +snapshot)\n%s", mtu, onMachine, diff)
		}
		text := read(t, file)
		if strings.Contains(text, "0a14:1e28") {
			t.Error("the address is in the snapshot")
		}
		texts = append(texts, strings.ReplaceAll(text, `mtu","text":"`+mtu, `mtu","text":"M`))

		var old strings.Builder
		for line := range strings.Lines(text) {
			if !strings.Contains(line, "/gid") && (!strings.Contains(line, "/net") || strings.Contains(line, "proc/")) {
				old.WriteString(line)
			}
		}
		older := filepath.Join(t.TempDir(), "older")
		if err := os.WriteFile(older, []byte(old.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, roce := range published(t, older) {
			if roce != (rdma.RoCE{}) {
				t.Errorf("of an older snapshot: %+v", roce)
			}
		}
	}
	if texts[0] != texts[1] || !strings.Contains(texts[0], `mtu","text":"M`) {
		t.Errorf("the snapshots differ in more than the mtu:\n%s", cmp.Diff(texts[0], texts[1]))
	}
}
