package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/internal/label"
	"gdr-features/internal/report"
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
