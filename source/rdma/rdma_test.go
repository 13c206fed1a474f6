package rdma

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
)

// whole ignores how a device was found and compares the rest.
var whole = cmpopts.IgnoreUnexported(Device{})

// nics is a machine with one NIC of every kind of name and place.
const nics = `
pci0000:15
  0000:15:01.0 port 8086:352a
    0000:16:00.0 ib 15b3:1021 rdma=mlx5_0
    0000:16:00.1 ib 15b3:101e rdma=mlx5_9 physfn=0000:16:00.0
    0000:17:00.0 eth 15b3:101d rdma=rocep1s0f0 port=DOWN rate=400
    0000:17:00.1 eth 15b3:101d rdma=mlx5_bond_0,rdma_rail0 port=INIT rate=400
    0000:18:00.0 eth 15b3:101d rdma=mlx5_2 aux=mlx5_core.sf.2 rate=400
    0000:19:00.0 020000 14e4:165f
    0000:1a:00.0 gpu 10de:2330
`

// port is a port 1 as the tree above has them.
func port(state, layer string) []Port {
	return []Port{{Number: 1, State: state, LinkLayer: layer, RateGbps: 400}}
}

func TestScan(t *testing.T) {
	dir := write(t, nics)
	want := Inventory{Complete: true, Listed: true, Devices: []Device{
		{Name: "mlx5_0", PCI: at(t, "0000:16:00.0"), Ports: port("ACTIVE", "InfiniBand"), PortsRead: true, Board: "MT_0000000838"},
		{Name: "mlx5_9", PCI: at(t, "0000:16:00.1"), Ports: port("ACTIVE", "InfiniBand"), PortsRead: true, Board: "MT_0000000838"},
		{Name: "rocep1s0f0", PCI: at(t, "0000:17:00.0"), Ports: port("DOWN", "Ethernet"), PortsRead: true},
		{Name: "mlx5_bond_0", PCI: at(t, "0000:17:00.1"), Ports: port("INIT", "Ethernet"), PortsRead: true},
		{Name: "rdma_rail0", PCI: at(t, "0000:17:00.1"), Ports: port("INIT", "Ethernet"), PortsRead: true},
		{Name: "mlx5_2", PCI: at(t, "0000:18:00.0"), Auxiliary: true, Ports: port("ACTIVE", "Ethernet"), PortsRead: true},
	}}
	if diff := cmp.Diff(want, scan(t, dir, source.What{}), whole); diff != "" {
		t.Errorf("needed (-want +got):\n%s", diff)
	}

	for _, name := range []string{"ens2f1np1", "ens2f0np0", "ens2f2np2"} {
		put(t, dir, "sys/bus/pci/devices/0000:17:00.0/net/"+name+"/address", "")
	}
	remove(t, dir, "sys/class/infiniband/rocep1s0f0/fw_ver")
	remove(t, dir, "sys/class/infiniband/rocep1s0f0/board_id")
	for i := range want.Devices {
		d := &want.Devices[i]
		d.Board, d.Firmware, d.NodeType = "MT_0000000838", "28.42.1000", "CA"
		d.Ports[0].Physical = map[string]string{"DOWN": "Polling", "INIT": "LinkUp"}[d.Ports[0].State]
	}
	roce := &want.Devices[2]
	roce.Board, roce.Firmware, roce.NetDevs = "", "", []string{"ens2f0np0", "ens2f1np1", "ens2f2np2"}
	if diff := cmp.Diff(want, scan(t, dir, everything), whole); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
}

