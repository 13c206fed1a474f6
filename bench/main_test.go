package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gdr-features/test/machine"
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

// Every virtual function has an RDMA device of its own and a physical function that
// exists.
func TestShare(t *testing.T) {
	m, err := machine.Load("../" + machineFile)
	if err != nil {
		t.Fatal(err)
	}
	base := len(m.Functions)
	physical, seen := map[string]bool{}, map[string]bool{}
	for _, f := range m.Functions {
		physical[f.Address], seen[f.Address], seen[f.Attrs["rdma"]] = true, true, true
	}
	shared := share(m, virtualFunctions).Functions
	if len(m.Functions) != base || len(shared) != base+virtualFunctions {
		t.Fatalf("%d functions of %d; base changed to %d", len(shared), base+virtualFunctions, len(m.Functions))
	}
	for _, f := range shared[base:] {
		if rdma := f.Attrs["rdma"]; seen[f.Address] || rdma == "" || seen[rdma] || !physical[f.Attrs["physfn"]] {
			t.Errorf("%s, RDMA device %q, physical function %q", f.Address, rdma, f.Attrs["physfn"])
		}
		seen[f.Address], seen[f.Attrs["rdma"]] = true, true
	}
}

// Claims about time are not judged on a busy machine, nor within the scatter of bare's
// runs; all others are.
func TestClaims(t *testing.T) {
	const scatter = 1.2
	holds, near, slow, fat := claim{"", 1, 2, true}, claim{"a run", 2.3, 2, true}, claim{"", 3, 2, true}, claim{"", 2.3, 2, false}
	for _, c := range []struct {
		claims []claim
		busy   string
		over   bool
	}{
		{[]claim{holds}, "", false},
		{[]claim{holds}, "others", false},
		{[]claim{holds, near}, "", false},
		{[]claim{near, slow}, "", true},
		{[]claim{holds, slow}, "others", false},
		{[]claim{fat}, "", true},
		{[]claim{fat}, "others", true},
		{[]claim{slow, fat}, "others", true},
	} {
		var out strings.Builder
		if over := claimTable(&out, c.claims, c.busy, scatter); over != c.over {
			t.Errorf("%v, busy by %q: over %v", c.claims, c.busy, over)
		}
		said := strings.Contains(out.String(), "claims about time are not judged: the machine is busy: others\n")
		if said != (c.busy != "") {
			t.Errorf("%v, busy by %q: printed %s", c.claims, c.busy, &out)
		}
		said = strings.Contains(out.String(), "not judged: a run: over the limit by less than bare's own runs scatter, 1.20 times\n")
		if said != (c.busy == "" && slices.Contains(c.claims, near)) {
			t.Errorf("%v, busy by %q: printed %s", c.claims, c.busy, &out)
		}
	}
}

// Whether a machine is busy follows from what other programs took or from bare's
// runs, not from the product's runs.
func TestReason(t *testing.T) {
	for _, c := range []struct {
		others, spread float64
		want           string
	}{
		{0, 1.1, ""},
		{0.2, 1.2, ""},
		{0.21, 1, "other programs took 21 % of the CPU time of all CPUs, more than 20 % (/proc/stat)"},
		{0, 1.25, "the median of bare's own runs is 1.25 times their minimum, more than 1.2"},
	} {
		if got := reason(c.others, c.spread); got != c.want {
			t.Errorf("others %v, spread %v: %q, want %q", c.others, c.spread, got, c.want)
		}
	}
	calm, wild := &series{costs: []cost{{cpu: 1}, {cpu: 1.1}, {cpu: 1.2}}}, &series{costs: []cost{{cpu: 1}, {cpu: 1.5}, {cpu: 9}}}
	if n := spread([]subject{{bare: calm, product: wild}}); n != 1.1 {
		t.Errorf("spread %v where bare is calm", n)
	}
	if n := spread([]subject{{bare: calm, product: calm}, {bare: wild, product: calm}}); n != 1.5 {
		t.Errorf("spread %v where bare is not", n)
	}
}

