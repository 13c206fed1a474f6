package rdma

import (
	"fmt"
	"strconv"
	"testing"

	"gdr-features/host"
	"gdr-features/source"
)

// TestIBMTU: the values that iboe_get_mtu has around each step.
func TestIBMTU(t *testing.T) {
	for mtu, want := range map[int]int{
		0: 0, 351: 0, 352: 256, 607: 256, 608: 512, 1119: 512, 1120: 1024, 1500: 1024, 2143: 1024, 2144: 2048,
		4096: 2048, 4191: 2048, 4192: 4096, 4200: 4096, 9000: 4096, 1 << 30: 4096,
	} {
		if got := ibMTU(mtu); got != want {
			t.Errorf("%d: %d, want %d", mtu, got, want)
		}
	}
}

// TestRoCE: what an active RoCE port uses, on changes of a tree in which it has the entries
// of a port with an IPv4 address.
func TestRoCE(t *testing.T) {
	const function, port = "sys/devices/pci0000:00/0000:01:00.0/", "sys/class/infiniband/mlx5_0/ports/1/"
	for name, tc := range map[string]struct {
		change func(string)
		want   string
	}{
		"jumbo frames": {func(string) {}, "MTU 4096 GID 3"},
		"1500":         {func(dir string) { put(t, dir, function+"net/eth0/mtu", "1500\n") }, "MTU 1024 GID 3"},
		"garbage":      {func(dir string) { put(t, dir, function+"net/eth0/mtu", "many\n") }, "MTU 0 GID 3, 1 problem"},
		"negative":     {func(dir string) { put(t, dir, function+"net/eth0/mtu", "-1\n") }, "MTU 0 GID 3, 1 problem"},
		"huge":         {func(dir string) { put(t, dir, function+"net/eth0/mtu", "99999999999999999999\n") }, "MTU 0 GID 3, 1 problem"},
		"no IPv4":      {func(dir string) { put(t, dir, port+"gids/3", v6GID+"\n") }, "MTU 4096 no GID"},
		"RoCE v1 only": {func(dir string) { put(t, dir, port+"gid_attrs/types/3", "IB/RoCE v1\n") }, "MTU 4096 no GID"},
		"no device":    {func(dir string) { remove(t, dir, port+"gid_attrs/ndevs/0") }, "MTU 0 GID 3"},
		"not its device": {func(dir string) {
			put(t, dir, port+"gid_attrs/ndevs/0", "eth1\n")
			put(t, dir, "sys/class/net/eth1/mtu", "9000\n")
		}, "MTU 0 GID 3"},
		"a bond": {func(dir string) {
			put(t, dir, port+"gid_attrs/ndevs/0", "bond0\n")
			put(t, dir, "sys/devices/virtual/net/bond0/mtu", "1500\n")
			link(t, dir, function+"net/eth0/master", "../../../../virtual/net/bond0")
		}, "MTU 1024 GID 3"},
		"another bond": {func(dir string) {
			put(t, dir, port+"gid_attrs/ndevs/0", "bond1\n")
			put(t, dir, "sys/devices/virtual/net/bond0/mtu", "1500\n")
			link(t, dir, function+"net/eth0/master", "../../../../virtual/net/bond0")
		}, "MTU 0 GID 3"},
		"an empty table": {func(dir string) { remove(t, dir, port+"gids/0") }, "MTU 0 no GID"},
		"InfiniBand":     {func(dir string) { put(t, dir, port+"link_layer", "InfiniBand\n") }, "MTU 0 no GID"},
		"down":           {func(dir string) { put(t, dir, port+"state", "1: DOWN\n") }, "MTU 0 no GID"},
		"late entry": {func(dir string) {
			put(t, dir, port+"gids/3", noGID+"\n")
			for i := 4; i < 60; i++ {
				put(t, dir, fmt.Sprint(port, "gids/", i), noGID+"\n")
			}
			gidEntry(t, dir, 40, v4GID, RoCEv2)
		}, "MTU 4096 no GID"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, port+"state", "4: ACTIVE\n")
			put(t, dir, port+"link_layer", "Ethernet\n")
			put(t, dir, port+"rate", "400 Gb/sec (4X NDR)\n")
			put(t, dir, function+"net/eth0/mtu", "9000\n")
			gidEntry(t, dir, 0, localGID, "IB/RoCE v1")
			gidEntry(t, dir, 1, localGID, RoCEv2)
			gidEntry(t, dir, 2, v4GID, "IB/RoCE v1")
			gidEntry(t, dir, 3, v4GID, RoCEv2)
			tc.change(dir)
			fs, err := host.Open(host.Options{Root: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer fs.Close()
			a := portsOf(fs, "sys/class/infiniband/mlx5_0/ports", function+"net", source.What{Publish: true})
			if a.err != nil || len(a.ports) != 1 {
				t.Fatal(a)
			}
			got := fmt.Sprintf("MTU %d", a.ports[0].RoCE.MTU)
			if i := a.ports[0].RoCE.GIDIndex; i != nil {
				got += fmt.Sprintf(" GID %d", *i)
			} else {
				got += " no GID"
			}
			if n := len(a.problems); n > 0 {
				got += fmt.Sprintf(", %d problem", n)
			}
			if got != tc.want {
				t.Errorf("%s, want %s; %v", got, tc.want, a.problems)
			}
			for _, what := range []source.What{{}, {Advice: true, Details: true}} {
				if p := portsOf(fs, "sys/class/infiniband/mlx5_0/ports", function+"net", what).ports[0]; p.RoCE != (RoCE{}) {
					t.Errorf("read without being asked: %+v", p.RoCE)
				}
			}
		})
	}
}

// gidEntry writes an entry of eth0 in the GID table of a port of mlx5_0.
func gidEntry(t *testing.T, dir string, index int, address, kind string) {
	t.Helper()
	const port = "sys/class/infiniband/mlx5_0/ports/1/"
	n := strconv.Itoa(index)
	put(t, dir, port+"gids/"+n, address+"\n")
	put(t, dir, port+"gid_attrs/types/"+n, kind+"\n")
	put(t, dir, port+"gid_attrs/ndevs/"+n, "eth0\n")
}
