package monitor_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gdr-features/host"
	"gdr-features/internal/expect"
	"gdr-features/internal/monitor"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
)

// maxSeries is how many series of our own a node has at most without --metrics-pairs. Those
// of Go and of the process are not counted.
const maxSeries = 40

// violated expects of a machine what it is not, in every key of the file.
const violated = `
types:
  - name: other
    match: any
    expect:
      gpus: {count: 99, pcie: full}
      nics: {count: 99, pcie: full, active-ports: 99, link: ethernet, rate: 1, firmware: "< 1"}
      level: PIX
      nearest-rate: 1
      driver: 1
      modules: open
      mofed: inbox
      mechanism: both
      iommu: "off"
      acs: redirect
      ready: true
`

// large describes a machine with GPUs and NICs, each below a root port of its own.
func large(gpus, nics int) string {
	var b strings.Builder
	b.WriteString("nodes 1\npci0000:10 numa=0\n")
	for i := range gpus {
		fmt.Fprintf(&b, "  0000:10:%02x.0 port 8086:352a acs=0000\n    0000:%02x:00.0 gpu 10de:2330\n", i, 0x20+i)
	}
	b.WriteString("pci0000:80 numa=0\n")
	for i := range nics {
		fmt.Fprintf(&b, "  0000:80:%02x.0 port 8086:352a acs=0000\n    0000:%02x:00.0 ib 15b3:1021 rdma=mlx5_%d\n", i, 0x90+i, i)
	}
	return b.String()
}

// worst reads such a machine in a state in which it violates every expectation.
func worst(t *testing.T, gpus, nics int) *report.Report {
	t.Helper()
	m, err := machine.Parse(large(gpus, nics))
	if err != nil {
		t.Fatal(err)
	}
	s, _ := machine.StateNamed("closed-no-peermem")
	dir := m.Tree(t, s)
	for _, device := range []string{"0000:20:00.0", "0000:90:00.0"} {
		if err := os.WriteFile(filepath.Join(dir, "sys/bus/pci/devices", device, "current_link_width"), []byte("1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	want, err := expect.Parse([]byte(violated))
	if err != nil {
		t.Fatal(err)
	}
	r := report.Collect(t.Context(), fs, report.ForPublishing.Expecting(func() (*expect.File, error) { return want, nil }))
	return &r
}

// TestSeries: how many series a node has does not depend on its size, and is small even
// with both publishers and every expectation violated. With Pairs, there is one more for each
// pair.
func TestSeries(t *testing.T) {
	for _, size := range []struct{ gpus, nics int }{{8, 10}, {8, 32}} {
		r := worst(t, size.gpus, size.nics)
		for _, c := range r.Expected.Checks {
			if c.State.String() != "false" {
				t.Errorf("%s is %v", c.Name, c.State)
			}
		}
		for _, pairs := range []bool{false, true} {
			m := monitor.New("v1", []string{"file", "nodefeature"}, time.Minute, time.Now)
			m.Pairs = pairs
			m.Read(r, time.Millisecond, true)
			for _, publisher := range []string{"file", "nodefeature"} {
				m.Published(publisher, true, nil)
				m.Published(publisher, false, errors.New("down"))
			}
			_, body := get(t, m, "/metrics")
			all, pair := 0, 0
			names := map[string]int{}
			for line := range strings.Lines(body) {
				switch {
				case strings.HasPrefix(line, "gdr_pair_level{"):
					pair++
				case strings.HasPrefix(line, "gdr_"):
					all++
					name, _, _ := strings.Cut(line, " ")
					name, _, _ = strings.Cut(name, "{")
					names[name]++
				}
			}
			wantPairs := 0
			if pairs {
				wantPairs = size.gpus * size.nics
			}
			if all != maxSeries || names["gdr_finding"] != 2 || !strings.Contains(body, `{check="",code="more",status=""} 1`) || pair != wantPairs {
				t.Errorf("%d GPUs and %d NICs: %d series, want at most %d, and %d of pairs, want %d: %v", size.gpus, size.nics, all, maxSeries, pair, wantPairs, names)
			}
		}
	}
}