// The hour that is judged is the one in the middle.
func TestMiddle(t *testing.T) {
	hour := func(looks float64) idle { return idle{readings: 1, looks: looks, bare: 2} }
	if got := middle([]idle{hour(9), hour(1), hour(3)}); got != hour(3) || got.times() != 2 {
		t.Errorf("got %v, %v times bare", got, got.times())
	}
}

// docs/cost.md names the bounds.
func TestBoundsInDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/cost.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("more than %v times the CPU time of the bare program, more than %v times that of `ghw.PCI()`, or more than %v MB "+
		"of memory, if a run on the same machine with Broadcom NICs takes more than %v times the CPU time of one with ConnectX NICs, or if a further PCI function, or a virtual function with its RDMA device, costs more than %v times what it costs "+
		"the bare program", mostOfBare, mostOfGHW, mostMB, mostOfMLX5, mostOfBareMore)
	idle := fmt.Sprintf("must cost at most %v times what the same costs in C", mostOfIdle)
	for _, want := range []string{want, idle} {
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("docs/cost.md does not say: %s", want)
		}
	}
}

// A product that is slightly too expensive fails on a quiet machine.
func TestBounds(t *testing.T) {
	times := func(ms float64) *series { return &series{costs: []cost{{cpu: ms}}} }
	trees := func(product float64) []subject {
		base := subject{functions: 100, product: times(product), bare: times(1), ghw: times(20), check: times(4), bareCheck: times(1), otherFamily: times(product)}
		grown := func(functions int, bare, ratio float64) subject {
			return subject{functions: functions, product: times(product + ratio*bare), bare: times(1 + bare)}
		}
		return []subject{base, grown(200, 1, 3), grown(300, 2, 3), grown(2100, 30, 3)}
	}
	quiet := measured{hour: idle{bare: 1}, life: life{cpu: 1, bare: 1}}
	for _, c := range []struct {
		name    string
		change  func(*measured)
		product float64
		want    error
	}{
		{"at the bounds", func(*measured) {}, 4, nil},
		{"a run", func(*measured) {}, 4.1, errOver},
		{"a run, on a busy machine", func(m *measured) { m.others = 0.5 }, 4.1, nil},
		{"a further function", func(m *measured) { m.subjects[2].product = times(10.2) }, 4, errOver},
		{"a virtual function", func(m *measured) { m.subjects[3].product = times(95) }, 4, errOver},
		{"a virtual function, on a busy machine", func(m *measured) { m.subjects[3].product, m.others = times(95), 0.5 }, 4, nil},
		{"ghw.PCI", func(m *measured) { m.subjects[0].ghw = times(13) }, 4, errOver},
		{"an idle hour", func(m *measured) { m.hour.readings, m.hour.looks = 1.5, 0.6 }, 4, errOver},
		{"an idle hour at the bound", func(m *measured) { m.hour.readings, m.hour.looks = 1.5, 0.5 }, 4, nil},
		{"memory", func(m *measured) { m.subjects[0].product.costs[0].peak = 24.1 }, 4, errOver},
		{"memory, on a busy machine", func(m *measured) { m.subjects[0].product.costs[0].peak, m.others = 24.1, 0.5 }, 4, errOver},
		{"a package, on a busy machine", func(m *measured) { m.start.heavy, m.others = []string{"k8s.io/api"}, 0.5 }, 4, errOver},
	} {
		m := quiet
		m.subjects = trees(c.product)
		c.change(&m)
		var out strings.Builder
		if err := report(&out, m); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v\n%s", c.name, err, c.want, &out)
		}
	}
}

func TestHeavy(t *testing.T) {
	for name, want := range map[string]bool{
		"k8s.io/apimachinery/pkg/types": true, "k8s.io/client-go/rest": true,
		"github.com/prometheus/procfs": true, "gdr-features/nfdsource": false, "net/http": false,
	} {
		if got := isHeavy(name); got != want {
			t.Errorf("isHeavy(%q) = %v", name, got)
		}
	}
}
