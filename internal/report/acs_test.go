package report_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
)

// withACS is a copy of a machine whose bridges have these ACS control registers in turn.
func withACS(m *machine.Machine, control ...string) *machine.Machine {
	changed := *m
	changed.Functions = slices.Clone(m.Functions)
	for i := range changed.Functions {
		if f := &changed.Functions[i]; f.IsBridge() {
			f.Attrs = maps.Clone(f.Attrs)
			f.Attrs["acs"] = control[i%len(control)]
		}
	}
	return &changed
}

// TestACSIsJudgedAlike: the label gdr.acs and the check acs say the same of every machine in
// every state, whatever the bridges have: without the label the check is open; where the label
// is clear so is the check; where it is redirect, the check says that some bridges redirect,
// and either warns or says why that is right.
func TestACSIsJudgedAlike(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i, m := range testsize.Share(machine.All(t, machinesDir)) {
		controls := [][]string{nil, {"0000"}, {"0001"}, {"001d"}, {"0000", "001c"}, {"0015", "0019", "001c"}, {"0020"}}
		for _, control := range testsize.FewInTurn(i, controls) {
			m := m
			if control != nil {
				m = withACS(m, control...)
			}
			for s, dir := range m.Trees(t, testsize.FewInTurn(i/8, m.States())) {
				r := collect(t, dir, report.ForCheck.What)
				at := slices.IndexFunc(r.Findings, func(f finding.Finding) bool { return f.Check == "acs" })
				if at < 0 {
					continue // hardware that is not capable is not judged further
				}
				acs, is := r.Findings[at], r.Labels[label.ACS]
				if want := acsSays(r.Labels[label.ACS], acs); want != "" {
					t.Errorf("%s with ACS %s, %s: gdr.acs=%s, check says %s %s: %s", m.Name, control, s.Name, is, acs.Status, acs.Detail, want)
				}
				seen[fmt.Sprint(is, " ", acs.Status, " ", acs.Code)]++
			}
		}
	}
	for _, want := range []string{" UNKNOWN ACSUnreadable", "clear OK ", "redirect OK ", "redirect WARN ACSRedirect"} {
		if seen[want] == 0 && !testsize.Partial() {
			t.Errorf("nothing is %q: %v", want, seen)
		}
	}
}

// acsSays returns what a finding should say beside a label; "" for what it says.
func acsSays(is string, acs finding.Finding) string {
	why := strings.Contains(acs.Detail, "as this platform needs it") || strings.Contains(acs.Detail, "passes the root complex anyway")
	switch {
	case is == "" && acs.Status != finding.StatusUnknown:
		return "UNKNOWN"
	case is == "clear" && (acs.Status != finding.StatusOK || acs.Detail != "clear"):
		return "OK clear"
	case is == "redirect" && acs.Status == finding.StatusOK && (!strings.HasPrefix(acs.Detail, "redirect on ") || !why):
		return "where, and why that is right"
	case is == "redirect" && acs.Status != finding.StatusOK && (acs.Status != finding.StatusWarn || !strings.Contains(acs.Detail, "redirect")):
		return "WARN"
	}
	return ""
}

// TestACSByGPU: redirection that Grace needs is right there, and not for another GPU of the
// same machine; the pattern that keeps data-direct from working is not right anywhere.
func TestACSByGPU(t *testing.T) {
	const grace = `arm
pci0009:00 numa=0
  0009:00:00.0 port 10de:22b1 acs=001c
    0009:01:00.0 switch 15b3:197b
      0009:02:00.0 port 15b3:197b acs=%s
        0009:03:00.0 gpu 10de:31c2 group=1
      0009:02:01.0 port 15b3:197b acs=%s
        0009:04:00.0 dma 15b3:2100 vpd=VU:cx8-0 group=%d
pci0000:00 numa=0
  0000:00:00.0 port 10de:22b2
    0000:01:00.0 ib 15b3:1023 rdma=mlx5_0 vpd=VU:cx8-0
`
	const other = `pci0010:00 numa=0
  0010:00:00.0 port 10de:22b1 acs=0000
    0010:01:00.0 switch 1000:c030
      0010:02:00.0 port 1000:c030 acs=001d
        0010:03:00.0 gpu 10de:2330
      0010:02:01.0 port 1000:c030 acs=001d
        0010:04:00.0 ib 15b3:1021 rdma=mlx5_1
`
	right := fmt.Sprintf(grace, "0015", "0019", 1)
	for _, tc := range []struct{ name, text, want string }{
		{"right for Grace", right, "OK "},
		{"a pattern that sets the functions apart", fmt.Sprintf(grace, "001d", "001d", 2), "WARN DataDirectApart 0009:00:00.0, 0009:02:00.0"},
		{"another GPU beside it", right + other, "WARN ACSRedirect 0010:02:00.0, 0010:02:01.0"},
	} {
		r := collect(t, parse(t, tc.text).Tree(t, state(t, "ready")), report.ForCheck.What)
		for _, f := range r.Findings {
			if f.Check != "acs" {
				continue
			}
			if got := fmt.Sprint(f.Status, " ", f.Code); !strings.HasPrefix(tc.want, got) || !strings.Contains(f.Detail, strings.TrimPrefix(strings.TrimPrefix(tc.want, got), " ")) {
				t.Errorf("%s: %s %s, want %s", tc.name, got, f.Detail, tc.want)
			}
		}
		if r.Labels[label.ACS] != "redirect" {
			t.Errorf("%s: gdr.acs=%q", tc.name, r.Labels[label.ACS])
		}
	}
}
