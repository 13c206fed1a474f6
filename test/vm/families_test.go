//go:build vm

package vm

import (
	"strings"
	"testing"
	"time"

	"gdr-features/test/vm/mpqemu"
	"gdr-features/test/vm/wire"
)

// Functions whose drivers stand in modules/.
var (
	efa1   = mpqemu.Function{Vendor: amazon, Device: 0xefa1, Class: ethernet}
	thor2  = mpqemu.Function{Vendor: broadcom, Device: 0x1760, Class: ethernet}
	dsc    = mpqemu.Function{Vendor: pensando, Device: 0x1002, Class: ethernet}
	mi300x = mpqemu.Function{Vendor: amd, Device: 0x74a1, Class: accelerator}
)

// QEMU's arguments that make a machine one of a cloud whose guests are published to do
// GPUDirect RDMA: below an emulated switch readiness is unknown otherwise.
var (
	amazonEC2 = []string{"-smbios", "type=1,manufacturer=Amazon EC2,product=p5.48xlarge"}
	azure     = []string{"-smbios", "type=1,manufacturer=Microsoft Corporation,product=Virtual Machine"}
)

// aws is a machine with an EFA and a ConnectX.
//
//	host 20, node 0: port: switch: GPU A
//	                               NIC e, an EFA
//	                 port: NIC c, a ConnectX
func aws() *wiring {
	w := &wiring{
		modules: []string{"neuron", "efa", "nvidia", "efa_nv_peermem"},
		levels: `
    e        c
A   PIX/PIX  PHB/PHB
`,
	}
	host := w.hostBridge(0x20, 0)
	below := w.switchBelow(w.rootPort(host), 2)
	w.gpu("A", below[0])
	w.endpoint(below[1], 0, "e", efa1)
	w.nic(w.rootPort(host), []string{"c"}, ethernet)
	return w
}

// EFA's driver says in the file p2p whose memory it reaches. The ConnectX, which has no
// driver, changes nothing.
func TestEFA(t *testing.T) {
	m := boot(t, aws(), "", amazonEC2...)
	bare := unused.with(labels{
		"gpudirect.rdma.connectx": "true", "gdr.gpu.nvidia": "true", "gdr.nic.efa": "true", "gdr.nic.mlx5": "true",
		"gdr.gpus": "1", "gdr.nics": "2", "gdr.level": "PIX", "gdr.level.best": "PIX", "gdr.nccl-default": "true", "gdr.align": "pcieRoot",
	})
	m.expectTopology(root)
	a := m.startAgent(bare)
	// A provider that is for AWS's own accelerators proves nothing for a GPU.
	port := labels{"gdr.link": "unspecified", "gdr.rate": "100", "gdr.degraded": ""} // links do not tell
	m.load("neuron")
	m.loadNeeds("efa")
	a.soon(func() []time.Duration {
		loaded := a.expect("efa loaded", bare.with(port), func() { m.insert("efa") })
		m.expectFile(m.device("e")+"/p2p", "NEURON\n")
		removed := a.expect("efa removed", bare, func() { m.unload("efa") })
		return []time.Duration{loaded, removed}
	})
	m.load("efa")
	for file, text := range map[string]string{"node_type": "7: unspecified\n", "ports/1/link_layer": "Unknown\n", "ports/1/state": "4: ACTIVE\n"} {
		m.expectFile("/sys/class/infiniband/efa_0/"+file, text)
	}

	usable := bare.with(port).with(labels{"gpudirect.rdma": "true", "gdr.reason": "", "gdr.dmabuf": "true"})
	a.expect("nvidia loaded", usable, func() { m.load("nvidia") })
	a.soon(func() []time.Duration {
		return []time.Duration{
			a.expect("efa_nv_peermem loaded", usable.with(labels{"gdr.peermem": "true"}), func() { m.load("efa_nv_peermem") }),
			a.expect("efa_nv_peermem removed", usable, func() { m.unload("efa_nv_peermem") }),
		}
	})
	m.driven = map[string]driven{"A": {driver: "nvidia"}, "e": {"efa", "efa_0"}}
	for _, uid := range []uint32{root, nobody} {
		m.expectTopology(uid)
		m.expectCheck(uid, ready, map[string]string{
			"gpu-driver": "OK", "nic-driver": "OK", "rdma-device": "OK", "port": "OK", "level": "OK",
			"dmabuf": "WARN", // older versions of EFA's NCCL plugin do not use it with such an EFA
		})
	}
	m.expectAsked("efa_0 can")
	a.stop()
}

