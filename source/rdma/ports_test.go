package rdma

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gdr-features/source"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestParseState(t *testing.T) {
	tests := map[string]string{
		"0: NOP":                       "NOP",
		"1: DOWN":                      "DOWN",
		"2: INIT":                      "INIT",
		"3: ARMED":                     "ARMED",
		"4: ACTIVE":                    "ACTIVE",
		"5: ACTIVE_DEFER":              "ACTIVE_DEFER",
		"4: Active":                    "ACTIVE", // the number counts, as the word was not always the same
		"4:":                           "ACTIVE",
		"4 : ACTIVE":                   "ACTIVE",
		"":                             "",
		"4":                            "",
		"ACTIVE":                       "",
		"6: POLLING":                   "",
		"-1: DOWN":                     "",
		": ACTIVE":                     "",
		"four: ACTIVE":                 "",
		"4.0: ACTIVE":                  "",
		"4\x00: ACTIVE":                "",
		"99999999999999999999: ACTIVE": "",
	}
	for in, want := range tests {
		got, err := parseState(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("parseState(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestParseRate(t *testing.T) {
	tests := []struct {
		in   string
		want float64
		bad  bool
	}{
		{in: "2.5 Gb/sec (1X SDR)", want: 2.5},
		{in: "100 Gb/sec (4X EDR)", want: 100},
		{in: "400 Gb/sec (4X NDR)", want: 400},
		{in: "800 Gb/sec (4X XDR)", want: 800},
		{in: "56 Gb/sec", want: 56},
		{in: "0 Gb/sec", want: 0},
		{in: "", bad: true},
		{in: "400", bad: true},
		{in: "400 Mb/sec", bad: true},
		{in: "400Gb/sec", bad: true},
		{in: "fast Gb/sec", bad: true},
		{in: "-400 Gb/sec", bad: true},
		{in: "1e6 Gb/sec", bad: true},
		{in: "NaN Gb/sec", bad: true},
		{in: "Inf Gb/sec", bad: true},
		{in: "-Inf Gb/sec", bad: true},
		{in: " 400 Gb/sec", bad: true},
	}
	for _, tt := range tests {
		got, err := parseRate(tt.in)
		if got != tt.want || (err != nil) != tt.bad {
			t.Errorf("parseRate(%q) = %v, %v; want %v", tt.in, got, err, tt.want)
		}
	}
}

func TestActive(t *testing.T) {
	for _, state := range append(portStates[:], "", "Active") {
		for _, layer := range []string{"InfiniBand", "Ethernet", "Unspecified", "Unknown", "", "ethernet"} {
			want := state == "ACTIVE" && (layer == "InfiniBand" || layer == "Ethernet")
			if got := (Port{State: state, LinkLayer: layer}).Active(); got != want {
				t.Errorf("state %q, link layer %q: %v, want %v", state, layer, got, want)
			}
		}
	}
}

// Each case changes the ports of a NIC with one port.
func TestPorts(t *testing.T) {
	const ports = "sys/class/infiniband/mlx5_0/ports"
	good := Port{Number: 1, State: "ACTIVE", LinkLayer: "InfiniBand", RateGbps: 400}
	with := func(change func(p *Port)) []Port {
		p := good
		change(&p)
		return []Port{p}
	}
	fifo := func(t *testing.T, dir, name string) {
		remove(t, dir, name)
		if err := unix.Mkfifo(filepath.Join(dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name     string
		change   func(t *testing.T, dir string)
		want     []Port
		unread   bool
		problems []string
	}{
		{"as it is", func(*testing.T, string) {}, []Port{good}, false, nil},
		{
			"the slowest rate there is",
			func(t *testing.T, dir string) { put(t, dir, ports+"/1/rate", "2.5 Gb/sec (1X SDR)\n") },
			with(func(p *Port) { p.RateGbps = 2.5 }), false, nil,
		},
		{
			"garbage for a rate",
			func(t *testing.T, dir string) { put(t, dir, ports+"/1/rate", "warp 9\n") },
			with(func(p *Port) { p.RateGbps = 0 }), false,
			[]string{"/" + ports + `/1/rate: "warp 9" is not a port rate`},
		},
		{
			"no rate",
			func(t *testing.T, dir string) { remove(t, dir, ports+"/1/rate") },
			with(func(p *Port) { p.RateGbps = 0 }), false,
			[]string{"open /" + ports + "/1/rate: no such file"},
		},
		{
			"another state",
			func(t *testing.T, dir string) { put(t, dir, ports+"/1/state", "2: INIT\n") },
			with(func(p *Port) { p.State, p.Physical = "INIT", "LinkUp" }), false, nil,
		},
		{
			"a cable without signal",
			func(t *testing.T, dir string) {
				put(t, dir, ports+"/1/state", "1: DOWN\n")
				put(t, dir, ports+"/1/phys_state", "2: Polling\n")
			},
			with(func(p *Port) { p.State, p.Physical = "DOWN", "Polling" }), false, nil,
		},
		{
			"no physical state",
			func(t *testing.T, dir string) {
				put(t, dir, ports+"/1/state", "1: DOWN\n")
				remove(t, dir, ports+"/1/phys_state")
			},
			with(func(p *Port) { p.State = "DOWN" }), false, nil,
		},
		{
			"garbage for a physical state",
			func(t *testing.T, dir string) {
				put(t, dir, ports+"/1/state", "1: DOWN\n")
				put(t, dir, ports+"/1/phys_state", "8: Asleep\n")
			},
			with(func(p *Port) { p.State = "DOWN" }), false,
			[]string{"/" + ports + `/1/phys_state: "8: Asleep" is not a physical state`},
		},
		{
			"garbage for the physical state of an active port",
			func(t *testing.T, dir string) { put(t, dir, ports+"/1/phys_state", "8: Asleep\n") },
			[]Port{good},
			false, nil,
		},
		{
			"garbage for a state",
			func(t *testing.T, dir string) { put(t, dir, ports+"/1/state", "7: PARTY\n") },
			with(func(p *Port) { p.State = "" }), false,
			[]string{"/" + ports + `/1/state: "7: PARTY" is not a port state`},
		},
		{
			"a FIFO for a state",
			func(t *testing.T, dir string) { fifo(t, dir, ports+"/1/state") },
			with(func(p *Port) { p.State = "" }), false,
			[]string{"read /" + ports + "/1/state: file is empty"},
		},
		{
			"no state",
			func(t *testing.T, dir string) { remove(t, dir, ports+"/1/state") },
			with(func(p *Port) { p.State = "" }), false,
			[]string{"open /" + ports + "/1/state: no such file"},
		},
		{
			"Ethernet",
			func(t *testing.T, dir string) { put(t, dir, ports+"/1/link_layer", "Ethernet\n") },
			with(func(p *Port) { p.LinkLayer = "Ethernet" }), false, nil,
		},
		{
			"a link layer that is neither",
			func(t *testing.T, dir string) { put(t, dir, ports+"/1/link_layer", "Unspecified\n") },
			with(func(p *Port) { p.LinkLayer = "Unspecified" }), false, nil,
		},
		{
			"an unspecified link layer as the kernel writes it",
			func(t *testing.T, dir string) { put(t, dir, ports+"/1/link_layer", "Unknown\n") },
			with(func(p *Port) { p.LinkLayer = "Unspecified" }), false, nil,
		},
		{
			"garbage for a link layer",
			func(t *testing.T, dir string) { put(t, dir, ports+"/1/link_layer", "infiniband\n") },
			with(func(p *Port) { p.LinkLayer = "" }), false,
			[]string{"/" + ports + `/1/link_layer: "infiniband" is not a link layer`},
		},
		{
			"no link layer",
			func(t *testing.T, dir string) { remove(t, dir, ports+"/1/link_layer") },
			with(func(p *Port) { p.LinkLayer = "" }), false,
			[]string{"open /" + ports + "/1/link_layer: no such file"},
		},
		{
			"several ports, by number",
			func(t *testing.T, dir string) {
				for _, n := range []string{"10", "2", "0", "255"} {
					put(t, dir, ports+"/"+n+"/state", "1: DOWN\n")
					put(t, dir, ports+"/"+n+"/link_layer", "Ethernet\n")
					put(t, dir, ports+"/"+n+"/rate", "25 Gb/sec (1X EDR)\n")
				}
			},
			[]Port{{Number: 0, State: "DOWN", LinkLayer: "Ethernet", RateGbps: 25}, good, {Number: 2, State: "DOWN", LinkLayer: "Ethernet", RateGbps: 25}, {Number: 10, State: "DOWN", LinkLayer: "Ethernet", RateGbps: 25}, {Number: 255, State: "DOWN", LinkLayer: "Ethernet", RateGbps: 25}},
			false, nil,
		},
		{
			"an entry that is no number",
			func(t *testing.T, dir string) { put(t, dir, ports+"/one/state", "4: ACTIVE\n") },
			[]Port{good},
			false,
			[]string{"/" + ports + "/one is not a port"},
		},
		{
			"a number no port can have",
			func(t *testing.T, dir string) { put(t, dir, ports+"/256/state", "4: ACTIVE\n") },
			[]Port{good},
			false,
			[]string{"/" + ports + "/256 is not a port"},
		},
		{
			"a number below zero",
			func(t *testing.T, dir string) { put(t, dir, ports+"/-1/state", "4: ACTIVE\n") },
			[]Port{good},
			false,
			[]string{"/" + ports + "/-1 is not a port"},
		},
		{
			"no ports",
			func(t *testing.T, dir string) { remove(t, dir, ports+"/1") },
			nil, false, nil,
		},
		{
			"no directory of ports",
			func(t *testing.T, dir string) { remove(t, dir, ports) },
			nil, true,
			[]string{"open /" + ports + ": no such file"},
		},
		{
			"a FIFO for the ports",
			func(t *testing.T, dir string) { fifo(t, dir, ports) },
			nil, true,
			[]string{"open /" + ports + ": not a directory"},
		},
		{
			"a port that is a file",
			func(t *testing.T, dir string) { remove(t, dir, ports+"/1"); put(t, dir, ports+"/1", "4: ACTIVE\n") },
			[]Port{{Number: 1}},
			false,
			[]string{"open /" + ports + "/1/state: not a", "open /" + ports + "/1/link_layer: not a", "open /" + ports + "/1/rate: not a"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, "pci0000:15\n  0000:16:00.0 ib 15b3:1021 rdma=mlx5_0\n  0000:17:00.0 ib 15b3:1021 rdma=mlx5_1\n")
			tt.change(t, dir)
			inv := scan(t, dir, everything)
			wantProblems(t, inv.Problems, tt.problems...)
			d, other := inv.Devices[0], inv.Devices[1]
			if diff := cmp.Diff(tt.want, d.Ports); diff != "" || d.PortsRead == tt.unread {
				t.Errorf("read: %v, ports (-want +got):\n%s", d.PortsRead, diff)
			}
			if diff := cmp.Diff([]Port{good}, other.Ports); diff != "" || !other.PortsRead {
				t.Errorf("the other device: read: %v, ports (-want +got):\n%s", other.PortsRead, diff)
			}
			if !inv.Complete {
				t.Error("not complete for what is wrong with a port")
			}
		})
	}
}

// Without further facts these files of a port are read, and no counters.
func TestFilesOfPort(t *testing.T) {
	dir := write(t, "pci0000:15\n  0000:16:00.0 ib 15b3:1021 rdma=mlx5_0\n")
	opened := watch(t, filepath.Join(dir, "sys/class/infiniband/mlx5_0"), "ports/1/")
	inv := scan(t, dir, source.What{})
	if diff := cmp.Diff([]string{"ports/1/link_layer", "ports/1/rate", "ports/1/state"}, opened()); diff != "" {
		t.Errorf("files opened (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(port("ACTIVE", "InfiniBand"), inv.Devices[0].Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
}

// Software devices have ports that only people want to see.
func TestSoftwarePorts(t *testing.T) {
	dir := write(t, "pci0000:15\n  0000:16:00.0 ib 15b3:1021\n")
	const device = "sys/devices/virtual/infiniband/siw0"
	put(t, dir, device+"/ports/1/state", "4: ACTIVE\n")
	put(t, dir, device+"/ports/1/link_layer", "Ethernet\n")
	put(t, dir, device+"/ports/1/rate", "2.5 Gb/sec (1X SDR)\n")
	put(t, dir, device+"/node_type", "4: RNIC\n")
	link(t, dir, "sys/class/infiniband/siw0", "../../devices/virtual/infiniband/siw0")
	inv := scan(t, dir, source.What{})
	if d := inv.Devices[0]; d.PortsRead || d.Ports != nil || d.NodeType != "" {
		t.Errorf("needed: ports %v, node type %q; want neither", d.Ports, d.NodeType)
	}
	inv = scan(t, dir, everything)
	want := Device{Name: "siw0", NodeType: "RNIC", PortsRead: true, Ports: []Port{{Number: 1, State: "ACTIVE", LinkLayer: "Ethernet", RateGbps: 2.5}}}
	if diff := cmp.Diff(want, inv.Devices[0], whole); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
	wantProblems(t, inv.Problems)
	if !inv.Complete {
		t.Error("not complete for a software device")
	}
}

func FuzzParseState(f *testing.F) {
	for _, seed := range []string{"4: ACTIVE", "1: DOWN", "5: ACTIVE_DEFER", "6: ", ":", "", "-1: DOWN", "+4: ACTIVE", " 4 : ACTIVE", "4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseState(text)
		if err != nil {
			if got != "" || !strings.Contains(err.Error(), strconv.Quote(text)) {
				t.Errorf("%q, %v; want no state and an error with the text", got, err)
			}
			return
		}
		number, _, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || n < 0 || n >= len(portStates) || portStates[n] != got {
			t.Errorf("%q, number %d, %v", got, n, err)
		}
		// What the kernel writes for the state is read as the same state.
		if again, err := parseState(strconv.Itoa(n) + ": " + got); again != got || err != nil {
			t.Errorf("%q is read again as %q, %v", got, again, err)
		}
	})
}

func FuzzParseRate(f *testing.F) {
	for _, seed := range []string{
		"400 Gb/sec (4X NDR)", "2.5 Gb/sec (1X SDR)", "0 Gb/sec", "NaN Gb/sec", "Inf Gb/sec", "1e9 Gb/sec",
		"-1 Gb/sec", "0x1p-2 Gb/sec", "Gb/sec", "", "400",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rate, err := parseRate(text)
		if math.IsNaN(rate) || rate < 0 || rate >= 1e6 || err != nil && rate != 0 {
			t.Fatalf("%v, %v: no rate a port can have", rate, err)
		}
		if err != nil {
			return
		}
		if !strings.Contains(text, " Gb/sec") {
			t.Error("accepted without unit")
		}
		again, err := parseRate(strconv.FormatFloat(rate, 'g', -1, 64) + " Gb/sec (4X NDR)")
		if again != rate || err != nil {
			t.Errorf("%v is read again as %v, %v", rate, again, err)
		}
	})
}
