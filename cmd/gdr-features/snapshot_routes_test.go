package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/test/machine"
)

// TestSnapshotOfRoutes: a snapshot shows over which interface the node's default route is, and
// no address of the node's network.
func TestSnapshotOfRoutes(t *testing.T) {
	m, err := machine.Parse(strings.ReplaceAll(identified, "rdma=mlx5_1", "rdma=mlx5_1 net=enxb83fd2a1c2e4"))
	if err != nil {
		t.Fatal(err)
	}
	s := m.Ready()
	s.Files = map[string]string{
		"proc/sys/net/core/netdev_budget": "300\n",
		"proc/self/net/route": "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
			"enxb83fd2a1c2e4\t00000000\t017BA8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n" +
			"enxb83fd2a1c2e4\t007BA8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n",
		"proc/self/net/ipv6_route": "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000a11b2fffe33c4d5 00000064 00000002 00000000 00000003 enxb83fd2a1c2e4\n" +
			"20010db8000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000064 00000002 00000000 00000001 enxb83fd2a1c2e4\n",
	}
	dir := m.Tree(t, s)
	file := takeSnapshot(t, dir)
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"7BA8C0", "fe80", "0a11b2", "20010db8", "b83fd2a1c2e4"} {
		if strings.Contains(string(text), address) {
			t.Errorf("%s is in the snapshot", address)
		}
	}
	for _, root := range []string{dir, file} {
		if got, _ := runOn(t, root, "check"); !strings.Contains(got, "default route is over a NIC that is near a GPU") {
			t.Errorf("%s: no default route in\n%s", root, got)
		}
	}
}
