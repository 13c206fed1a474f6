package expect

import (
	"strings"
	"testing"

	"gdr-features/tristate"
)

func TestRange(t *testing.T) {
	for _, test := range []struct {
		text         string
		proven, more int
		want         tristate.State
	}{
		{"8", 8, 0, tristate.True},
		{"8", 7, 0, tristate.False},
		{"8", 9, 0, tristate.False},
		{"8", 7, 1, tristate.Unknown},
		{"8", 8, 1, tristate.Unknown},
		{"8", 9, 1, tristate.False},
		{"8", 6, 1, tristate.False},
		{"8", 9, -1, tristate.False},
		{"8", 8, -1, tristate.Unknown},
		{"0", 0, 0, tristate.True},
		{">= 8", 8, -1, tristate.True},
		{">= 8", 7, -1, tristate.Unknown},
		{">=8", 7, 0, tristate.False},
		{"<= 8", 0, -1, tristate.Unknown},
		{"<= 8", 9, -1, tristate.False},
		{"<= 8", 7, 1, tristate.True},
		{">= 4, <= 8", 4, 4, tristate.True},
		{">= 4, <= 8", 4, 5, tristate.Unknown},
		{">= 4 , <= 8", 3, 0, tristate.False},
	} {
		r, err := ParseRange(test.text)
		if err != nil || r.String() != test.text {
			t.Errorf("%s: %v, %v", test.text, r, err)
		}
		if got := r.Holds(test.proven, test.more); got != test.want {
			t.Errorf("%d and up to %d more are %s: %v, want %v", test.proven, test.more, test.text, got, test.want)
		}
	}
	for _, text := range []string{"", " ", "x", "-1", "+1", "1.5", "> 8", "< 8", "= 8", "8,", ">= 9, <= 8", "8 9", "1000001", "99999999999999999999", ">=", "0x8"} {
		if r, err := ParseRange(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
}

func TestRated(t *testing.T) {
	r, err := ParseRange(">= 100")
	if err != nil {
		t.Fatal(err)
	}
	for gbps, want := range map[float64]tristate.State{0: tristate.Unknown, 2.5: tristate.False, 99.9: tristate.False, 100: tristate.True, 1e5: tristate.True} {
		if got := r.rated(gbps); got != want {
			t.Errorf("%g: %v, want %v", gbps, got, want)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, test := range []struct {
		constraint, version string
		form                Form
		want                tristate.State
	}{
		{"24.10", "24.10-1.1.4", mofedForm, tristate.True},
		{">= 24.10", "24.20240101123", mofedForm, tristate.Unknown},
		{"24.10-1.1.4", "24.10-1.1.4", mofedForm, tristate.True},
		{"24.10-1.1.4", "24.10-1.1.5", mofedForm, tristate.False},
		{"24.10-1.1", "24.10-1.1.4", mofedForm, tristate.True},
		{"24", "24.04-0.6.6", mofedForm, tristate.True},
		{"24.1", "24.10-1.1.4", mofedForm, tristate.False},
		{">= 24.10", "24.10-0.5.5", mofedForm, tristate.True},
		{">= 24.10", "25.01-0.6.0", mofedForm, tristate.True},
		{">= 24.10", "24.07-0.6.1", mofedForm, tristate.False},
		{">= 24.10", "4.9-4.0.8", mofedForm, tristate.False},
		{">= 24.10-2", "24.10-1.1.4", mofedForm, tristate.False},
		{"> 24.10", "24.10-1.1.4", mofedForm, tristate.False},
		{"> 24.10", "25.01-0.6.0", mofedForm, tristate.True},
		{"<= 24.10", "24.10-3.2.5", mofedForm, tristate.True},
		{"< 24.10", "24.10-0.0.1", mofedForm, tristate.False},
		{">= 24.10, < 25", "24.10-1.1.4", mofedForm, tristate.True},
		{">= 24.10, < 25", "25.01-0.6.0", mofedForm, tristate.False},
		{">= 24.10-1.1.4", "24.10-1.1.4.kver.6", mofedForm, tristate.True},
		{">= 24.10-1.1.4", "24.10-1.1", mofedForm, tristate.Unknown},
		{">= 24.10-1.1.4", "24.10-1.2", mofedForm, tristate.True},
		{">= 24.10-1.1.4", "24.10-x", mofedForm, tristate.Unknown},
		{">= 24.10", "", mofedForm, tristate.Unknown},
		{">= 24.10", "none", mofedForm, tristate.Unknown},
		{"570", "570.86.15", driverForm, tristate.True},
		{">= 550.54, < 580", "570.86", driverForm, tristate.True},
		{">= 570.86.16", "570.86.15", driverForm, tristate.False},
		{">= 570.86.15", "570.86", driverForm, tristate.Unknown},
		{">= 28.39.1002", "28.39.2048", firmwareForm, tristate.True},
		{">= 28.39.1002", "28.4.0", firmwareForm, tristate.False},
	} {
		v, err := ParseVersions(test.constraint, test.form)
		if err != nil || v.String() != test.constraint {
			t.Errorf("%s: %v, %v", test.constraint, v, err)
		}
		if got := v.Holds(test.version); got != test.want {
			t.Errorf("%q is %s: %v, want %v", test.version, test.constraint, got, test.want)
		}
	}
	for text, form := range map[string]Form{
		"": mofedForm, "24.10-1.1.4.0": mofedForm, "24.10.1": mofedForm, "24-1": mofedForm, "24.10-": mofedForm, "v24": mofedForm, ">=": mofedForm,
		"= 24": mofedForm, "24,": mofedForm, "24.10-1.1.4-2": mofedForm, "570-1": driverForm, "1.2.3.4": driverForm, "1..2": driverForm,
		"1.": firmwareForm, "12345678901": firmwareForm, "1 2": firmwareForm, "28.x": firmwareForm, "-1": firmwareForm,
	} {
		if v, err := ParseVersions(text, form); err == nil {
			t.Errorf("%q is %+v", text, v)
		}
	}
}

// The first of two versions is less, equal or greater, as far as the second goes, or
// unknown.
func FuzzVersions(f *testing.F) {
	for _, seed := range [][2]string{{"24.10-1.1.4", "24.10"}, {"24", "24.10"}, {"", "1"}, {"1.x", "1.2.3"}, {"999999999", "0"}, {"1.2", ">= 1"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, version, other string) {
		if strings.ContainsAny(other, "<>=,") {
			return
		}
		states := map[string]tristate.State{}
		for _, op := range []string{"", "<", "<=", ">", ">="} {
			v, err := ParseVersions(op+other, mofedForm)
			if err != nil {
				return
			}
			states[op] = v.Holds(version)
		}
		less, equal, more := states["<"], states[""], states[">"]
		if less == tristate.Unknown || equal == tristate.Unknown || more == tristate.Unknown {
			if less != equal || equal != more {
				t.Errorf("%q and %q: %v", version, other, states)
			}
			return
		}
		count := 0
		for _, s := range []tristate.State{less, equal, more} {
			if s == tristate.True {
				count++
			}
		}
		if count != 1 || states["<="] != tristate.Or(less, equal) || states[">="] != tristate.Or(more, equal) {
			t.Errorf("%q and %q: %v", version, other, states)
		}
	})
}

func TestPattern(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"H100", "H100", true},
		{"h100", "H100", true},
		{"H100", "H100 PCIe", false},
		{"H100*", "H100", true},
		{"H100*", "H100 PCIe", true},
		{"*PCIe", "H100 PCIe", true},
		{"*PCIe", "H100 PCIe 2", false},
		{"*", "", true},
		{"**", "x", true},
		{"", "", true},
		{"", "x", false},
		{"a*b*c", "aXbYc", true},
		{"a*b*c", "acb", false},
		{"a*b*b", "ab", false},
		{"ab*ba", "aba", false},
		{"*a*", "xay", true},
		{"*a*", "xy", false},
		{"H100", " H100 ", true},
		{"(a.c", "(abc", false},
	} {
		p, err := ParsePattern(test.pattern)
		if got := p.Matches(test.name); err != nil || got != test.want {
			t.Errorf("%q matches %q: %v, %v", test.pattern, test.name, got, err)
		}
	}
}
