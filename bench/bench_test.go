package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"gdr-features/host"
	reader "gdr-features/internal/report"
	"gdr-features/test/machine"
)

// open opens the machine as a tree of files.
func open(b *testing.B) *reader.Reader {
	m, err := machine.Load("../" + machineFile)
	if err != nil {
		b.Fatal(err)
	}
	fs, err := host.Open(host.Options{Root: m.Tree(b, m.Ready())})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = fs.Close() })
	return reader.NewReader(fs, reader.ForPublishing)
}

// What an agent does every minute and every second.
func BenchmarkReadAll(b *testing.B)     { readAll(b, open(b)) }
func BenchmarkLookAtPorts(b *testing.B) { lookAtPorts(b, open(b)) }

// Every virtual function has an RDMA device of its own and a physical function that
// exists.
func TestShare(t *testing.T) {
	m, err := machine.Load("../" + machineFile)
	if err != nil {
		t.Fatal(err)
	}
	base, size := len(m.Functions), baseFunctions+furtherFunctions
	physical, seen := map[string]bool{}, map[string]bool{}
	for _, f := range m.Functions {
		physical[f.Address], seen[f.Address], seen[f.Attrs["rdma"]] = true, true, true
	}
	shared := share(m, size).Functions
	if len(m.Functions) != base || len(shared) != size {
		t.Fatalf("%d functions of %d; base changed to %d", len(shared), size, len(m.Functions))
	}
	for _, f := range shared[base:] {
		if rdma := f.Attrs["rdma"]; seen[f.Address] || rdma == "" || seen[rdma] || !physical[f.Attrs["physfn"]] {
			t.Errorf("%s, RDMA device %q, physical function %q", f.Address, rdma, f.Attrs["physfn"])
		}
		seen[f.Address], seen[f.Attrs["rdma"]] = true, true
	}
}

// Every further NIC has an address, a port and an RDMA device of its own.
func TestWiden(t *testing.T) {
	m, err := machine.Load("../" + machineFile)
	if err != nil {
		t.Fatal(err)
	}
	base := share(m, baseFunctions)
	wide := widen(base, widestFunctions).Functions
	if len(wide) != widestFunctions {
		t.Fatalf("%d functions", len(wide))
	}
	seen := map[string]bool{}
	for _, f := range wide {
		if seen[f.Address] || seen[f.Attrs["rdma"]] {
			t.Errorf("%s, RDMA device %q: a second time", f.Address, f.Attrs["rdma"])
		}
		if seen[f.Address] = true; f.Attrs["rdma"] != "" {
			seen[f.Attrs["rdma"]] = true
		}
	}
	for i := len(base.Functions); i < len(wide); i += 2 {
		if port, nic := wide[i], wide[i+1]; !port.IsBridge() || !nic.IsNIC() || nic.Path != port.Path+"/"+nic.Address || nic.Attrs["rdma"] == "" {
			t.Errorf("%s below %s", nic.Path, port.Path)
		}
	}
}

// ran is a program with its times on the small and on the large tree.
func ran(less, more *programs, of func(*programs) **program, small, large float64) {
	*of(less), *of(more) = &program{cpu: []float64{small}}, &program{cpu: []float64{large}}
}

// atTheBars is a measurement in which each value is at its bar.
func atTheBars() *measured {
	m := &measured{peak: mostMB, widePeak: mostWideMB, size: mostSize, idle: mostIdle, logPeak: mostLogMB}
	m.job = logs{log: &program{name: "log", cpu: []float64{mostLog * logSize / 1e6}}, grep: &program{name: "grep -c", cpu: []float64{1}}}
	ran(&m.base, &m.more, func(p *programs) **program { return &p.labels }, mostOfBare, mostOfBare+100*mostOfLstopo)
	ran(&m.base, &m.more, func(p *programs) **program { return &p.check }, 2*mostOfBare, 500)
	ran(&m.base, &m.more, func(p *programs) **program { return &p.bare }, 1, 40)
	ran(&m.base, &m.more, func(p *programs) **program { return &p.bareCheck }, 2, 50)
	ran(&m.base, &m.more, func(p *programs) **program { return &p.lstopo }, 8, 108)
	const (
		wide, widest = wideFunctions - baseFunctions, widestFunctions - baseFunctions // lstopo: 0.1 ms each
		rounding     = 1e-6
	)
	ran(&m.wide, &m.widest, func(p *programs) **program { return &p.labels }, mostOfBare+mostOfLstopo*wide/10-rounding, mostOfBare+mostOfLstopo*widest/10-rounding)
	ran(&m.wide, &m.widest, func(p *programs) **program { return &p.lstopo }, 8+wide/10., 8+widest/10.)
	return m
}

