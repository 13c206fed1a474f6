package report_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/expect"
	"gdr-features/internal/report"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/tristate"
)

// subfunctions is a copy of a machine whose RDMA devices are those of subfunctions.
func subfunctions(m *machine.Machine) *machine.Machine {
	changed := *m
	changed.Functions = slices.Clone(m.Functions)
	for i := range changed.Functions {
		f := &changed.Functions[i]
		f.Attrs = maps.Clone(f.Attrs)
		if f.Attrs["rdma"] != "" {
			f.Attrs["aux"] = fmt.Sprintf("mlx5_core.sf.%d", i)
		}
	}
	return &changed
}

// nearestRate reads a machine and returns what expecting at least a rate of the nearest NICs
// gives, unknown where nothing is compared.
func nearestRate(t *testing.T, dir string, gbps int) (r report.Report, state tristate.State) {
	t.Helper()
	file, err := expect.Parse(fmt.Appendf(nil, "types:\n- name: any\n  match: {product: \"*\"}\n  expect: {nearest-rate: \">= %d\"}\n", gbps))
	if err != nil {
		t.Fatal(err)
	}
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fs.Close() }()
	r = report.Collect(t.Context(), fs, report.Options{Expect: func() (*expect.File, error) { return file, nil }})
	for _, c := range r.Expected.Checks {
		if c.Name == "nearest-rate" {
			state = c.State
		}
	}
	return r, state
}

// TestRateIsJudgedAlike: the label gdr.rate and the expectation nearest-rate are about the
// same ports, in every state of every machine, with subfunctions too. A
// north-south NIC, which the label alone counts, decides on none of these machines.
func TestRateIsJudgedAlike(t *testing.T) {
	t.Parallel()
	known, unknown := 0, 0
	for i, m := range testsize.Share(machine.All(t, machinesDir)) {
		for kind, m := range map[string]*machine.Machine{"functions": m, "subfunctions": subfunctions(m)} {
			for s, dir := range m.Trees(t, testsize.FewInTurn(i, m.States())) {
				r, some := nearestRate(t, dir, 1)
				what := strings.Join([]string{m.Name, kind, s.Name}, " ")
				switch rate := r.Verdict.Rate; {
				case rate == nil && r.Verdict.Undecided.Rate:
					unknown++
					if some == tristate.False {
						t.Errorf("%s: the rate is unknown, and 1 or more proven not to be", what)
					}
				case rate == nil: // no GPU, no NIC
					if some == tristate.True {
						t.Errorf("%s: no rate, and 1 or more proven", what)
					}
				default:
					known++
					_, most := nearestRate(t, dir, *rate) // a port must be active, also for >= 0
					_, more := nearestRate(t, dir, *rate+1)
					if most != tristate.Of(*rate > 0) || more != tristate.False {
						t.Errorf("%s: gdr.rate is %d; expected to be >= that: %v, >= one more: %v", what, *rate, most, more)
					}
				}
			}
		}
	}
	if !testsize.Partial() && known < 100 {
		t.Errorf("only %d known rates, %d unknown", known, unknown)
	}
}
