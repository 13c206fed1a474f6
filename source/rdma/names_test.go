package rdma

import (
	"strings"
	"testing"

	"gdr-features/source"
)

// TestNamesForTheTerminal: an odd name is shown without control characters, its
// files are still found, and it is one problem.
func TestNamesForTheTerminal(t *testing.T) {
	dir := write(t, strings.Replace(nics, "rdma=mlx5_0\n", "rdma=mlx5\x1b[2J\u202e0\n", 1))
	inv := scan(t, dir, source.What{})
	var names []string
	for _, d := range inv.Devices {
		if d.PCI != nil && *d.PCI == *at(t, "0000:16:00.0") {
			names = append(names, d.Name)
			if !d.PortsRead {
				t.Errorf("ports of %q are not read: %v", d.Name, inv.Problems)
			}
		}
	}
	if len(names) != 1 || names[0] != "mlx5?[2J?0" {
		t.Errorf("%q", names)
	}
}
