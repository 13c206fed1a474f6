package main

import (
	"io"
	"slices"
	"testing"

	"gdr-features/internal/machine"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{7}, 7},
		{[]float64{9, 1, 5}, 5},
		{[]float64{9, 1, 5, 6}, 5.5},
	} {
		before := slices.Clone(c.values)
		if got := median(c.values); got != c.want || !slices.Equal(c.values, before) {
			t.Errorf("median(%v) = %v, want %v; afterwards %v", before, got, c.want, c.values)
		}
	}
}

func TestParseInitTrace(t *testing.T) {
	const trace = `level=warning msg="init fails"
init runtime @0.043 ms, 0.038 ms clock, 0 bytes, 0 allocs
init gopkg.in/yaml%2ev3 @0.81 ms, 0.12 ms clock, 5344 bytes, 58 allocs
init
`
	want := []initCost{{"runtime", 0.038}, {"gopkg.in/yaml.v3", 0.12}}
	if got := parseInitTrace(trace); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestGrow(t *testing.T) {
	m, err := machine.Load("../" + machineFile)
	if err != nil {
		t.Fatal(err)
	}
	base, virtual := len(m.Functions), 0
	seen := map[string]bool{}
	grown := grow(m, 3000)
	for _, f := range grown.Functions {
		if seen[f.Address] {
			t.Errorf("%s is there twice", f.Address)
		}
		seen[f.Address] = true
		if pf := f.Attrs["physfn"]; pf != "" {
			virtual++
			if !seen[pf] {
				t.Errorf("%s: no physical function %s", f.Address, pf)
			}
		}
	}
	if len(m.Functions) != base || len(grown.Functions) != 3000 || virtual != (3000-base)/10 {
		t.Errorf("%d functions of %d, %d virtual; base changed to %d from %d", len(grown.Functions), 3000, virtual, len(m.Functions), base)
	}
}

// Only what rests on time is excused, and only where the machine was not quiet.
func TestClaims(t *testing.T) {
	holds, late, fat := claim{"", 1, 2, true}, claim{"", 3, 2, true}, claim{"", 3, 2, false}
	for _, c := range []struct {
		claims        []claim
		noise         float64
		over, spoiled bool
	}{
		{[]claim{holds}, 2, false, false},
		{[]claim{holds, late}, 1.1, true, false},
		{[]claim{holds, late}, 1.3, false, true},
		{[]claim{fat}, 1.3, true, false},
		{[]claim{late, fat}, 1.3, true, true},
	} {
		if over, spoiled := claimTable(io.Discard, c.claims, c.noise); over != c.over || spoiled != c.spoiled {
			t.Errorf("%v with noise %v: over %v, spoiled %v", c.claims, c.noise, over, spoiled)
		}
	}
	calm, wild := &series{costs: []cost{{cpu: 1}, {cpu: 1.1}, {cpu: 1.2}}}, &series{costs: []cost{{cpu: 1}, {cpu: 1.5}, {cpu: 9}}}
	quiet, loud := subject{bare: calm, product: calm}, subject{bare: calm, product: wild}
	if n := noise([]subject{quiet, loud}); n != 1.5 {
		t.Errorf("noise %v", n)
	}
}

func TestHeavy(t *testing.T) {
	for name, want := range map[string]bool{
		"k8s.io/apimachinery/pkg/types": true, "k8s.io/client-go/rest": true,
		"github.com/prometheus/procfs": true, "gdr-features/source/nfd": false, "net/http": false,
	} {
		if got := isHeavy(name); got != want {
			t.Errorf("isHeavy(%q) = %v", name, got)
		}
	}
}
