package report_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdr-features/internal/finding"
	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/internal/report"
	"gdr-features/internal/view"
	"gdr-features/source"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/tristate"
)

// TestDriverRefusesPlace judges the pair of NVIDIA/aicr#2459 (and its pull request 2439),
// which failed with 595.91.07 and worked with 580.173.02 and the parameter. Hardware labels
// are the same with every driver.
func TestDriverRefusesPlace(t *testing.T) {
	m, err := machine.Load(filepath.Join(machinesDir, "aws-p6e-gb300-group.txt"))
	if err != nil {
		t.Fatal(err)
	}
	hardware := map[string]string{}
	for _, tc := range []struct {
		name, version, params string
		group                 string // of the NIC; "" for none
		want                  string // ready and dmabuf
	}{
		{"R580 with the parameter", "580.173.02", "1", "", "true true"},
		{"R580 without", "580.173.02", "0", "", "false false"},
		{"R580 that is told to refuse", "580.173.02", "2", "", "false false"},
		{"R580 with a value that it does not know", "580.173.02", "yes", "", "unknown unknown"},
		{"R580 with missing parameters", "580.173.02", "missing", "", "true true"},
		{"R580 with unreadable parameters", "580.173.02", "unreadable", "", "unknown unknown"},
		{"R580 with a file of parameters that is cut off", "580.173.02", "cut", "", "unknown unknown"},
		{"an early R595, which the parameter does not help", "595.45.04", "1", "", "false false"},
		{"an early R595 with the NIC in another group", "595.45.04", "0", "1", "false false"},
		{"an early R595 with the NIC in the same group", "595.45.04", "0", "0", "true true"},
		{"R595", "595.91.07", "", "", "false false"},
		{"R595 with the NIC in another group", "595.91.07", "", "1", "false false"},
		{"R595 with the NIC in the same group", "595.91.07", "", "0", "true true"},
		{"R595 with unreadable parameters: no rule of R595 allows it", "595.91.07", "unreadable", "", "false false"},
		{"R595 with unreadable parameters and another group", "595.91.07", "unreadable", "1", "false false"},
		{"R595 with a file of parameters that is none, and another group", "595.91.07", "garbage", "1", "false false"},
		{"R595 with unreadable parameters and the same group", "595.91.07", "unreadable", "0", "true true"},
		{"R595 without recorded parameters", "595.91.07", "missing", "1", "false false"},
		{"a newer driver", "615.23", "", "", "false false"},
		{"a newer driver and another group", "615.23", "", "1", "false false"},
		{"a driver before this mapping", "565.57.01", "unreadable", "", "true true"},
		{"a driver of unknown version", "", "1", "", "unknown unknown"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := stateOf(t, m, "dmabuf-only")
			const registry = "RegistryDwords: \"\"\n"
			s.Files = map[string]string{"proc/driver/nvidia/params": "EnableMSI: 1\n"}
			switch tc.params {
			case "":
				s.Files["proc/driver/nvidia/params"] += registry
			case "cut":
			case "missing":
				without := *m
				without.Override, s.Files, s.NVIDIA = "", nil, tc.version
				judgeMapping(t, &without, s, tc.want, hardware)
				return
			case "garbage":
				s.Files["proc/driver/nvidia/params"] = strings.Repeat("x", 100) // as snapshots have for files that are too large
			case "unreadable":
				s.Files["proc/driver/nvidia/params"] = ""
			default:
				s.Files["proc/driver/nvidia/params"] += "GrdmaPciTopoCheckOverride: " + tc.params + "\n" + registry
			}
			s.NVIDIA = tc.version
			if tc.version == "" {
				s.NVIDIA = "none"
			}
			if tc.group != "" {
				m := *m
				m.Functions = slices.Clone(m.Functions)
				for i := range m.Functions {
					if f := &m.Functions[i]; f.Attrs["group"] == "none" {
						f.Attrs = map[string]string{"group": tc.group, "rdma": f.Attrs["rdma"]}
					}
				}
				judgeMapping(t, &m, s, tc.want, hardware)
				return
			}
			judgeMapping(t, m, s, tc.want, hardware)
		})
	}
}

func judgeMapping(t *testing.T, m *machine.Machine, s machine.State, want string, hardware map[string]string) {
	t.Helper()
	r := collect(t, m.Tree(t, s), source.What{})
	if got := r.Verdict.Ready.String() + " " + r.Verdict.DMABuf.String(); got != want {
		t.Errorf("ready and dmabuf: %s, want %s; %+v", got, want, r.Findings)
	}
	i := slices.IndexFunc(r.Findings, func(f finding.Finding) bool { return f.Check == "dmabuf" })
	f := r.Findings[i]
	if r.Verdict.DMABuf == tristate.False && f.Code != "DriverRefusesPlace" {
		t.Errorf("check says %+v", f)
	}
	if recent := strings.HasPrefix(s.NVIDIA, "595.91") || strings.HasPrefix(s.NVIDIA, "615"); recent && strings.Contains(strings.ReplaceAll(f.FixText(), "R580 with NVreg_", ""), "NVreg_") {
		t.Errorf("the fix names a parameter that the driver lacks: %s", f.FixText())
	}
	for name, value := range r.Labels {
		if !nodelabel.Hardware(name) {
			continue
		}
		if first, ok := hardware[name]; ok && first != value {
			t.Errorf("%s is %s, and was %s with another driver", name, value, first)
		}
		hardware[name] = value
	}
}

// TestWaysAgree: the labels, the summary and the findings speak of the ways of one pair of
// families, on every machine in every state.
func TestWaysAgree(t *testing.T) {
	files, err := filepath.Glob(machinesDir + "/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range testsize.Share(files) {
		m, err := machine.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for s, dir := range m.Trees(t, testsize.FewInTurn(i, m.States())) {
			r := collect(t, dir, source.What{})
			waysAgree(t, m.Name+" "+s.Name, &r)
		}
	}
}

func waysAgree(t *testing.T, name string, r *report.Report) {
	t.Helper()
	summary := view.Verdict(&r.Node)
	for _, way := range []struct {
		check, label, word string
		is                 tristate.State
	}{
		{"peermem", label.Peermem, "peermem", r.Verdict.Peermem},
		{"dmabuf", label.DMABuf, "DMA-BUF", r.Verdict.DMABuf},
	} {
		value, ok := r.Labels[way.label]
		if known := way.is != tristate.Unknown; ok && (!known || value != way.is.String()) {
			t.Errorf("%s: %s=%s, and the verdict says %v", name, way.label, value, way.is)
		}
		if r.Verdict.Ready == tristate.True && strings.Contains(summary, way.word) != (way.is == tristate.True) {
			t.Errorf("%s: %s is %v, and the summary says %s", name, way.check, way.is, summary)
		}
		i := slices.IndexFunc(r.Findings, func(f finding.Finding) bool { return f.Check == way.check })
		if i < 0 {
			continue // not capable
		}
		f := r.Findings[i]
		if way.is == tristate.True && (f.Status == finding.StatusFail || f.Status == finding.StatusUnknown) {
			t.Errorf("%s: %s is true, and check says %+v", name, way.check, f)
		}
		if other := r.Verdict.Peermem == tristate.True || r.Verdict.DMABuf == tristate.True; way.is == tristate.False && !other && f.Status != finding.StatusFail {
			t.Errorf("%s: %s is false, and check says %+v", name, way.check, f)
		}
	}
}