// mixed is a machine with GPUs of two vendors.
//
//	host 20, node 0: port: switch: GPU M, an Instinct
//	                               GPU N, NVIDIA's
//	                               NIC t, a Thor 2
func mixed() *wiring {
	w := &wiring{
		modules: []string{"nvidia", "nvidia_peermem", "amdgpu", "inbox/bnxt_re", "bnxt_re"},
		levels: `
    t
M   PIX/PIX
N   PIX/PIX
`,
	}
	below := w.switchBelow(w.rootPort(w.hostBridge(0x20, 0)), 3)
	w.endpoint(below[0], 0, "M", mi300x)
	w.gpu("N", below[1])
	w.endpoint(below[2], 0, "t", thor2)
	return w
}

// GPUs of two vendors use one NIC through ib_peer_mem. NVIDIA's client counts where both
// it and the NIC's driver hold that module. AMD's driver holds it by no link, and is
// listed below memory_peers.
func TestTwoVendors(t *testing.T) {
	m := boot(t, mixed(), "", azure...)
	bare := unused.with(labels{
		"gpudirect.rdma.connectx": "false", "gdr.gpu.amd": "true", "gdr.gpu.nvidia": "true", "gdr.nic.bnxt_re": "true",
		"gdr.gpus": "2", "gdr.nics": "1", "gdr.level": "PIX", "gdr.level.best": "PIX", "gdr.nccl-default": "true", "gdr.align": "pcieRoot",
	})
	m.expectTopology(root)
	m.expectLabels(nobody, bare)
	m.load("ib_peer_mem") // its interface is not the RDMA stack's
	a := m.startAgent(bare)
	a.expect("nvidia loaded", bare.with(labels{"gdr.reason": "NICDriverNotLoaded"}), func() { m.load("nvidia") })
	a.expect("bnxt_en loaded", bare.with(labels{"gdr.reason": "NoRDMADevice"}), func() { m.load("bnxt_en") })

	usable := bare.with(labels{
		"gdr.link": "ethernet", "gdr.rate": "100", "gdr.degraded": "", // links do not tell
		"gpudirect.rdma": "true", "gdr.reason": "", "gdr.dmabuf": "true",
	})
	a.expect("the kernel's own bnxt_re loaded", usable, func() { m.load("inbox/bnxt_re") })
	m.driven = map[string]driven{"N": {driver: "nvidia"}, "t": {"bnxt_en", "bnxt_re0"}}
	m.expectTopology(nobody)
	m.expectAsked("bnxt_re0 can")

	a.expect("nvidia_peermem loaded, a client for nobody", usable, func() { m.load("nvidia_peermem") })
	m.expectHolders("nvidia_peermem")
	m.unload("bnxt_re")
	a.soon(func() []time.Duration {
		client := usable.with(labels{"gdr.peermem": "true"})
		loaded := a.expect("Broadcom's bnxt_re loaded", client, func() { m.load("bnxt_re") })
		m.expectHolders("bnxt_re", "nvidia_peermem")
		return []time.Duration{
			loaded,
			a.expect("nvidia_peermem removed", usable, func() { m.unload("nvidia_peermem") }),
			a.expect("nvidia_peermem loaded", client, func() { m.load("nvidia_peermem") }),
		}
	})
	for _, uid := range []uint32{root, nobody} {
		m.expectCheck(uid, ready, map[string]string{"gpu-driver": "OK", "peermem": "OK", "dmabuf": "OK"})
	}
	a.stop()
	for _, module := range []string{"nvidia_peermem", "nvidia", "bnxt_re", "ib_peer_mem"} {
		m.unload(module)
	}
	m.amdgpu(bare)
}

