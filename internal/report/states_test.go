package report_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/source"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
)

// Rows of the verdict that are the same for every family: ready, reason, peermem, dmabuf.
var (
	anyFamily = map[string]string{
		"ready":            "true - true true",
		"no-drivers":       "false GPUDriverNotLoaded false false",
		"vfio":             "false GPUPassthrough true false",
		"nic-unbound":      "false NICDriverNotLoaded true false",
		"no-rdma":          "false NoRDMADevice true false",
		"ports-down":       "false NoActivePort true true",
		"iommu-translated": "true - true true",
		"dmabuf-only":      "true - false true",
		"kallsyms-missing": "- Unreadable false -",
		"nothing":          "false NoPeerMemoryPath false false",
		"others":           "false NoPeerMemoryPath false false",
	}
	// Without the open kernel modules there is no DMA-BUF.
	ofNVIDIA = map[string]string{"closed": "false NoPeerMemoryPath false false"}
	// Without the options of the kernel there is no DMA-BUF.
	ofAMD = map[string]string{
		"kallsyms-missing": "- Unreadable - -", // amdgpu may be a client, and nothing lists clients
		"config-gzip":      "true - false true",
		"config-modules":   "true - false true",
		"config-newer":     "true - false true", // without the option that newer kernels no longer have
		"config-cut":       "- Unreadable false -",
		"config-off":       "false NoPeerMemoryPath false false",
		"config-half":      "false NoPeerMemoryPath false false",
		"config-missing":   "- Unreadable false -",
		"config-garbage":   "- Unreadable false -",
		"client-amdkfd":    "true - true false",
	}
	ofEFA = map[string]string{
		"nic-unbound":        "false NICDriverNotLoaded false false", // its files are there while it is bound
		"ports-down":         "true - true true",                     // its ports are never down
		"p2p-nvidia":         "true - true false",
		"p2p-nvidia-peermem": "true - true false",
		"p2p-nobody":         "false NoPeerMemoryPath false false",
		"p2p-neuron":         "false NoPeerMemoryPath false false",
		"gdr-1":              "true - true false",
		"gdr-0":              "false NoPeerMemoryPath false false",
		"gdr-nobody":         "false NoPeerMemoryPath false false",
	}
	ofIBPeerMem = map[string]string{"holders-without-client": "false PeermemNotLoaded false false"}
)

// apart is what is said where GPUs and NICs have no bridge in common and the CPU is not AMD's:
// DMA-BUF is unknown where it would be true.
func apart(rows map[string]string) map[string]string {
	for state, row := range rows {
		if row == "true - false true" {
			rows[state] = "- Unreadable false -"
		} else if before, ok := strings.CutSuffix(row, " true"); ok {
			rows[state] = before + " -"
		}
	}
	return rows
}

// TestStatesOfFamilies checks the verdict on machines with NICs and GPUs of each family, in
// every state of their drivers. In the state "others", what proves a way for every other
// family is there, and proves nothing.
func TestStatesOfFamilies(t *testing.T) {
	rows := func(parts ...map[string]string) map[string]string {
		sum := map[string]string{}
		for _, p := range parts {
			maps.Copy(sum, p)
		}
		return sum
	}
	efa := rows(anyFamily, ofNVIDIA, ofEFA)
	broadcom := rows(anyFamily, ofNVIDIA, ofIBPeerMem, map[string]string{
		"holders-bnxt_re":              "true - true false",
		"holders-nvidia_peermem-alone": "false PeermemNotLoaded false false",
	})
	for name, want := range map[string]map[string]string{
		"aws-p4d-a100":           efa,
		"aws-p6-b200-mixed":      efa, // its ConnectX-7 manage NVLink switches
		"bnxt-nvidia-phb":        broadcom,
		"made-xe9680-h100-thor2": broadcom,
		"supermicro-mi300x-thor2": rows(anyFamily, ofAMD, ofIBPeerMem, map[string]string{
			"holders-amdgpu-alone": "false PeermemNotLoaded false false",
		}),
		"amd-mi300x-pollara": rows(anyFamily, ofAMD, ofIBPeerMem, map[string]string{
			"holders-amdgpu-alone": "false PeermemNotLoaded false false",
		}),
		"aks-mi300x": apart(rows(anyFamily, ofAMD)),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := machine.Load(filepath.Join(machinesDir, name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			if all := len(m.States()); all != len(want) {
				t.Errorf("%d states, want %d", all, len(want))
			}
			for s, dir := range m.Trees(t, testsize.Share(m.States())) {
				r := collect(t, dir, source.What{})
				if row := verdictRow(&r); row != want[s.Name] {
					t.Errorf("%s: %s, want %q", s.Name, row, want[s.Name])
				}
			}
		})
	}
}

// verdictRow is ready, reason, peermem and dmabuf of a report.
func verdictRow(r *report.Report) string {
	var row []string
	for _, name := range []string{label.Ready, label.Reason, label.Peermem, label.DMABuf} {
		value, ok := r.Labels[name]
		if !ok {
			value = "-"
		}
		row = append(row, value)
	}
	return strings.Join(row, " ")
}

// TestStatesNotJudged: without a NIC that is judged there is no way to judge, whatever runs. The
// NIC is of no family that is known: every known one may be judged some day.
func TestStatesNotJudged(t *testing.T) {
	m := parse(t, `nodes 1
pci0000:10 numa=0
  0000:10:01.0 port 8086:352a acs=0000
    0000:11:00.0 gpu 10de:2330
  0000:10:02.0 port 8086:352a acs=0000
    0000:12:00.0 ib 1234:5678 rdma=made_0
`)
	for s, dir := range m.Trees(t, m.States()) {
		r := collect(t, dir, source.What{})
		if row := verdictRow(&r); row != "- NICNotJudged - -" || r.Labels[label.NICs] != "0" {
			t.Errorf("%s: %s, %s NICs", s.Name, row, r.Labels[label.NICs])
		}
		for _, name := range []string{label.Capable, label.Level} {
			if value, ok := r.Labels[name]; ok {
				t.Errorf("%s: %s=%s", s.Name, name, value)
			}
		}
	}
}

// TestRadeon: a display of AMD that is no Instinct is no GPU, and gives no labels, whatever runs.
func TestRadeon(t *testing.T) {
	m, err := machine.Load(filepath.Join(machinesDir, "radeon-pro-w7900.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for s, dir := range m.Trees(t, m.States()) {
		r := collect(t, dir, source.What{})
		if len(r.Labels)+len(r.Unknown) > 0 || r.Verdict.Reason != "NoGPU" || len(r.Matrix.GPUs) > 0 {
			t.Errorf("%s: %s, %v", s.Name, r.Verdict.Reason, r.Labels)
		}
	}
}
