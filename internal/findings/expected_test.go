package findings_test

import (
	"strings"
	"testing"

	"gdr-features/internal/expect"
	"gdr-features/internal/findings"
	"gdr-features/test/sample"
	"gdr-features/tristate"
)

// TestExpected: a finding for each deviation, or a single one if there is none; no
// finding without expectations.
func TestExpected(t *testing.T) {
	for _, test := range []struct {
		r    expect.Result
		want string
	}{
		{expect.Result{NoType: true, Machine: `product "X"`}, `UNKNOWN no machine type of the file matches: product "X"`},
		{expect.Result{Machine: `no gpu`}, `UNKNOWN cannot determine which machine type applies: no gpu`},
		{expect.Result{Type: "a", State: tristate.True, Checks: []expect.Check{{State: tristate.True}, {State: tristate.True}}}, "OK a: as expected (2 of 2)"},
		{expect.Result{Type: "a", Checks: []expect.Check{
			{State: tristate.True}, {State: tristate.False, Expected: "8 GPUs", Found: "7"}, {State: tristate.Unknown, Expected: "ACS clear"},
		}}, "FAIL a: 8 GPUs expected, 7 found\nUNKNOWN a: ACS clear expected, actual value unknown"},
		{expect.Result{}, ""},
	} {
		var lines []string
		for _, f := range findings.All(sample.Ready().Judge(), &test.r) {
			if f.Check == "expected" {
				lines = append(lines, string(f.Status)+" "+f.Detail)
			}
		}
		if got := strings.Join(lines, "\n"); got != test.want {
			t.Errorf("%s\nwant %s", got, test.want)
		}
	}
}
