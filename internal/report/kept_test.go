package report_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/internal/report"
	"gdr-features/source/family"
)

// When the NICs can no longer be identified, every label keeps its value or is
// unknown, and then stays as published: none is removed as if there were no NIC.
func TestUnidentifiedTakesNothingAway(t *testing.T) {
	for _, number := range []int{1, 2} {
		dir := parse(t, `
nodes 1
pci0000:01
  0000:01:00.0 port 8086:352a
    0000:02:00.0 switch 1000:c030
      0000:03:00.0 switch 1000:c030
        0000:04:00.0 gpu 10de:2330 name=GPU0
      0000:03:01.0 switch 1000:c030
        0000:05:00.0 ib 15b3:1021 rdma=mlx5_0
pci0000:10
  0000:10:00.0 port 8086:352a
    0000:11:00.0 ib 15b3:1021 rdma=mlx5_1
`).Tree(t, state(t, "ready"))
		rd := reader(t, dir)
		before := rd.Read(t.Context(), report.All)
		if before.Labels[label.ACS] == "" || before.Labels[label.Ready] != "true" {
			t.Fatal(before.Labels)
		}
		for _, nic := range []string{"0000:05:00.0", "0000:11:00.0"}[:number] {
			for _, name := range []string{"modalias", "vendor"} {
				if err := os.WriteFile(filepath.Join(dir, "sys/bus/pci/devices", nic, name), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		after := rd.Read(t.Context(), report.All)
		if len(after.PCI.Problems) != number || !strings.Contains(after.PCI.Problems[0].Error(), "ids of ") {
			t.Fatal(after.PCI.Problems)
		}
		for name, was := range before.Labels {
			if is, ok := after.Labels[name]; !after.Unknown[name] && (!ok || is != was) {
				t.Errorf("%d NICs unidentified: %s was %q, is %q", number, name, was, is)
			}
		}
	}
}

// TestPhysicalUnlinked: a virtual function without its link to the physical one, as while
// virtual functions are removed, moves no label of the hardware.
func TestPhysicalUnlinked(t *testing.T) {
	const altra = `
arm
pci000c:00 numa=0
  000c:00:01.0 port 1def:e101
    000c:01:00.0 gpu 10de:20f1 name=GPU0
  000c:00:00.0 060000 1def:e100
pci000d:00 numa=0
  000d:00:01.0 port 1def:e101
    000d:01:00.0 ib 15b3:101b rdma=mlx5_0
    000d:01:00.2 ib 15b3:101c rdma=mlx5_1 physfn=000d:01:00.0
`
	const gpus = `
pci0000:40 numa=0
  0000:40:01.0 port 8086:347a
    0000:41:00.0 gpu 10de:20b5 name=GPU0
    0000:41:00.4 gpu 10de:20b5 physfn=0000:41:00.0 driver=none
pci0000:80 numa=0
  0000:80:01.0 port 8086:347a
    0000:81:00.0 eth 15b3:101d rdma=mlx5_9
`
	vfs, err := os.ReadFile("../../testdata/machines/vfs-with-pf.txt")
	if err != nil {
		t.Fatal(err)
	}
	ways := map[string]func(link string) error{
		"gone":           func(string) error { return nil },
		"not a link":     func(link string) error { return os.WriteFile(link, nil, 0o644) },
		"not an address": func(link string) error { return os.Symlink("../nobody", link) },
		"leads nowhere":  func(link string) error { return os.Symlink("../ffff:00:00.0", link) },
	}
	for virtual, description := range map[string]string{
		"0000:45:00.1": string(vfs), "000d:01:00.2": altra, "0000:41:00.4": gpus,
	} {
		for way, spoil := range ways {
			dir := parse(t, description).Tree(t, state(t, "ready"))
			before := reader(t, dir).Read(t.Context(), report.All)
			link := filepath.Join(dir, "sys/bus/pci/devices", virtual, "physfn")
			if err := errors.Join(os.Remove(link), spoil(link)); err != nil {
				t.Fatal(err)
			}
			after := reader(t, dir).Read(t.Context(), report.All)
			if len(before.PCI.Problems) != 0 || len(after.PCI.Problems) != 1 {
				t.Errorf("%s, %s: problems before %v, after %v", virtual, way, before.PCI.Problems, after.PCI.Problems)
			}
			same(t, virtual+", "+way, &before, &after)
		}
	}
}

// TestLanesUnread: without its number of lanes, the NIC that manages NVLink switches moves no
// label, above all not to "ready".
func TestLanesUnread(t *testing.T) {
	text, err := os.ReadFile("../../testdata/machines/nvlink-management-only.txt")
	if err != nil {
		t.Fatal(err)
	}
	before := reader(t, parse(t, string(text)).Tree(t, state(t, "ready"))).Read(t.Context(), report.All)
	for _, width := range []string{"garbage", "63", "0"} {
		dir := parse(t, strings.ReplaceAll(string(text), "width=2", "width="+width)).Tree(t, state(t, "ready"))
		after := reader(t, dir).Read(t.Context(), report.All)
		same(t, "width "+width, &before, &after)
	}
}

// same checks that every label is as before or unknown.
func same(t *testing.T, what string, before, after *report.Report) {
	t.Helper()
	for name := range nodelabel.All(family.Known()) {
		was, had := before.Labels[name]
		is, has := after.Labels[name]
		if !after.Unknown[name] && (had != has || is != was) {
			t.Errorf("%s: %s was %q, is %q", what, name, was, is)
		}
	}
}