// TestBars: what is slightly too expensive fails on a quiet machine. On a busy one, which
// bare's runs tell, times are not judged, and all else is.
func TestBars(t *testing.T) {
	busy := func(m *measured) { m.more.bare.cpu = []float64{40, 49, 70} }
	scattered := func(m *measured) { m.base.bare.cpu = []float64{1, 1.1, 1.2} }
	slow := func(m *measured) { m.base.labels.cpu[0], m.more.labels.cpu[0] = mostOfBare*1.04, mostOfBare*1.04+150 }
	for _, tt := range []struct {
		name   string
		change []func(*measured)
		want   error
		says   string
	}{
		{"at the bars", nil, nil, "ok\n"},
		{"labels", []func(*measured){slow}, errOver, "labels, times bare "},
		{"labels, within what bare's runs scatter", []func(*measured){slow, scattered}, nil, "not judged: over by less than bare's runs scatter"},
		{"labels, on a busy machine", []func(*measured){slow, busy}, nil, "not judged: the machine is busy"},
		{"check", []func(*measured){func(m *measured) { m.base.check.cpu[0] *= 1.04 }}, errOver, "over\n"},
		{"a further function", []func(*measured){func(m *measured) { m.more.labels.cpu[0] = mostOfBare + 155 }}, errOver, "1.55 of  1.5  over\n"},
		{"a further function beyond the scatter", []func(*measured){scattered, func(m *measured) { m.more.labels.cpu[0] = mostOfBare + 170 }}, errOver, "1.70 of  1.5  over\n"},
		{"log", []func(*measured){func(m *measured) { m.job.log.cpu[0] *= 1.02 }}, errOver, "5.10 of    5  over\n"},
		{"memory of log, on a busy machine", []func(*measured){busy, func(m *measured) { m.logPeak = 24.1 }}, errOver, "24.10 of   24  over\n"},
		{"an idle agent", []func(*measured){func(m *measured) { m.idle = 0.12 }}, errOver, "over\n"},
		{"memory, on a busy machine", []func(*measured){busy, func(m *measured) { m.peak = 24.1 }}, errOver, "24.10 of   24  over\n"},
		{"a further function of many", []func(*measured){func(m *measured) { m.widest.labels.cpu[0] *= 1.02 }}, errOver, "of  1.5  over\n"},
		{"a further function of some", []func(*measured){func(m *measured) { m.wide.labels.cpu[0] *= 1.02 }}, errOver, "of  1.5  over\n"},
		{"memory with many NICs", []func(*measured){busy, func(m *measured) { m.widePeak = 32.1 }}, errOver, "32.10 of   32  over\n"},
		{"size, on a busy machine", []func(*measured){busy, func(m *measured) { m.size = 9.01 }}, errOver, "9.01 of    9  over\n"},
	} {
		m := atTheBars()
		for _, change := range tt.change {
			change(m)
		}
		var out bytes.Buffer
		if err := report(&out, m); !errors.Is(err, tt.want) || !strings.Contains(out.String(), tt.says) {
			t.Errorf("%s: %v, want %v and %q in\n%s", tt.name, err, tt.want, tt.says, &out)
		}
	}
}

// docs/cost.md names the bars.
func TestBarsInDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/cost.md")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{
		fmt.Sprintf("| `labels`, %d PCI functions | %g times the bare C program |", baseFunctions, mostOfBare),
		fmt.Sprintf("| `check`, the same | %g times the bare C program, which then reads more |", mostOfBare),
		fmt.Sprintf("| each further virtual function with an RDMA device | %g times `lstopo` |", mostOfLstopo),
		fmt.Sprintf("| each further function of %d, half of them NICs with RDMA devices | %g times `lstopo` |", wideFunctions, mostOfLstopo),
		fmt.Sprintf("| each further function of %d, alike | %g times `lstopo` |", widestFunctions, mostOfLstopo),
		fmt.Sprintf("| the same with %d functions | %d MB |", widestFunctions, mostWideMB),
		fmt.Sprintf("| memory of `labels`, at its peak | %d MB |", mostMB),
		fmt.Sprintf("| the program | %d MB |", mostSize),
		fmt.Sprintf("| `log`, a job's log | %d ns of CPU for each byte (200 MB/s), and %d MB of memory however long it is |", mostLog, mostLogMB),
		fmt.Sprintf("| an idle agent | %g %% of a core |", mostIdle),
	} {
		if !strings.Contains(words, want) {
			t.Errorf("docs/cost.md does not say: %s", want)
		}
	}
}
