package report_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/source"
	"gdr-features/source/kmod"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// stranger is what a kernel shows of a NIC that no table has.
type stranger struct {
	class string
	// rdma: it has an RDMA device. aux: below an auxiliary device.
	rdma, aux bool
}

// shows reports whether anything tells that this is a NIC with RDMA.
func (s stranger) shows(state machine.State) bool {
	return s.class != "020000" || s.rdma && !state.NoRDMA
}

// strangers returns the machine with each NIC in the place of a known one; nil for one without NIC.
func (s stranger) on(m *machine.Machine) *machine.Machine {
	other, n := *m, 0
	other.Functions = slices.Clone(m.Functions)
	for i := range other.Functions {
		f := &other.Functions[i]
		if !f.IsNIC() {
			continue
		}
		f.Vendor, f.Device, f.SubVendor, f.Sub, f.Class = "fade", "0001", "fade", "0001", s.class
		f.Attrs = maps.Clone(f.Attrs)
		f.Attrs["driver"], f.Attrs["rdma"] = "fade_net", ""
		delete(f.Attrs, "aux")
		if s.rdma {
			f.Attrs["rdma"] = fmt.Sprintf("fade%d", n)
		}
		if s.aux {
			f.Attrs["aux"] = fmt.Sprintf("fade_net.rdma.%d", n)
		}
		n++
	}
	if n == 0 {
		return nil
	}
	return &other
}

// TestUnknownNICs: on every machine each NIC is one that no table has, with an invented vendor,
// device and driver. Where it has an RDMA device, or a class that only NICs with RDMA have, nothing
// says that the node is not capable, and nothing that it is.
func TestUnknownNICs(t *testing.T) {
	kinds := []stranger{
		{"020000", true, false},
		{"020000", true, true},
		{"020000", false, false},
		{"020700", true, false},
		{"020700", false, false},
		{"020800", false, false},
	}
	tried, unknown, none := 0, 0, 0
	for i, m := range testsize.Share(machine.All(t, machinesDir)) {
		for _, kind := range testsize.FewInTurn(i, kinds) {
			other := kind.on(m)
			if other == nil {
				continue
			}
			for s, dir := range other.Trees(t, testsize.FewInTurn(i/8, other.States())) {
				r := collect(t, dir, source.What{})
				tried++
				if r.Matrix.EligibleGPUs == 0 {
					if r.Verdict.Capable != tristate.False { // its GPUs are why
						t.Errorf("%s %+v %s: capable %v without a GPU", m.Name, kind, s.Name, r.Verdict.Capable)
					}
					continue
				}
				want := verdict.NoNIC
				if kind.shows(s) {
					want = verdict.NICNotJudged
					unknown++
				} else {
					none++
				}
				if r.Verdict.Reason != want || r.Verdict.Ready == tristate.True || r.Verdict.Capable == tristate.True {
					t.Errorf("%s %+v %s: capable %v, ready %v, %s, want %s", m.Name, kind, s.Name, r.Verdict.Capable, r.Verdict.Ready, r.Verdict.Reason, want)
				}
				if _, said := r.Labels[label.Capable]; said == kind.shows(s) || r.Unknown[label.Capable] {
					t.Errorf("%s %+v %s: labels %v, kept %v", m.Name, kind, s.Name, r.Labels, r.Unknown[label.Capable])
				}
				for _, name := range []string{label.Peermem, label.DMABuf} {
					if value, said := r.Labels[name]; said {
						t.Errorf("%s %+v %s: %s=%s without a judged NIC", m.Name, kind, s.Name, name, value)
					}
				}
			}
		}
	}
	t.Logf("%d trees: %d unknown, %d without a sign of RDMA", tried, unknown, none)
	if !testsize.Partial() && (unknown == 0 || none == 0) {
		t.Error("a kind of NICs was not tried")
	}
}

