//go:build vm

package vm

import (
	"strings"
	"testing"
	"time"

	"gdr-features/test/vm/wire"
)

// Debian's own drivers: mlx5_core cannot drive a NIC without firmware, so it
// is loaded and bound to none. A software RDMA device is no NIC.
func TestDrivers(t *testing.T) {
	m := boot(t, node(), "")
	a := m.startAgent(bare)
	m.loadNeeds("mlx5_core")
	inbox := bare.with(labels{"gdr.mofed": "inbox"})
	a.soon(func() []time.Duration {
		loaded := a.expect("mlx5_core loaded", inbox, func() { m.insert("mlx5_core") })
		removed := a.expect("mlx5_core removed", bare, func() { m.unload("mlx5_core") })
		return []time.Duration{loaded, removed}
	})
	m.load("mlx5_ib")
	m.addRXE()
	a.expect("mlx5_ib loaded, rxe0 added", inbox, func() {})
	for _, uid := range []uint32{root, nobody} {
		m.expectDrivers(uid)
	}
	a.stop()
}

// addRXE adds rxe0, whose port is active at once.
func (m *machine) addRXE() {
	m.t.Helper()
	m.load("rdma_rxe")
	m.load("crc32_generic") // which rdma_rxe asks for by the name of the algorithm
	m.load("dummy")
	m.do(wire.Request{Command: wire.AddRXE, Path: "rxe0", Device: "dummy0"})
	if state := m.read("/sys/class/infiniband/rxe0/ports/1/state"); state != "4: ACTIVE\n" {
		m.t.Fatalf("rxe0 is %s", state)
	}
}

// expectDrivers compares what the kernel's own modules, symbols and devices say.
func (m *machine) expectDrivers(uid uint32) {
	m.t.Helper()
	v := m.expectFindings(uid, map[string]string{
		"nic-driver": "FAIL NICDriverNotLoaded", "rdma-device": "FAIL NoRDMADevice", "port": "FAIL NoActivePort",
		"peermem": "FAIL NoPeerMemoryPath", "dmabuf": "FAIL", "rdma-stack": "OK",
	}, "--probe-verbs")
	for check, want := range map[string]string{
		"peermem":    "not loaded; it needs the GPU driver first",
		"rdma-stack": "the kernel's own drivers, PeerDirect none", // kallsyms was read, and lacks the interface
		"dmabuf":     "; asked: rxe0 cannot",                      // the kernel has the method, rxe has not (EOPNOTSUPP)
	} {
		if got := v.details[check]; !strings.Contains(got, want) {
			m.t.Errorf("user %d, %s: %s, want %s", uid, check, got, want)
		}
	}
	var topo topology
	m.decode(&topo, uid, 0, "topo")
	rxe := 0
	for _, nic := range topo.NICs {
		if nic.RDMA == "" {
			continue
		}
		if rxe++; nic.RDMA != "rxe0" || nic.Eligible || nic.Address != "" {
			m.t.Errorf("user %d, RDMA device %+v", uid, nic)
		}
	}
	if rxe != 1 {
		m.t.Errorf("user %d, %d RDMA devices", uid, rxe)
	}
}
