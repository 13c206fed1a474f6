package findings_test

import (
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
)

// TestNodeNetwork: what is said of the node's default route over interfaces of several kinds;
// "" for nothing.
func TestNodeNetwork(t *testing.T) {
	const warns, far = "WARN the node's default route is over a NIC that is near a GPU, so that its own traffic is beside that of the GPUs, and a reload of the NIC's driver cuts it off: ",
		"OK the node's default route is over a NIC that is not near a GPU; a reload of the NIC's driver, which the Network Operator's driver Pod does, cuts the node off all the same: "
	onlyAddress := strings.ReplaceAll(warns, "default route", "only network address")
	for name, tc := range map[string]struct{ iface, want string }{
		"the only address":     {"", onlyAddress + "0000:14:00.0 (eth0, mlx5_core)"},
		"near a GPU":           {"eth0", warns + "0000:14:00.0 (eth0, mlx5_core)"},
		"near none":            {"eth1", far + "0000:85:00.0 (eth1, mlx5_core)"},
		"no interface of ours": {"eno1", ""},
		"a hostile name":       {"\x1b[2Jeth0", ""},
		"a path":               {"../net/eth0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := ready(t)
			defaultRoute(tc.iface)(&s)
			if tc.iface == "" {
				s.Files["proc/self/net/route"] = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\n"
			}
			fs, err := host.Open(host.Options{Root: text(t, "managed").Tree(t, s)})
			if err != nil {
				t.Fatal(err)
			}
			defer fs.Close()
			r, got := report.Collect(t.Context(), fs, report.ForCheck), ""
			for _, f := range r.Findings {
				if f.Check == "node-network" {
					got = string(f.Status) + " " + f.Detail
				}
			}
			if got != tc.want || len(r.Problems) > 0 {
				t.Errorf("%q, want %q; problems %v", got, tc.want, r.Problems)
			}
		})
	}
}

// networkFailures are those of the node's own network.
func networkFailures() []failure {
	return []failure{
		{
			name: "the node's default route is over a near NIC, whose driver a Pod reloads", from: github + "Mellanox/network-operator/issues/2176", machine: "managed",
			broken: defaultRoute("eth0"), code: "DefaultRouteOnNearNIC", fixed: defaultRoute("eth1"), fix: "driver Pod",
		},
		{
			name: "the default route over a NIC of the management is right", from: github + "NVIDIA/NVSentinel/issues/1529", machine: "managed",
			broken: defaultRoute("eth0"), code: "DefaultRouteOnNearNIC", fixed: defaultRoute("eno1"),
		},
		{
			name: "a Pod's default route is not the node's", from: github + "NVIDIA/NVSentinel/issues/1361", machine: "managed",
			broken: defaultRoute("eth0"), code: "DefaultRouteOnNearNIC", fixed: func(s *machine.State) { delete(s.Files, "proc/sys/net/core/netdev_budget") },
		},
	}
}