// A device's function is found whatever its entry in the class looks like.
func TestScanPlaces(t *testing.T) {
	const one = "pci0000:15\n  0000:16:00.0 ib 15b3:1021 rdma=mlx5_0\n"
	const entry, function = "sys/class/infiniband/mlx5_0", "sys/devices/pci0000:15/0000:16:00.0"
	virtual := func(t *testing.T, dir string) {
		put(t, dir, "sys/devices/virtual/infiniband/rxe0/ports/1/state", "4: ACTIVE\n")
		put(t, dir, "sys/devices/virtual/infiniband/rxe0/ports/1/link_layer", "Ethernet\n")
		link(t, dir, "sys/class/infiniband/rxe0", "../../devices/virtual/infiniband/rxe0")
	}
	nic := Device{Name: "mlx5_0", PCI: at(t, "0000:16:00.0"), Ports: port("ACTIVE", "InfiniBand"), PortsRead: true, Board: "MT_0000000838"}
	soft := Device{Name: "rxe0"}
	noPorts := Device{Name: "mlx5_0", PCI: at(t, "0000:16:00.0")}
	tests := []struct {
		name     string
		change   func(t *testing.T, dir string)
		want     Inventory
		problems []string
	}{
		{"a link into the device tree", func(*testing.T, string) {}, Inventory{Devices: []Device{nic}, Complete: true, Listed: true}, nil},
		{
			"a directory with a link to the function",
			func(t *testing.T, dir string) {
				remove(t, dir, entry)
				link(t, dir, entry+"/device", "../../../devices/pci0000:15/0000:16:00.0")
				put(t, dir, entry+"/ports/1/state", "4: ACTIVE\n")
				put(t, dir, entry+"/ports/1/link_layer", "InfiniBand\n")
				put(t, dir, entry+"/ports/1/rate", "400 Gb/sec (4X NDR)\n")
				put(t, dir, entry+"/board_id", "MT_0000000838\n")
			},
			Inventory{Devices: []Device{nic}, Complete: true, Listed: true},
			nil,
		},
		{
			"a directory with a link that leads over others to the function",
			func(t *testing.T, dir string) {
				remove(t, dir, entry)
				link(t, dir, "sys/alias", "devices/pci0000:15/0000:16:00.0")
				link(t, dir, entry+"/device", "../../../alias")
				remove(t, dir, function+"/infiniband")
			},
			Inventory{Devices: []Device{noPorts}, Complete: true, Listed: true},
			[]string{"open /" + entry + "/ports: no such file"},
		},
		{
			"a directory with a link to an auxiliary device",
			func(t *testing.T, dir string) {
				remove(t, dir, entry)
				remove(t, dir, function+"/infiniband")
				link(t, dir, entry+"/device", "../../../devices/pci0000:15/0000:16:00.0/mlx5_core.sf.2")
			},
			Inventory{Devices: []Device{{Name: "mlx5_0", PCI: at(t, "0000:16:00.0"), Auxiliary: true}}, Complete: true, Listed: true},
			[]string{"open /" + entry + "/ports: no such file"},
		},
		{
			"a directory without link, and the function knows the device",
			func(t *testing.T, dir string) {
				remove(t, dir, entry)
				put(t, dir, entry+"/node_type", "1: CA\n")
			},
			Inventory{Devices: []Device{noPorts}, Complete: true, Listed: true},
			[]string{"open /" + entry + "/ports: no such file"},
		},
		{
			"a directory without link, and nobody knows the device",
			func(t *testing.T, dir string) {
				remove(t, dir, entry)
				remove(t, dir, function+"/infiniband")
				put(t, dir, entry+"/ports/1/state", "4: ACTIVE\n")
			},
			Inventory{Devices: []Device{{Name: "mlx5_0"}}, Listed: true},
			[]string{"/" + entry + ": no path to its PCI function"},
		},
		{
			"a link into nowhere",
			func(t *testing.T, dir string) {
				remove(t, dir, function+"/infiniband")
				remove(t, dir, entry)
				link(t, dir, entry, "nowhere")
			},
			Inventory{Devices: []Device{{Name: "mlx5_0"}}, Listed: true},
			[]string{"/" + entry + ": no path to its PCI function"},
		},
		{
			"a software device beside the NIC's",
			virtual,
			Inventory{Devices: []Device{soft, nic}, Complete: true, Listed: true},
			nil,
		},
		{
			"a software device alone",
			func(t *testing.T, dir string) {
				remove(t, dir, "sys/class/infiniband")
				remove(t, dir, function+"/infiniband")
				virtual(t, dir)
			},
			Inventory{Devices: []Device{soft}, Complete: true, Listed: true},
			nil,
		},
		{
			"not in the class, but below its function",
			func(t *testing.T, dir string) { remove(t, dir, entry) },
			Inventory{Devices: []Device{nic}, Complete: true, Listed: true},
			nil,
		},
		{
			"a file in the class",
			func(t *testing.T, dir string) { put(t, dir, "sys/class/infiniband/README", "not a device\n") },
			Inventory{Devices: []Device{nic}, Complete: true, Listed: true},
			nil,
		},
		{
			"no class, and the functions have no devices",
			func(t *testing.T, dir string) {
				remove(t, dir, "sys/class/infiniband")
				remove(t, dir, function+"/infiniband")
			},
			Inventory{Complete: true, Listed: true},
			nil,
		},
		{
			"the class is a file",
			func(t *testing.T, dir string) {
				remove(t, dir, "sys/class/infiniband")
				put(t, dir, "sys/class/infiniband", "")
			},
			Inventory{Devices: []Device{nic}},
			[]string{"open /sys/class/infiniband: not a directory"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, one)
			tt.change(t, dir)
			got := scan(t, dir, source.What{})
			wantProblems(t, got.Problems, tt.problems...)
			got.Problems = nil
			if diff := cmp.Diff(tt.want, got, whole); diff != "" {
				t.Errorf("inventory (-want +got):\n%s", diff)
			}
		})
	}
}

