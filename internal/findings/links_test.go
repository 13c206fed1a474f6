package findings_test

import (
	"maps"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/finding"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
)

// twoSwitches is a GPU below two switches, one of them its card's own, and a NIC below
// the first of them; a NIC that is near to no GPU is below another.
const twoSwitches = `nodes 2
pci0000:10 numa=0
  0000:10:01.0 port 1022:14ab
    0000:11:00.0 switch 1000:c030
      0000:12:00.0 port 1000:c030
        0000:13:00.0 switch 1022:1500
          0000:14:00.0 port 1022:1501
            0000:15:00.0 gpu 10de:2330
            0000:15:00.1 040300 10de:22a3
      0000:12:01.0 port 1000:c030
        0000:16:00.0 ib 15b3:1021 rdma=mlx5_0
pci0000:80 numa=1
  0000:80:01.0 port 1022:14ab
    0000:81:00.0 switch 1000:c030
      0000:82:00.0 port 1000:c030
        0000:84:00.0 ib 15b3:1021 rdma=mlx5_1
`

// TestLinksOnThePath: which links of bridges are judged, and what of them.
func TestLinksOnThePath(t *testing.T) {
	const width, speed, most, fastest = "current_link_width", "current_link_speed", "max_link_width", "max_link_speed"
	type values map[string]string // by function and file
	for name, tc := range map[string]struct {
		change func(string) string
		files  values
		want   string // "" for links that are full
	}{
		"all full":                  {nil, nil, ""},
		"between the switches":      {nil, values{"13:00.0/" + width: "4", "12:00.0/" + width: "4"}, "the link between 0000:12:00.0 and 0000:13:00.0 above GPU0 0000:15:00.0 runs at x4 of x16, which leaves 126 of 504 Gbit/s"},
		"both":                      {nil, values{"11:00.0/" + width: "8", "11:00.0/" + speed: "16.0 GT/s PCIe"}, "the link between 0000:10:01.0 and 0000:11:00.0 above GPU0 0000:15:00.0 runs at x8 of x16 and 16 of 32 GT/s, which leaves 126 of 504 Gbit/s"},
		"the root port alone":       {nil, values{"10:01.0/" + speed: "2.5 GT/s PCIe"}, "the link between 0000:10:01.0 and 0000:11:00.0 above GPU0 0000:15:00.0 runs at 2.5 of 32 GT/s, which leaves 32 of 504 Gbit/s"},
		"slow above a GPU's switch": {nil, values{"13:00.0/" + speed: "2.5 GT/s PCIe"}, ""},
		"both ends can no more":     {nil, values{"11:00.0/" + width: "8", "10:01.0/" + width: "8", "10:01.0/" + most: "8"}, ""},
		"the other end not known":   {nil, values{"11:00.0/" + width: "8", "10:01.0/" + most: "-"}, ""},
		"far from every GPU":        {nil, values{"81:00.0/" + width: "1"}, ""},
		"hypervisor":                {func(text string) string { return "virtual\n" + text }, values{"11:00.0/" + width: "1"}, ""},
		"EC2's bridges": {func(text string) string {
			return "arm\ndmi Amazon EC2 | p6e-gb200.36xlarge\n" + strings.ReplaceAll(text, "1000:c030", "1d0f:0200")
		}, values{"11:00.0/" + speed: "8.0 GT/s PCIe"}, ""},
		"no root port": {func(text string) string {
			return strings.Replace(strings.Replace(text, "  0000:10:01.0 port 1022:14ab\n", "", 1), "    0000:11:00.0 switch", "  0000:11:00.0 switch", 1)
		}, values{"12:00.0/" + width: "1", "13:00.0/" + width: "1"}, ""},
		"garbage": {nil, values{"11:00.0/" + width: "-1", "11:00.0/" + speed: "\x1b[2J", "10:01.0/" + fastest: "NaN GT/s", "10:01.0/" + most: strings.Repeat("9", 5000), "13:00.0/" + width: "255", "12:00.0/" + speed: "1e999 GT/s"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := twoSwitches
			if tc.change != nil {
				text = tc.change(text)
			}
			m, err := machine.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			s := ready(t)
			for file, value := range tc.files {
				s.Files = merged(s.Files, "sys/bus/pci/devices/0000:"+file, value)
			}
			fs, err := host.Open(host.Options{Root: m.Tree(t, s)})
			if err != nil {
				t.Fatal(err)
			}
			defer fs.Close()
			for _, f := range report.Collect(t.Context(), fs, report.ForCheck).Findings {
				if f.Check != "link" {
					continue
				}
				if got := (map[bool]string{true: f.Detail})[f.Status == finding.StatusWarn]; got != tc.want {
					t.Errorf("%s %q, want %q", f.Status, f.Detail, tc.want)
				}
				for _, seen := range f.Evidence {
					if !strings.Contains(seen, "_link_") {
						t.Errorf("evidence %q", seen)
					}
				}
				if tc.want != "" && len(f.Evidence) == 0 {
					t.Error("no evidence")
				}
				return
			}
			t.Error("links were not judged")
		})
	}
}

func merged(files map[string]string, name, text string) map[string]string {
	all := map[string]string{name: text + "\n"}
	maps.Copy(all, files)
	return all
}

// linkFailures are those of links between bridges.
func linkFailures() []failure {
	const sichek = github + "scitix/sichek/pull/96"
	return []failure{
		{
			name: "a switch's uplink and the root port are trained down", from: sichek, broken: uplink("1", "2.5 GT/s PCIe"), code: "LinkDegraded",
			fixed: uplink("16", "32.0 GT/s PCIe"), fix: "cold boot",
		},
		{name: "a root port alone shows it", from: sichek, broken: file("sys/bus/pci/devices/0000:10:01.0/current_link_width", "8\n"), code: "LinkDegraded", fixed: file("sys/bus/pci/devices/0000:10:01.0/current_link_width", "16\n")},
		{
			name: "a slower root port is not degraded", from: sichek, broken: uplink("16", "16.0 GT/s PCIe"), code: "LinkDegraded",
			fixed: all(uplink("16", "16.0 GT/s PCIe"), file("sys/bus/pci/devices/0000:10:01.0/max_link_speed", "16.0 GT/s PCIe\n")),
		},
		{
			name: "the bridges of a hypervisor have no links", broken: uplink("1", "8.0 GT/s PCIe"), code: "LinkDegraded",
			fixedOn: "guest", fixed: uplink("1", "8.0 GT/s PCIe"),
		},
	}
}
