package report_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/source"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/tristate"
)

// The codes of which one stands beside the label gdr.degraded where it is true, and those that make
// it true by themselves.
var (
	codesOfDegraded = []finding.Code{
		"LinkDegraded", "NearPortDown", "NICUnbound", "PortDown", "NICWithoutRDMA",
		"NoActivePort", "NoRDMADevice", "NICDriverNotLoaded",
	}
	alwaysDegraded = []finding.Code{"NearPortDown", "NICUnbound"}
)

// disagree says how the label and the findings of a report contradict each other; "" for not at all.
func disagree(r *report.Report) string {
	value, has := r.Labels[label.Degraded], map[finding.Code]bool{}
	for _, f := range r.Findings {
		if f.Status == finding.StatusFail || f.Status == finding.StatusWarn {
			has[f.Code] = true
		}
	}
	said := func(codes []finding.Code) bool {
		return slices.ContainsFunc(codes, func(c finding.Code) bool { return has[c] })
	}
	nearLink, unread := false, false
	for _, l := range r.Verdict.Links {
		nearLink = nearLink || l.Near && len(l.Lacks) > 0
		unread = unread || l.Near && l.Full == tristate.Unknown && !r.Guest()
	}
	linksOK := slices.ContainsFunc(r.Findings, func(f finding.Finding) bool {
		return f.Check == "link" && f.Status == finding.StatusOK
	})
	switch {
	case unread && linksOK:
		return "check says OK of links, and one on the way is not known"
	case value == "true" && !said(codesOfDegraded):
		return "true, and no finding says why"
	case value != "true" && r.Labels[label.Capable] == "true" && said(alwaysDegraded):
		return fmt.Sprintf("%q beside the findings %v", value, has)
	case value == "false" && nearLink:
		return "false, with a slow link on the way to a near NIC"
	case nearLink && !has["LinkDegraded"] && r.Labels[label.Capable] == "true":
		return "a slow link, and check does not say so"
	case value != "" && (r.Labels[label.Capable] != "true" || r.Unknown[label.Degraded]):
		return "a value where nothing is judged"
	case value == "" && r.Labels[label.Capable] == "true" && !r.Unknown[label.Degraded] && !r.Verdict.Hidden:
		return "neither a value nor unknown"
	}
	return ""
}

// TestDegradedAgrees: on every machine in every state, and with links, ports and drivers that are
// changed at random, the label gdr.degraded and the findings say the same, and what labels, check and
// the agent read gives the same label.
func TestDegradedAgrees(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(39, 1))
	seen := map[string]int{}
	check := func(m *machine.Machine, state, dir string) {
		r := collect(t, dir, report.ForPublishing.What)
		if why := disagree(&r); why != "" {
			t.Errorf("%s, %s: %s", m.Name, state, why)
		}
		seen[r.Labels[label.Degraded]]++
		other := collect(t, dir, source.What{})
		if got, want := other.Labels[label.Degraded], r.Labels[label.Degraded]; got != want {
			t.Errorf("%s, %s: labels say %q, the agent %q", m.Name, state, got, want)
		}
	}
	for i, m := range testsize.Share(machine.All(t, machinesDir)) {
		for s, dir := range m.Trees(t, testsize.FewInTurn(i, m.States())) {
			check(m, s.Name, dir)
		}
		dir := m.Tree(t, m.Ready())
		for range 6 {
			spoil(t, random, m, dir)
			check(m, "spoilt", dir)
		}
	}
	if len(seen) != 3 && !testsize.Partial() {
		t.Errorf("values seen: %v", seen)
	}
	t.Logf("values seen: %v", seen)
}

// spoil changes some links of a machine, and sets ports of some NICs down or takes their drivers.
func spoil(t *testing.T, random *rand.Rand, m *machine.Machine, dir string) {
	t.Helper()
	for i := range m.Functions {
		f := &m.Functions[i]
		if random.IntN(8) == 0 {
			link(t, dir, f.Address, "current_link_width", []string{"4", "16", "0"}[random.IntN(3)])
		}
		if name := f.Attrs["rdma"]; name != "" && random.IntN(4) == 0 {
			down(t, dir, name)
		}
		if f.IsNIC() && random.IntN(6) == 0 {
			unbind(t, dir, f.Address)
		}
	}
}

// down sets the port of an RDMA device down, where it is there.
func down(t *testing.T, dir, device string) {
	t.Helper()
	portState(t, dir, device, "1: DOWN")
}