// A tree without the class still shows which functions have devices.
func TestScanWithoutClass(t *testing.T) {
	dir := write(t, nics)
	remove(t, dir, "sys/class/infiniband")
	inv := scan(t, dir, source.What{})
	var got []string
	for i := range inv.Devices {
		got = append(got, fmt.Sprint(inv.Devices[i].PCI, " ", inv.Devices[i].Name))
	}
	want := []string{
		"0000:16:00.0 mlx5_0", "0000:16:00.1 mlx5_9", "0000:17:00.0 rocep1s0f0",
		"0000:17:00.1 mlx5_bond_0", "0000:17:00.1 rdma_rail0",
	}
	if diff := cmp.Diff(want, got); diff != "" || !inv.Complete {
		t.Errorf("complete %v, devices (-want +got):\n%s", inv.Complete, diff)
	}
}

func TestScanNamespaceMode(t *testing.T) {
	const bare = "pci0000:15\n  0000:16:00.0 ib 15b3:1021 rdma=mlx5_0\n  0000:17:00.0 ib 15b3:1021\n"
	const unreadable = "a directory"
	tests := []struct {
		name, description, mode string
		exclusive, complete     bool
		problems                []string
	}{
		{"exclusive, a bare NIC", bare, "N\n", true, false, nil},
		{"shared, a bare NIC", bare, "Y\n", false, true, nil},
		{"no such file, a bare NIC", bare, "", false, true, nil},
		{"garbage, a bare NIC", bare, "maybe\n", false, false, []string{`/sys/module/ib_core/parameters/netns_mode: "maybe" is neither Y nor N`}},
		{"empty, a bare NIC", bare, "\n", false, false, []string{"read /sys/module/ib_core/parameters/netns_mode: file is empty"}},
		{"not readable, a bare NIC", bare, unreadable, false, false, []string{"read /sys/module/ib_core/parameters/netns_mode: is a directory"}},
		{"not readable, every NIC has a device", "pci0000:15\n  0000:16:00.0 ib 15b3:1021 rdma=mlx5_0\n", unreadable, false, true, nil},
		{"exclusive, every NIC has a device", "pci0000:15\n  0000:16:00.0 ib 15b3:1021 rdma=mlx5_0\n", "N\n", false, true, nil},
		{"exclusive, no NIC", "pci0000:15\n  0000:16:00.0 gpu 10de:2330\n  0000:17:00.0 020000 14e4:165f\n", "N\n", false, true, nil},
		{"exclusive, a bare manager of NVLink switches", "pci0000:15\n  0000:16:00.0 ib 15b3:1021 width=2\n", "N\n", false, true, nil},
		{"exclusive, no device at all", "pci0000:15\n  0000:17:00.0 eth 15b3:101d\n", "N\n", true, false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, tt.description)
			const file = "sys/module/ib_core/parameters/netns_mode"
			switch tt.mode {
			case "":
			case unreadable:
				put(t, dir, file+"/in", "")
			default:
				put(t, dir, file, tt.mode)
			}
			inv := scan(t, dir, source.What{})
			if inv.Exclusive != tt.exclusive || inv.Complete != tt.complete {
				t.Errorf("exclusive %v, complete %v; want %v, %v", inv.Exclusive, inv.Complete, tt.exclusive, tt.complete)
			}
			wantProblems(t, inv.Problems, tt.problems...)
		})
	}
}

