package diff_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/diff"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
)

const (
	machines = "../../../testdata/machines"
	pci      = "sys/bus/pci/devices/"
	nic      = pci + "0000:1b:00.0/"
	port     = nic + "infiniband/rocep27s0f0/ports/1/"
)

func collect(t *testing.T, dir string) *report.Report {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	r := report.Collect(t.Context(), fs, report.ForDiff)
	return &r
}

func load(t *testing.T, name string) *machine.Machine {
	t.Helper()
	m, err := machine.Load(filepath.Join(machines, name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func put(t *testing.T, dir, file, text string) {
	t.Helper()
	name := filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tree is a machine whose port is RoCE with jumbo frames and an IPv4 address.
func tree(t *testing.T) string {
	t.Helper()
	m := load(t, "bluefield3-l40s")
	dir := m.Tree(t, m.Ready())
	put(t, dir, port+"link_layer", "Ethernet")
	for _, index := range []string{"0", "1", "2"} {
		gid(t, dir, index, "fe80:0000:0000:0000:0000:0000:0000:0001")
	}
	gid(t, dir, "3", "0000:0000:0000:0000:0000:ffff:0a00:0001")
	put(t, dir, nic+"net/eth0/mtu", "9000")
	put(t, dir, "proc/driver/nvidia/params", "EnableStreamMemOPs: 0\nRegistryDwords: \"\"")
	put(t, dir, "proc/cmdline", "quiet")
	return dir
}

func gid(t *testing.T, dir, index, address string) {
	t.Helper()
	put(t, dir, port+"gids/"+index, address)
	put(t, dir, port+"gid_attrs/types/"+index, "RoCE v2")
	put(t, dir, port+"gid_attrs/ndevs/"+index, "eth0")
}

// TestChanges: each kind of change is a line, the first of them what a job feels.
func TestChanges(t *testing.T) {
	before := collect(t, tree(t))
	write := func(file, text string) func(string) { return func(dir string) { put(t, dir, file, text) } }
	remove := func(files ...string) func(string) {
		return func(dir string) {
			for _, file := range files {
				if err := os.RemoveAll(filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	const name = "rocep27s0f0 0000:1b:00.0"
	for change, tc := range map[string]struct {
		change func(dir string)
		want   []string // each a change, among others
	}{
		"nothing":        {func(string) {}, nil},
		"MTU 1500":       {write(nic+"net/eth0/mtu", "1500"), []string{"active MTU of rocep27s0f0/1 0000:1b:00.0: 4096, 1024"}},
		"MTU garbage":    {write(nic+"net/eth0/mtu", "many"), []string{"active MTU of rocep27s0f0/1 0000:1b:00.0: 4096, unknown"}},
		"GID index":      {func(dir string) { gid(t, dir, "2", "0000:0000:0000:0000:0000:ffff:0a00:0002") }, []string{"GID index of rocep27s0f0/1 0000:1b:00.0: 3, 2"}},
		"port":           {write(port+"state", "1: DOWN"), []string{"label of gpudirect.rdma: true, false", "check of port: WARN PortDown, FAIL NoActivePort", "port of rocep27s0f0/1 0000:1b:00.0: ACTIVE, DOWN"}},
		"link layer":     {write(port+"link_layer", "InfiniBand"), []string{"link layer of rocep27s0f0/1 0000:1b:00.0: Ethernet, InfiniBand"}},
		"rate":           {write(port+"rate", "100 Gb/sec (4X EDR)"), []string{"rate of rocep27s0f0/1 0000:1b:00.0: 400, 100"}},
		"NIC's link":     {write(nic+"current_link_width", "4"), []string{"PCIe link of " + name + ": 32 GT/s x16, 32 GT/s x4"}},
		"GPU's link":     {write(pci+"0000:18:00.0/current_link_width", "8"), []string{"check of link: OK, WARN LinkDegraded", "PCIe link of GPU0 0000:18:00.0: x16, x8"}},
		"NIC off":        {write(nic+"current_link_speed", "Unknown"), []string{"PCIe link of " + name + ": 32 GT/s x16, unknown"}},
		"GPU's unread":   {write(pci+"0000:18:00.0/current_link_width", "63"), []string{"check of link: OK, UNKNOWN Unreadable", "PCIe link of GPU0 0000:18:00.0: x16, unknown"}},
		"no link":        {remove(nic+"current_link_width", nic+"current_link_speed", nic+"max_link_width", nic+"max_link_speed"), []string{"PCIe link of " + name + ": 32 GT/s x16, unknown"}},
		"idle GPU":       {write(pci+"0000:18:00.0/current_link_speed", "2.5 GT/s PCIe"), nil},
		"firmware":       {write(nic+"infiniband/rocep27s0f0/fw_ver", "99.1.1"), []string{"firmware of " + name + ": 28.42.1000, 99.1.1"}},
		"kernel":         {write("proc/sys/kernel/osrelease", "6.8.0-49-generic"), []string{"kernel of : unknown, 6.8.0-49-generic"}},
		"GPU driver":     {write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build"), []string{"GPU driver of nvidia: 570.86.15 open, 580.95.05 open"}},
		"parameter":      {write("proc/driver/nvidia/params", "EnableStreamMemOPs: 1\nRegistryDwords: \"\""), []string{"parameter of EnableStreamMemOPs: 0, 1"}},
		"command line":   {write("proc/cmdline", "quiet iommu=pt"), []string{"command line of : , iommu=pt"}},
		"NUMA node":      {write(nic+"numa_node", "1"), []string{"NUMA node of " + name + ": 0, 1"}},
		"no RDMA device": {remove(nic+"infiniband", "sys/class/infiniband/rocep27s0f0"), []string{"device name of " + name + ": rocep27s0f0, "}},
		"GPU gone":       {remove(pci + "0000:18:00.0"), []string{"label of gpudirect.rdma: true, ", "GPU of GPU0 0000:18:00.0: L40S, "}},
		"NIC gone":       {remove(pci+"0000:1b:00.1", "sys/class/infiniband/rocep27s0f1"), []string{"NIC of rocep27s0f1 0000:1b:00.1: BlueField-3 ConnectX-7, "}},
	} {
		t.Run(change, func(t *testing.T) {
			dir := tree(t)
			tc.change(dir)
			var got []string
			for _, c := range diff.Compare(before, collect(t, dir)) {
				got = append(got, fmt.Sprintf("%s of %s: %s, %s", c.Fact, c.Of, c.Old, c.New))
			}
			at := -1
			for _, want := range tc.want {
				i := slices.Index(got, want)
				if i <= at {
					t.Errorf("no %q, or in another order:\n%s", want, strings.Join(got, "\n"))
				}
				at = i
			}
			if len(tc.want) == 0 && len(got) > 0 {
				t.Errorf("changes:\n%s", strings.Join(got, "\n"))
			}
		})
	}
}

// TestAlike: every machine in some of its states is like itself, and no state is like another
// that has other labels.
func TestAlike(t *testing.T) {
	for i, m := range testsize.Share(machine.All(t, machines)) {
		var last *report.Report
		for s, dir := range m.Trees(t, testsize.FewInTurn(i, m.States())) {
			r := collect(t, dir)
			if changes := diff.Compare(r, collect(t, dir)); len(changes) > 0 {
				t.Errorf("%s, %s: changes %v", m.Name, s.Name, changes)
			}
			if last != nil && fmt.Sprint(last.Labels) != fmt.Sprint(r.Labels) && len(diff.Compare(last, r)) == 0 {
				t.Errorf("%s, %s: no change", m.Name, s.Name)
			}
			last = r
		}
	}
}