// ofSomeReleases are directories and files that only some releases of kernel, drivers and firmware
// make. no: what is documented to be false without it (docs/decides.md): "peermem" or ""; or "names" for the names of the machine.
// Without the names of the machine its tree alone counts, also on a type of EC2 that is refused.
var ofSomeReleases = []struct{ path, made, no string }{
	{kmod.PeerDirs()[0][1:], "MOFED 5.1 and newer", "peermem"},
	{kmod.PeerDirs()[1][1:], "MOFED 4.9", "peermem"},
	{kmod.PeerDirs()[2][1:], "older stacks", "peermem"},
	{"sys/module/nvidia_peermem", "NVIDIA's driver from 470 on, when it is loaded", "peermem"},
	{"sys/module/nv_peer_mem", "Mellanox/nv_peer_memory, when it is loaded", "peermem"},
	{"sys/module/ib_peer_mem", "the stacks of Broadcom and AMD", "peermem"},
	{"sys/bus/pci/devices/*/p2p", "amzn-drivers efa_sysfs.c from 2.6 on", "peermem"},
	{"sys/bus/pci/devices/*/gdr", "amzn-drivers efa_sysfs.c before 2.6", "peermem"},
	{"proc/driver/nvidia", "NVIDIA's driver; not in containers without it", ""},
	{"proc/driver/nvidia/params", "the same", ""},
	{"proc/driver/nvidia/gpus", "the same", ""},
	{"proc/kallsyms", "CONFIG_KALLSYMS", ""},
	{"proc/config.gz", "CONFIG_IKCONFIG_PROC", ""},
	{"boot", "distributions; not mounted into containers", ""},
	{"lib/modules", "distributions; not mounted into containers", ""},
	{"sys/class/infiniband", "ib_core; not in every container", ""},
	{"sys/class/infiniband_verbs", "ib_uverbs", ""},
	{"sys/class/iommu", "an IOMMU", ""},
	{"sys/kernel/iommu_groups", "CONFIG_IOMMU_API", ""},
	{"sys/class/dmi", "CONFIG_DMIID; not on every Arm machine", "names"},
	{"sys/bus/auxiliary", "Linux 5.11 and newer", ""},
	{"sys/devices/system/node", "CONFIG_NUMA", ""},
	{"sys/module/mlx_compat", "MOFED", ""},
	{"sys/module/mlx5_core/version", "MOFED, and kernels before 5.8", ""},
	{"sys/module/ib_core", "ib_core as a module", ""},
	{"sys/module/amdgpu/version", "AMD's packages, not the kernel's own driver", ""},
	{"sys/hypervisor", "Xen, and s390", ""},
	{"proc/device-tree", "CONFIG_OF", ""},
}

// TestUnknownReleases: each directory that only some releases make is taken away from every machine.
// Its absence makes no way false that was not, and no node ready or capable that was not.
func TestUnknownReleases(t *testing.T) {
	tried := map[string]int{}
	for i, m := range testsize.Share(machine.All(t, machinesDir)) {
		for s, dir := range m.Trees(t, testsize.FewInTurn(i, m.States())) {
			before := collect(t, dir, source.What{})
			for _, of := range ofSomeReleases {
				putBack := takeAway(t, dir, of.path)
				if putBack == nil {
					continue
				}
				tried[of.path]++
				after := collect(t, dir, source.What{})
				putBack()
				if text := worse(&before, &after, of.no); text != "" {
					t.Errorf("%s %s without %s (made by %s): %s", m.Name, s.Name, of.path, of.made, text)
				}
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(tried)) {
		t.Logf("%4d without %s", tried[path], path)
	}
	if !testsize.Partial() && len(tried) < len(ofSomeReleases)/2 {
		t.Errorf("only %d of %d were in some tree", len(tried), len(ofSomeReleases))
	}
}

// worse says what absence alone must not have changed, "" for nothing.
func worse(before, after *report.Report, no string) string {
	for way, of := range map[string][2]tristate.State{
		"peermem": {before.Verdict.Peermem, after.Verdict.Peermem}, "dmabuf": {before.Verdict.DMABuf, after.Verdict.DMABuf},
	} {
		samePair := before.Verdict.NIC == after.Verdict.NIC && before.Verdict.GPU == after.Verdict.GPU
		if samePair && way != no && of[0] != tristate.False && of[1] == tristate.False {
			return fmt.Sprintf("%s turns from %v to false", way, of[0])
		}
	}
	if no == "names" {
		return ""
	}
	for what, of := range map[string][2]tristate.State{
		"ready": {before.Verdict.Ready, after.Verdict.Ready}, "capable": {before.Verdict.Capable, after.Verdict.Capable},
	} {
		if of[0] != tristate.True && of[1] == tristate.True {
			return fmt.Sprintf("%s turns from %v to true", what, of[0])
		}
	}
	return ""
}

// takeAway moves what a pattern names out of a tree and returns what moves it back; nil where there
// is nothing.
func takeAway(t *testing.T, dir, pattern string) (putBack func()) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) == 0 {
		return nil
	}
	aside := dir + "-aside"
	if err := os.MkdirAll(aside, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, path := range found {
		if err := os.Rename(path, fmt.Sprintf("%s/%d", aside, i)); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for i, path := range found {
			if err := os.Rename(fmt.Sprintf("%s/%d", aside, i), path); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(aside); err != nil {
			t.Fatal(err)
		}
	}
}