// amdgpu is loaded before ib_peer_mem, so that it registers when a process opens
// /dev/kfd, of which the kernel tells nobody.
func (m *machine) amdgpu(bare labels) {
	m.t.Helper()
	m.load("amdgpu")
	m.expectLabels(root, bare.with(labels{"gdr.reason": "NoRDMADevice"}))
	m.load("bnxt_re")
	port := bare.with(labels{"gdr.link": "ethernet", "gdr.rate": "100", "gdr.degraded": ""})
	a := m.startAgent(port.with(labels{"gdr.reason": "PeermemNotLoaded"}))
	usable := port.with(labels{"gpudirect.rdma": "true", "gdr.reason": "", "gdr.peermem": "true"})
	a.expect("a process opens /dev/kfd", usable, func() { m.try(wire.Request{Command: wire.Read, Path: "/dev/kfd"}) })
	m.expectHolders("bnxt_re")
	m.driven = map[string]driven{"M": {driver: "amdgpu"}, "t": {"bnxt_en", "bnxt_re0"}}
	for _, uid := range []uint32{root, nobody} {
		m.expectTopology(uid)
		m.expectCheck(uid, ready, map[string]string{"nic-driver": "OK", "rdma-device": "OK", "port": "OK"})
	}
	a.stop()
}

// instinct is a machine of AMD alone.
//
//	host 20, node 0: port: switch: GPU M, an Instinct
//	                               NIC p, a Pollara or DSC
func instinct() *wiring {
	w := &wiring{
		modules: []string{"amdgpu", "ionic_rdma"},
		levels: `
    p
M   PIX/PIX
`,
	}
	below := w.switchBelow(w.rootPort(w.hostBridge(0x20, 0)), 2)
	w.endpoint(below[0], 0, "M", mi300x)
	w.endpoint(below[1], 0, "p", dsc)
	return w
}

// amdgpu is loaded after ib_peer_mem, and registers at once.
func TestInstinct(t *testing.T) {
	m := boot(t, instinct(), "", azure...)
	bare := unused.with(labels{
		"gdr.gpu.amd": "true", "gdr.nic.ionic": "true", "gdr.gpus": "1", "gdr.nics": "1",
		"gdr.level": "PIX", "gdr.level.best": "PIX", "gdr.nccl-default": "true", "gdr.align": "pcieRoot",
		"gpudirect.storage": "", // of NVIDIA's stack
	})
	m.expectTopology(root)
	m.expectLabels(root, bare)
	m.load("ib_peer_mem")
	a := m.startAgent(bare)
	client := bare.with(labels{"gdr.peermem": "true"})
	a.expect("amdgpu loaded", client.with(labels{"gdr.reason": "NICDriverNotLoaded"}), func() { m.load("amdgpu") })
	a.expect("ionic loaded", client.with(labels{"gdr.reason": "NoRDMADevice"}), func() { m.load("ionic") })
	usable := client.with(labels{"gdr.link": "ethernet", "gdr.rate": "100", "gdr.degraded": "", "gpudirect.rdma": "true", "gdr.reason": ""})
	a.expect("ionic_rdma loaded", usable, func() { m.load("ionic_rdma") })
	m.driven = map[string]driven{"M": {driver: "amdgpu"}, "p": {"ionic", "ionic_0"}}
	for _, uid := range []uint32{root, nobody} {
		m.expectTopology(uid)
		m.expectCheck(uid, ready, map[string]string{
			"gpu-driver": "OK", "nic-driver": "OK", "rdma-device": "OK", "port": "OK", "peermem": "OK",
		})
	}
	m.expectAsked("ionic_0 can")
	a.stop()
}

// expectFile compares a file.
func (m *machine) expectFile(path, want string) {
	m.t.Helper()
	if got := m.read(path); got != want {
		m.t.Errorf("%s: %q, want %q", path, got, want)
	}
}

// expectHolders compares the modules that hold ib_peer_mem.
func (m *machine) expectHolders(want ...string) {
	m.t.Helper()
	got := m.do(wire.Request{Command: wire.List, Path: "/sys/module/ib_peer_mem/holders"}).Out
	if got != strings.Join(want, "\n") {
		m.t.Errorf("ib_peer_mem is held by %q, want %v", got, want)
	}
}

// expectAsked makes sure that the RDMA devices say whether they register DMA-BUF.
func (m *machine) expectAsked(want string) {
	m.t.Helper()
	v := m.expectCheck(root, ready, map[string]string{}, "--probe-verbs")
	if got := v.details["dmabuf"]; !strings.Contains(got, want) {
		m.t.Errorf("DMA-BUF: %s, want %s", got, want)
	}
}
