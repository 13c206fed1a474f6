//go:build vm

package vm

import (
	"encoding/binary"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"gdr-features/test/vm/wire"
)

// iommu adds an IOMMU to the machine.
var iommu = []string{"-device", "intel-iommu"}

// With an IOMMU the kernel turns the ACS redirects on, where a port has them.
// Only root may read them. What a hypervisor's ports say of them proves nothing.
func TestTranslated(t *testing.T) {
	m := boot(t, node(), "intel_iommu=on", iommu...)
	m.expectGroups("DMA", "DMA-FQ")
	m.expectTopology(root)
	want := bare.with(labels{"gdr.iommu": "translated"})
	a := m.startAgent(want)
	for _, redirects := range []bool{true, false} {
		for _, uid := range []uint32{root, nobody} {
			m.expectLabels(uid, want)
			m.expectFindings(uid, map[string]string{"iommu": "WARN", "acs": "UNKNOWN"})
		}
		m.expectRedirect(redirects)
		if redirects {
			m.clearACS()
		}
	}
	a.stop()
}

// expectRedirect compares what root ports on the way between two devices redirect; nobody can
// read that.
func (m *machine) expectRedirect(want bool) {
	m.t.Helper()
	for uid, read := range map[uint32]bool{root: true, nobody: false} {
		var path struct {
			Hops []struct {
				Role string
				ACS  *struct{ Redirect []string }
			}
		}
		m.decode(&path, uid, ready, "explain", m.address["A"], m.address["c"])
		ports := 0
		for _, h := range path.Hops {
			if h.Role != "root port" {
				continue
			}
			ports++
			switch {
			case read != (h.ACS != nil):
				m.t.Errorf("user %d: ACS of a root port: %v", uid, h.ACS)
			case read && want != (len(h.ACS.Redirect) > 0):
				m.t.Errorf("a root port redirects %q, want some: %v", h.ACS.Redirect, want)
			}
		}
		if ports != 2 {
			m.t.Errorf("user %d: %d root ports on the way from A to c", uid, ports)
		}
	}
}

// With iommu=pt the groups are there and translate nothing. GPUs that are handed
// to virtual machines are no use to this one.
func TestPassthrough(t *testing.T) {
	m := boot(t, node(), "intel_iommu=on iommu=pt", iommu...)
	m.expectGroups("identity")
	m.expectTopology(nobody)
	want := bare.with(labels{"gdr.iommu": "passthrough"})
	m.expectLabels(root, want)
	m.expectFindings(root, map[string]string{"iommu": "OK", "acs": "UNKNOWN"})
	m.expectLabels(nobody, want)
	m.expectFindings(nobody, map[string]string{"iommu": "OK", "acs": "UNKNOWN"})

	a := m.startAgent(want)
	m.load("vfio_pci")
	bind := func(gpu string) { m.write("/sys/bus/pci/drivers_probe", m.address[gpu]) }
	for _, gpu := range []string{"A", "B", "C", "D"} {
		m.write(m.device(gpu)+"/driver_override", "vfio-pci")
		if gpu != "D" {
			bind(gpu)
		}
	}
	a.expect("three of four GPUs handed over", want, func() {})
	a.soon(func() []time.Duration {
		return []time.Duration{
			a.expect("the last GPU handed over", want.with(labels{"gdr.reason": "GPUPassthrough"}), func() { bind("D") }),
			a.expect("it is taken back", want, func() { m.write(m.device("D")+"/driver/unbind", m.address["D"]) }),
		}
	})
	a.stop()
}

// expectGroups makes sure that every function has an IOMMU group of such a type.
func (m *machine) expectGroups(types ...string) {
	m.t.Helper()
	for name := range m.address {
		group := path.Base(m.do(wire.Request{Command: wire.Link, Path: m.device(name) + "/iommu_group"}).Out)
		if kind := strings.TrimSpace(m.read("/sys/kernel/iommu_groups/" + group + "/type")); !slices.Contains(types, kind) {
			m.t.Errorf("function %s is in group %s of type %q", name, group, kind)
		}
	}
}

// clearACS does what NCCL's manual says: setpci ECAP_ACS+6.w=0 for every port.
func (m *machine) clearACS() {
	m.t.Helper()
	cleared := 0
	for address := range m.functions() {
		file := devices + address + "/config"
		if at := acsControl([]byte(m.read(file))); at > 0 {
			m.do(wire.Request{Command: wire.Write, Path: file, Data: []byte{0, 0}, Offset: at})
			cleared++
		}
	}
	if cleared != rootPorts {
		m.t.Errorf("ACS cleared at %d ports, want %d", cleared, rootPorts)
	}
}

// acsControl finds the ACS control register among the extended capabilities.
func acsControl(config []byte) int64 {
	const first, acs = 0x100, 0x0d
	for at := first; at >= first && at+8 <= len(config); {
		head := binary.LittleEndian.Uint32(config[at:])
		if head&0xffff == acs {
			return int64(at) + 6
		}
		at = int(head >> 20)
	}
	return 0
}
