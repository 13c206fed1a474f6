package findings

import (
	"fmt"
	"slices"
	"strconv"

	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// operators says which operator waits for the other on a node of the GPU Operator,
// as far as the files that they leave show. Its containers wait without end: before
// the GPU driver is loaded in the init container k8s-driver-manager, after it in
// nvidia-peermem-ctr, either for mlx5_core (useHostMofed) or for the Network
// Operator's mark (docs/operators.md#manager-wait, #ctr-peermem).
var operators = check{
	name: "operators", sources: []string{pci.AnyFile(pci.DriverFile)}, facts: []kmod.Fact{kmod.FactGPUOperator}, evidence: func(f *judged) []string {
		return []string{
			sawFile(f.file(kmod.FactMOFEDReady), f.advised().Operators.MOFEDReady), sawFile(f.file(kmod.FactDriverReady), f.advised().Operators.DriverReady),
		}
	},
	rows: []row{
		{
			status: Warn, code: "OperatorsWait", when: waitsForOthers,
			text: "the GPU Operator's container nvidia-peermem-ctr waits forever: it works only with ConnectX and BlueField, and the NICs here are of the family {nic}",
			fix:  do("set driver.rdma.enabled=false for this node", "the label gpudirect.rdma.connectx selects the nodes that need it"), evidence: sawRDMAEnabled,
		},
		{
			status: Warn, code: "OperatorsWait", when: func(f *judged) bool { return driverWaits(f) && f.NICDriven() == tristate.True },
			text: operatorWaits + ", though the NICs have a driver of the host",
			fix:  do("set driver.rdma.useHostMofed=true to use the drivers of the host", "or "+installMOFED, orDoWithout),
		},
		{status: Warn, code: "OperatorsWait", when: driverWaits, text: operatorWaits, fix: do(installMOFED, orDoWithout)},
		{
			status: Warn, code: "OperatorRDMAOff", when: func(f *judged) bool {
				return peermemLacking(f) && f.advised().Operators.DriverReady == tristate.True && f.advised().Operators.RDMA == tristate.False && f.Verdict.DMABuf != tristate.True
			},
			text: "the GPU Operator is not configured to load nvidia-peermem",
			fix:  do("set driver.rdma.enabled=true, with useHostMofed=true unless the Network Operator's driver Pod runs on this node"), evidence: sawRDMAEnabled,
		},
		{
			status: Warn, code: "OperatorsWait", when: func(f *judged) bool {
				return peermemLacking(f) && f.advised().Operators.DriverReady == tristate.True && f.advised().Operators.RDMA == tristate.True && f.advised().Operators.MOFEDReady == tristate.False
			},
			text: "the GPU Operator's container nvidia-peermem-ctr waits for the Network Operator's drivers, which are not ready; or, with useHostMofed, modprobe failed in it",
			fix:  do("kubectl logs -c nvidia-peermem-ctr of this node's driver Pod", "if it says waiting, set driver.rdma.useHostMofed=true for drivers of the host, or install MOFED with the Network Operator", "{orOff}"), evidence: sawRDMAEnabled,
		},
		{
			status: Warn, code: "PeermemSidecar", when: func(f *judged) bool {
				return peermemLacking(f) && f.advised().Operators.DriverReady == tristate.True && f.advised().Operators.RDMA == tristate.True && f.advised().Operators.MOFEDReady == tristate.True && f.NICDriven() == tristate.True
			},
			text: "both operators' drivers are ready, but nvidia-peermem is not loaded: its container failed, or the RDMA drivers were restarted since",
			fix:  do("kubectl logs -c nvidia-peermem-ctr of this node's driver Pod", "the finding peermem explains what modprobe says there", "the kubelet restarts the container until the module is loaded, so a new Pod changes nothing", "{orOff}"), evidence: sawRDMAEnabled,
		},
	},
}

const (
	operatorWaits = "if driver.rdma.enabled is set, the GPU Operator's driver waits forever for the Network Operator's drivers, which are not ready"
	installMOFED  = "install MOFED with the Network Operator (NicClusterPolicy ofedDriver) and look at its Pod on this node"
	orDoWithout   = "or set driver.rdma.enabled=false, as DMA-BUF does not depend on the order"
)

// peermemLacking: a node of the GPU Operator lacks a peer memory client.
func peermemLacking(f *judged) bool {
	return loadableClient(f) && f.advised().Operators.GPU == tristate.True && f.Verdict.Peermem == tristate.False
}

// waitsForOthers: the GPU Operator has rdma enabled on a node without a NIC for it.
func waitsForOthers(f *judged) bool {
	return f.advised().Operators.GPU == tristate.True && !loadableClient(f) && f.advised().Operators.RDMA == tristate.True
}

// driverWaits: neither operator has loaded its drivers.
func driverWaits(f *judged) bool {
	return peermemLacking(f) && f.advised().Operators.DriverReady == tristate.False && f.advised().Operators.MOFEDReady == tristate.False &&
		f.GPUDriven() == tristate.False && f.AllPassthrough() == tristate.False
}

func sawRDMAEnabled(f *judged) []string {
	return f.saw(kmod.FactDriverReady, "GPU_DIRECT_RDMA_ENABLED: "+f.advised().Operators.RDMA.String())
}

// modules finds RDMA drivers that were unloaded half-way: a restart takes the NICs'
// drivers out and then cannot unload the core, which peermem holds.
var modules = check{name: "modules", rows: []row{{
	status: Warn, code: "OFEDReloadBlocked", which: held,
	text: "{about} while NICs are without driver or RDMA device: a restart of the RDMA drivers (openibd, or the Network Operator's Pod) cannot finish",
	fix: func(f *judged) []string {
		client, _ := f.holder()
		unload := "modprobe -r " + client + ", then /etc/init.d/openibd restart (or leave that to the Network Operator's Pod), then modprobe " + client
		if f.advised().Peermem.Users > 0 {
			unload = "end the jobs that use GPU memory over RDMA (refcnt counts their regions), then " + unload
		}
		return steps(unload)
	},
}}}

func held(f *judged) (module subjects) {
	client, core := f.holder()
	if client == "" {
		return module
	}
	module.add(fmt.Sprintf("%s holds %s", client, core), saw(kmod.HoldersDir(core), client))
	if users := f.advised().Peermem.Users; !forerunner(f, client) && users >= 0 {
		module.evidence = append(module.evidence, saw(kmod.AttributeFile(client, "refcnt"), strconv.Itoa(users)))
	}
	return module
}

// holder returns the client that holds a module of the RDMA core on a node whose NICs
// lack a driver or RDMA device; "" for none.
func (f *judged) holder() (client, core string) {
	if f.NICDriven() != tristate.False && f.RDMADevice() != tristate.False || allNICsPassedThrough(f) {
		return "", ""
	}
	for _, core := range [...]string{"ib_uverbs", "ib_core"} {
		for _, client := range peerModules(f) {
			if slices.Contains(f.advised().Holders[core], client) {
				return client, core
			}
		}
	}
	return "", ""
}
