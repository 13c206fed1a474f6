//go:build vm

package vm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The machine as it was wired, without IOMMU and without a driver.
func TestTopology(t *testing.T) {
	m := boot(t, node(), "")
	for _, uid := range []uint32{root, nobody} {
		m.expectLabels(uid, bare)
		m.expectTopology(uid)
		v := m.expectFindings(uid, map[string]string{
			"hardware": "OK", "gpu-driver": "FAIL GPUDriverNotLoaded", "nic-driver": "FAIL NICDriverNotLoaded",
			"rdma-device": "FAIL NoRDMADevice", "port": "FAIL NoActivePort", "peermem": "FAIL NoPeerMemoryPath", "dmabuf": "FAIL",
			"rdma-stack": "OK", "level": "WARN", "nccl-default": "WARN", "iommu": "OK",
		})
		if diff := cmp.Diff(verdict{Capable: "true", Ready: "false", Reason: "GPUDriverNotLoaded", Level: "NODE", LevelBest: "PIX"}, v.verdict); diff != "" {
			t.Errorf("user %d, verdict (-want +got):\n%s", uid, diff)
		}
	}
	a := m.startAgent(bare)
	a.soon(a.removeAndRescan)
	m.expectTopology(root)
	a.stop()
}

// removeAndRescan takes functions from the machine and gives them back: a NIC, and a
// switch with all that is below it.
func (a *agent) removeAndRescan() []time.Duration {
	rescan := func() { a.write("/sys/bus/pci/rescan", "1") }
	return []time.Duration{
		a.expect("NIC d removed", bare.with(labels{"gdr.nics": "4", "gdr.level": "SYS", "gdr.align": "none"}), func() {
			a.write(a.device("d")+"/remove", "1")
		}),
		a.expect("the bus scanned", bare, rescan),
		a.expect("the inner switch removed", bare.with(labels{"gdr.nics": "4", "gdr.gpus": "3"}), func() {
			a.write(a.device("b")+"/../../remove", "1")
		}),
		a.expect("the bus scanned", bare, rescan),
	}
}

// topology is what `topo -o json` prints, as far as it is compared.
type topology struct {
	Topology string
	GPUs     []endpoint
	NICs     []endpoint
	Pairs    []struct{ GPU, NIC, Level, NCCL string }
	Problems []string
}

type endpoint struct {
	Address, Family, Device, PCIeRoot, Driver, RDMA string
	NUMANode                                        int
	Eligible                                        bool
}

// expectTopology compares what was wired with what the program sees.
func (m *machine) expectTopology(uid uint32) {
	m.t.Helper()
	var got topology
	m.decode(&got, uid, 0, "topo")
	want := topology{Topology: "virtual", Problems: []string{}}
	for _, f := range m.wiring.functions {
		e := endpoint{
			Address: m.address[f.name], Family: families[f.Vendor], Device: fmt.Sprintf("%04x", f.Device),
			PCIeRoot: fmt.Sprintf("pci0000:%02x", f.host), NUMANode: f.node, Eligible: true,
			Driver: m.driven[f.name].driver, RDMA: m.driven[f.name].rdma,
		}
		if f.isNIC() {
			want.NICs = append(want.NICs, e)
		} else {
			want.GPUs = append(want.GPUs, e)
		}
	}
	levels := map[string]string{}
	for _, p := range got.Pairs {
		levels[p.GPU+" "+p.NIC] = p.Level + "/" + p.NCCL
	}
	got.Pairs = nil
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("user %d, topology (-want +got):\n%s", uid, diff)
	}
	if diff := cmp.Diff(m.wiredLevels(), levels); diff != "" {
		m.t.Errorf("user %d, levels (-want +got):\n%s", uid, diff)
	}
}

// wiredLevels reads the table of levels.
func (m *machine) wiredLevels() map[string]string {
	lines := strings.Split(strings.TrimSpace(m.wiring.levels), "\n")
	nics := strings.Fields(lines[0])
	levels := map[string]string{}
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		for i, nic := range nics {
			levels[m.address[cells[0]]+" "+m.address[nic]] = cells[i+1]
		}
	}
	return levels
}