func portState(t *testing.T, dir, device, text string) {
	t.Helper()
	file := filepath.Join(dir, "sys/class/infiniband", device, "ports/1/state")
	if _, err := os.Stat(file); err != nil {
		return
	}
	if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// unbind takes the driver of a NIC, and with it its RDMA devices.
func unbind(t *testing.T, dir, address string) {
	t.Helper()
	fn := filepath.Join(dir, "sys/bus/pci/devices", address)
	devices, _ := filepath.Glob(filepath.Join(fn, "infiniband/*"))
	for _, d := range devices {
		_ = os.Remove(filepath.Join(dir, "sys/class/infiniband", filepath.Base(d)))
	}
	_, _ = os.RemoveAll(filepath.Join(fn, "infiniband")), os.Remove(filepath.Join(fn, "driver"))
}

// unreadDriver puts a file in the place of the link to the driver.
func unreadDriver(t *testing.T, dir, address string) {
	t.Helper()
	path := filepath.Join(dir, "sys/bus/pci/devices", address, "driver")
	if err := errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// TestDegraded: what makes gdr.degraded true, and what does not, on a machine of a GPU with one NIC
// beside it and one farther away.
func TestDegraded(t *testing.T) {
	const gpu, near, far, upper, lower = "0000:18:00.0", "0000:19:00.0", "0000:38:00.0", "0000:15:01.0", "0000:16:00.0"
	slow := func(address string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { link(t, dir, address, "current_link_width", "4") }
	}
	for name, test := range map[string]struct {
		change func(*testing.T, string)
		want   string
		codes  string
	}{
		"healthy":                    {func(*testing.T, string) {}, "false", ""},
		"the GPU's link":             {slow(gpu), "true", "LinkDegraded"},
		"the near NIC's link":        {slow(near), "true", "LinkDegraded"},
		"the far NIC's link":         {slow(far), "false", "LinkDegraded"},
		"the link above the switch":  {slow(lower), "true", "LinkDegraded"},
		"its upper end alone":        {slow(upper), "true", "LinkDegraded"},
		"a link that cannot be read": {func(t *testing.T, dir string) { link(t, dir, near, "current_link_width", "?") }, "", ""},
		"a slot that does not say": {func(t *testing.T, dir string) {
			slow(near)(t, dir)
			link(t, dir, "0000:17:01.0", "max_link_width", "?")
		}, "", "LinkDegraded"},
		"the near port":                 {func(t *testing.T, dir string) { down(t, dir, "mlx5_0") }, "true", "NearPortDown PortDown"},
		"the far port":                  {func(t *testing.T, dir string) { down(t, dir, "mlx5_1") }, "false", "PortDown"},
		"a far NIC without driver":      {func(t *testing.T, dir string) { unbind(t, dir, far) }, "true", "NICUnbound"},
		"a far NIC's driver is unread":  {func(t *testing.T, dir string) { unreadDriver(t, dir, far) }, "", ""},
		"a port that cannot be read":    {func(t *testing.T, dir string) { portState(t, dir, "mlx5_0", "") }, "", ""},
		"a slow link and unread others": {func(t *testing.T, dir string) { slow(near)(t, dir); link(t, dir, gpu, "current_link_width", "?") }, "true", "LinkDegraded"},
	} {
		text := strings.NewReplacer("eth 15b3:101f", "ib 15b3:1021").Replace(hostNICNearest)
		m := parse(t, text)
		dir := m.Tree(t, state(t, "ready"))
		test.change(t, dir)
		r := collect(t, dir, report.ForPublishing.What)
		codes := map[string]bool{}
		for _, f := range r.Findings {
			if slices.Contains(codesOfDegraded, f.Code) {
				codes[string(f.Code)] = true
			}
		}
		got := strings.Join(slices.Sorted(maps.Keys(codes)), " ")
		if r.Labels[label.Degraded] != test.want || got != test.codes || disagree(&r) != "" {
			t.Errorf("%s: %q with %q, want %q with %q %s", name, r.Labels[label.Degraded], got, test.want, test.codes, disagree(&r))
		}
	}
}

// TestDegradedAllAside: where every NIC is for other traffic, all of them are for GPUs, and one
// without driver is missed.
func TestDegradedAllAside(t *testing.T) {
	m := parse(t, strings.ReplaceAll(hostNICNearest, "ib 15b3:1021", "eth 15b3:101f"))
	dir := m.Tree(t, state(t, "ready"))
	unbind(t, dir, "0000:38:00.0")
	r := collect(t, dir, report.ForPublishing.What)
	unbound := slices.ContainsFunc(r.Findings, func(f finding.Finding) bool { return f.Code == "NICUnbound" })
	if r.Labels[label.Degraded] != "true" || !unbound {
		t.Errorf("gdr.degraded is %q, NICUnbound %v", r.Labels[label.Degraded], unbound)
	}
}

// TestLinkUnread: a link on the way that cannot be read is not at full width.
func TestLinkUnread(t *testing.T) {
	for _, tt := range []struct {
		unread []string
		want   string
	}{
		{[]string{"0000:18:00.0"}, "GPU0 0000:18:00.0"},
		{[]string{"0000:15:01.0", "0000:16:00.0"}, "the link between 0000:15:01.0 and 0000:16:00.0 above GPU0 0000:18:00.0"},
	} {
		dir := parse(t, hostNICNearest).Tree(t, state(t, "ready"))
		for _, function := range tt.unread {
			link(t, dir, function, "current_link_width", "63")
		}
		r := collect(t, dir, report.ForPublishing.What)
		i := slices.IndexFunc(r.Findings, func(f finding.Finding) bool { return f.Check == "link" })
		if i < 0 || r.Findings[i].Status != finding.StatusUnknown || !strings.HasSuffix(r.Findings[i].Detail, ": "+tt.want) || !r.Unknown[label.Degraded] {
			t.Errorf("%v: %+v", tt.unread, r.Findings)
		}
	}
}

// TestAdviceWithoutDrivers: drivers that do not answer take no warning away that is about others.
func TestAdviceWithoutDrivers(t *testing.T) {
	dir := parse(t, hostNICNearest).Tree(t, state(t, "ready"))
	link(t, dir, "0000:18:00.0", "current_link_width", "4")
	rd := reader(t, dir)
	late, cancel := context.WithCancel(t.Context())
	slow := func(r report.Report) bool {
		return slices.ContainsFunc(r.Findings, func(f finding.Finding) bool { return f.Code == "LinkDegraded" })
	}
	if r := rd.Read(t.Context(), report.All); !slow(r) {
		t.Fatal("no LinkDegraded")
	}
	cancel()
	if r := rd.Read(late, report.Drivers); !slow(r) || !r.Late {
		t.Errorf("late %v, with LinkDegraded %v", r.Late, slow(r))
	}
}

// TestDegradedHidden: what links never tell in a virtual machine keeps no label that was published
// before. What could not be read this time does, and so do links of a machine that put a card to
// sleep.
func TestDegradedHidden(t *testing.T) {
	const near = "0000:19:00.0"
	hide := func(t *testing.T, dir string) { link(t, dir, near, "max_link_width", "Unknown") }
	for _, tt := range []struct {
		name    string
		virtual bool
		change  func(*testing.T, string)
		want    string
		kept    bool
	}{
		{"links that tell", true, func(*testing.T, string) {}, "false", false},
		{"a link that does not tell", true, hide, "", false},
		{"and a NIC without driver", true, func(t *testing.T, dir string) { hide(t, dir); unbind(t, dir, near) }, "true", false},
		{"and a port that cannot be read", true, func(t *testing.T, dir string) { hide(t, dir); portState(t, dir, "mlx5_0", "") }, "", true},
		{"and a link that cannot be read", true, func(t *testing.T, dir string) { hide(t, dir); link(t, dir, near, "current_link_width", "") }, "", true},
		{"no virtual machine", false, hide, "", true},
	} {
		text := strings.NewReplacer("eth 15b3:101f", "ib 15b3:1021").Replace(hostNICNearest)
		if tt.virtual {
			text = "virtual\n" + text
		}
		m := parse(t, text)
		dir := m.Tree(t, state(t, "ready"))
		tt.change(t, dir)
		r := collect(t, dir, report.ForPublishing.What)
		if got, kept := r.Labels[label.Degraded], r.Unknown[label.Degraded]; got != tt.want || kept != tt.kept || disagree(&r) != "" {
			t.Errorf("%s: %q, kept %t; want %q, %t %s", tt.name, got, kept, tt.want, tt.kept, disagree(&r))
		}
	}
}
