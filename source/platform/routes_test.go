package platform

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdr-features/host"
)

const (
	routeHead = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	zeros6    = "00000000000000000000000000000000"
)

func route(iface, destination, flags, metric, mask string) string {
	return fmt.Sprintf("%s\t%s\t010200C0\t%s\t0\t0\t%s\t%s\t0\t0\t0\n", iface, destination, flags, metric, mask)
}

func route6(iface, destination, length, metric, flags string) string {
	return fmt.Sprintf("%s %s %s 00 fd000000000000000000000000000001 %s 00000002 00000000 %s %8s\n", destination, length, zeros6, metric, flags, iface)
}

// TestDefaultRoutes: the functions below the interfaces of default routes.
func TestDefaultRoutes(t *testing.T) {
	def := func(iface, metric string) string { return route(iface, "00000000", "0003", metric, "00000000") }
	def6 := func(iface string) string { return route6(iface, zeros6, "00", "00000400", "00000003") }
	for name, tc := range map[string]struct {
		v4, v6 string
		pod    bool
		want   string
	}{
		"a physical interface":           {v4: def("eth0", "100") + route("eth1", "000200C0", "0001", "0", "00FFFFFF"), want: "[eth0 0000:10:00.0]"},
		"a bond, a VLAN and a bridge":    {v4: def("br0", "0"), want: "[br0 0000:20:00.0 0000:20:00.1]"},
		"IPv6 alone":                     {v6: def6("eth1"), want: "[eth1 0000:11:00.0]"},
		"both":                           {v4: def("eth0", "0"), v6: def6("eth1"), want: "[eth0 0000:10:00.0 eth1 0000:11:00.0]"},
		"the lowest metric":              {v4: def("eth1", "200") + def("eth0", "100") + def("eth1", "100"), want: "[eth0 0000:10:00.0 eth1 0000:11:00.0]"},
		"another namespace":              {v4: def("eth0", "0"), pod: true, want: "[]"},
		"a subfunction":                  {v4: def("sf0", "0"), want: "[sf0 0000:11:00.0]"},
		"a virtual interface":            {v4: def("veth0", "0"), want: "[]"},
		"a device that is not on PCI":    {v4: def("hv0", "0"), want: "[]"},
		"a circle":                       {v4: def("loop0", "0"), want: "[]"},
		"the only address":               {v4: route("eth0", "000200C0", "0001", "0", "00FFFFFF") + route("veth0", "0000000A", "0001", "0", "000000FF"), v6: route6("eth0", "fd"+zeros6[2:], "40", "00000100", "00000001"), want: "[eth0 only 0000:10:00.0]"},
		"one address of two":             {v4: route("eth0", "000200C0", "0001", "0", "00FFFFFF") + route("eth1", "000300C0", "0001", "0", "00FFFFFF"), want: "[]"},
		"an address, a default for IPv6": {v4: route("eth0", "000200C0", "0001", "0", "00FFFFFF"), v6: def6("eth1"), want: "[eth1 0000:11:00.0]"},
		"half of the addresses":          {v4: route("eth0", "00000000", "0003", "0", "00000080"), want: "[eth0 only 0000:10:00.0]"},
		"a route that refuses":           {v4: route("eth0", "00000000", "0201", "0", "00000000"), v6: route6("eth0", zeros6, "00", "ffffffff", "00200200"), want: "[]"},
		"a name that is a path":          {v4: def("../../pci", "0") + def("..", "0") + def("/", "0"), want: "[]"},
		"garbage":                        {v4: "\x7fELF\x00\t\t\t\t\t\t\t\x1b[2J\n" + def("eth0", "-1"), v6: strings.Repeat("0 ", 5000) + "\n" + route6("eth0", zeros6, "00", "x", "00000003"), want: "[]"},
		"too large to be read":           {v4: strings.Repeat(def("eth0", "0"), mostRoutes/20), want: "[]"},
		"an interface that is not there": {v4: def("eth9", "0"), want: "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(file, text string) {
				t.Helper()
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			link := func(name, to string) {
				t.Helper()
				for _, d := range []string{filepath.Dir(filepath.Join(dir, name)), filepath.Join(filepath.Dir(filepath.Join(dir, name)), to)} {
					if err := os.MkdirAll(d, 0o755); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			put(RoutesFile, routeHead+tc.v4)
			put(RoutesFileIPv6, tc.v6)
			if !tc.pod {
				put(initialNamespace, "300\n")
			}
			const class, devices = "sys/class/net/", "../../../devices/"
			for iface, device := range map[string]string{
				"eth0": "pci0000:00/0000:00:01.0/0000:10:00.0", "eth1": "pci0000:00/0000:00:02.0/0000:11:00.0",
				"port0": "pci0000:00/0000:00:03.0/0000:20:00.0", "port1": "pci0000:00/0000:00:03.0/0000:20:00.1",
				"sf0": "pci0000:00/0000:00:02.0/0000:11:00.0/mlx5_core.sf.2", "hv0": "LNXSYSTM:00/VMBUS:00/7ad35d50",
			} {
				link(class+iface+"/device", "../"+devices+device)
			}
			for iface, lowers := range map[string][]string{"br0": {"vlan7"}, "vlan7": {"bond0"}, "bond0": {"port0", "port1"}, "hv0": {"eth0"}, "loop0": {"loop1", "loop2"}, "loop1": {"loop0"}, "loop2": {"loop0"}, "veth0": nil} {
				put(class+iface+"/mtu", "1500\n")
				for _, lower := range lowers {
					link(class+iface+"/lower_"+lower, "../"+lower)
				}
			}
			var got []string
			fs, err := host.Open(host.Options{Root: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer fs.Close()
			var st State
			st.defaultRoutes(fs)
			for _, r := range st.DefaultRoutes {
				name := r.Interface
				if r.Only {
					name += " only"
				}
				got = append(got, name+" "+strings.Trim(fmt.Sprint(r.Functions), "[]"))
				if !slices.Contains([]string{"/" + RoutesFile, "/" + RoutesFileIPv6}, r.File) {
					t.Errorf("from %s", r.File)
				}
			}
			if fmt.Sprint(got) != tc.want {
				t.Errorf("%v, want %s", got, tc.want)
			}
			if large := name == "too large to be read"; large != (len(st.Problems) > 0) {
				t.Errorf("problems %v", st.Problems)
			}
		})
	}
}

// TestWithoutAddresses: what is kept of the routes leads to the same interfaces, and has no
// address.
func TestWithoutAddresses(t *testing.T) {
	v4 := routeHead + route("bond0", "00000000", "0003", "100", "00000000") + route("bond0", "000200C0", "0001", "0", "00FFFFFF")
	v6 := route6("bond0", zeros6, "00", "00000400", "00000003") + route6("bond0", "fd"+zeros6[2:], "40", "00000100", "00000001")
	for name, table := range map[string]string{RoutesFile: v4, RoutesFileIPv6: v6} {
		parse := parseRoute
		if name == RoutesFileIPv6 {
			parse = parseRouteIPv6
		}
		kept := string(WithoutAddresses(name, []byte(table)))
		if got := defaultInterfaces(kept, parse); !slices.Equal(got, []string{"bond0"}) {
			t.Errorf("%s: %v in %q", name, got, kept)
		}
		if name == RoutesFile {
			only := string(WithoutAddresses(name, []byte(routeHead+route("eth0", "000200C0", "0001", "0", "00FFFFFF"))))
			if names := otherInterfaces(only); !slices.Equal(names, []string{"eth0"}) || defaultInterfaces(only, parse) != nil || strings.Contains(only, "C0") {
				t.Errorf("%s: %v in %q", name, names, only)
			}
		}
		for _, address := range []string{"010200C0", "000200C0", "fd00"} {
			if strings.Contains(kept, address) {
				t.Errorf("%s: %s in %q", name, address, kept)
			}
		}
	}
	if got := string(WithoutAddresses(RoutesFile, []byte("C0A80101 192.168.1.1\n"))); got != "\n" {
		t.Errorf("%q of garbage", got)
	}
}

// FuzzRoutes: whatever a table says, interfaces have names that are safe in a path.
func FuzzRoutes(f *testing.F) {
	f.Add(routeHead + route("eth0", "00000000", "0003", "0", "00000000"))
	f.Add(route6("eth0", zeros6, "00", "00000400", "00000003"))
	f.Fuzz(func(t *testing.T, table string) {
		for _, name := range slices.Concat(defaultInterfaces(table, parseRoute), defaultInterfaces(table, parseRouteIPv6), otherInterfaces(table)) {
			if filepath.Base(name) != name || len(name) > 15 || name == ".." {
				t.Errorf("%q", name)
			}
		}
		WithoutAddresses(RoutesFile, []byte(table))
		WithoutAddresses(RoutesFileIPv6, []byte(table))
	})
}