func TestOrder(t *testing.T) {
	device := func(name, address string) Device {
		d := Device{Name: name}
		if address != "" {
			d.PCI = at(t, address)
		}
		return d
	}
	sorted := []Device{
		device("rxe0", ""), device("siw0", ""),
		device("mlx5_9", "0000:16:00.0"), device("mlx5_0", "0000:16:00.1"), device("mlx5_1", "0000:16:00.1"), device("mlx5_2", "0001:00:00.0"),
	}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := compare(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s to %s: %d", a.Name, b.Name, got)
			}
		}
	}
}

func TestOf(t *testing.T) {
	inv := scan(t, write(t, nics), source.What{})
	want := map[string]string{
		"0000:16:00.0": "mlx5_0", "0000:17:00.1": "mlx5_bond_0 rdma_rail0", "0000:18:00.0": "mlx5_2", "0000:1a:00.0": "", "ffff:00:00.0": "",
	}
	for _, address := range slices.Sorted(maps.Keys(want)) {
		var names []string
		for _, d := range inv.Of(*at(t, address)) {
			names = append(names, d.Name)
		}
		if got := strings.Join(names, " "); got != want[address] {
			t.Errorf("Of(%s) = %q, want %q", address, got, want[address])
		}
	}
}

// A scan closes what it opened, whatever it found there.
func TestScanGivesHandlesBack(t *testing.T) {
	dir := write(t, nics)
	put(t, dir, "sys/class/infiniband/mlx5_0/ports/1/state", "")
	remove(t, dir, "sys/class/infiniband/mlx5_9/ports")
	put(t, dir, "sys/class/infiniband/mlx5_9/ports", "")
	tree, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	functions, err := pci.Scan(tree, family.Known(), source.What{})
	if err != nil {
		t.Fatal(err)
	}
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := count()
	Scan(t.Context(), tree, &functions, everything)
	if after := count(); after != before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}

// When time is up, every device either has its ports or is a problem.
func TestScanCancelled(t *testing.T) {
	var description strings.Builder
	description.WriteString("pci0000:15\n")
	for i := range 32 {
		fmt.Fprintf(&description, "  0000:16:%02x.0 eth 15b3:101d rdma=mlx5_%d\n", i, i)
	}
	tree, err := host.Open(host.Options{Root: write(t, description.String())})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	functions, err := pci.Scan(tree, family.Known(), source.What{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	inv := Scan(ctx, tree, &functions, source.What{})
	if len(inv.Devices) != 32 || !inv.Complete {
		t.Errorf("%d devices, complete %v; want 32, true", len(inv.Devices), inv.Complete)
	}
	for _, d := range inv.Devices {
		noAnswer := slices.ContainsFunc(inv.Problems, func(err error) bool {
			return err.Error() == "/sys/class/infiniband/"+d.Name+"/ports: no answer from the device"
		})
		if d.PortsRead == noAnswer || d.PortsRead != (len(d.Ports) == 1) {
			t.Errorf("%s: ports %v, read %v, a problem %v", d.Name, d.Ports, d.PortsRead, noAnswer)
		}
	}
}
