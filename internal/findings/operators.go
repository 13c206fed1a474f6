package findings

import (
	"slices"
	"strconv"

	"gdr-features/internal/finding"
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
	Name: "operators", Sources: []string{pci.AnyFile(pci.DriverFile)}, Facts: []kmod.Fact{kmod.FactGPUOperator},
	Codes: []finding.Code{"OperatorsWait", "OperatorRDMAOff", "PeermemSidecar"},
	Judge: judgeOperators,
}

func judgeOperators(f *judged) finding.Said {
	o := &f.advised().Operators
	marks := []string{
		finding.SawFile(f.file(kmod.FactMOFEDReady), o.MOFEDReady), finding.SawFile(f.file(kmod.FactDriverReady),
			o.DriverReady),
	}
	switch {
	case o.GPU != tristate.True:
		return finding.Said{}
	case !loadableClient(f) && o.RDMA == tristate.True:
		return finding.Warn("OperatorsWait", "the GPU Operator's container nvidia-peermem-ctr waits forever: it "+
			"works only with ConnectX and BlueField, "+
			"and the NICs here are of the family %s", f.NIC.Name).Saw(marks...).Saw(sawRDMAEnabled(f)...).
			Do("set driver.rdma.enabled=false for this node", "the label gpudirect.rdma.connectx selects the nodes "+
				"that need it")
	case !loadableClient(f), f.Verdict.Peermem != tristate.False:
		return finding.Said{}
	case driverWaits(f) && f.Verdict.NICDriven == tristate.True:
		return finding.Warn("OperatorsWait", operatorWaits+", though the NICs have a driver of the host").
			Saw(marks...).
			Do("set driver.rdma.useHostMofed=true to use the drivers of the host", "or "+installMOFED, orDoWithout)
	case driverWaits(f):
		return finding.Warn("OperatorsWait", operatorWaits).Saw(marks...).Do(installMOFED, orDoWithout)
	case o.DriverReady == tristate.True:
		return withoutPeermem(f).Saw(marks...).Saw(sawRDMAEnabled(f)...)
	}
	return finding.Said{}
}

// withoutPeermem says why nothing has loaded nvidia-peermem for the driver of the GPU Operator.
func withoutPeermem(f *judged) finding.Said {
	const logs = "`kubectl logs -c nvidia-peermem-ctr` of this node's driver Pod"
	switch o := &f.advised().Operators; {
	case o.RDMA == tristate.False && f.Verdict.DMABuf != tristate.True:
		return finding.Warn("OperatorRDMAOff", "the GPU Operator is not configured to load nvidia-peermem").
			Do("set driver.rdma.enabled=true, with useHostMofed=true unless the Network Operator's driver Pod runs " +
				"on this node")
	case o.RDMA == tristate.True && o.MOFEDReady == tristate.False:
		return finding.Warn("OperatorsWait", "the GPU Operator's container nvidia-peermem-ctr waits for the "+
			"Network Operator's drivers, which are not ready; "+
			"or, with useHostMofed, modprobe failed in it").
			Do(logs, "if it says waiting, set driver.rdma.useHostMofed=true for drivers of the host, or install "+
				"MOFED with the Network Operator", orOff(f))
	case o.RDMA == tristate.True && o.MOFEDReady == tristate.True && f.Verdict.NICDriven == tristate.True:
		return finding.Warn("PeermemSidecar", "both operators' drivers are ready, but nvidia-peermem is not "+
			"loaded: its container failed, "+
			"or the RDMA drivers were restarted since").
			Do(logs, "the finding peermem explains what modprobe says there",
				"the kubelet restarts the container until the module is loaded, so a new Pod changes nothing", orOff(f))
	}
	return finding.Said{}
}

const (
	operatorWaits = "if driver.rdma.enabled is set, the GPU Operator's driver waits forever for the Network " +
		"Operator's drivers, which are not ready"
	installMOFED = "install MOFED with the Network Operator (NicClusterPolicy ofedDriver) and look at its Pod " +
		"on this node"
	orDoWithout = "or set driver.rdma.enabled=false, as DMA-BUF does not depend on the order"
)

// driverWaits: neither operator has loaded its drivers.
func driverWaits(f *judged) bool {
	o := &f.advised().Operators
	return o.DriverReady == tristate.False && o.MOFEDReady == tristate.False &&
		f.Verdict.GPUDriven == tristate.False && f.Verdict.AllPassthrough == tristate.False
}

func sawRDMAEnabled(f *judged) []string {
	return f.saw(kmod.FactDriverReady, "GPU_DIRECT_RDMA_ENABLED: "+f.advised().Operators.RDMA.String())
}

// modules finds RDMA drivers that were unloaded half-way: a restart takes the NICs'
// drivers out and then cannot unload the core, which peermem holds.
var modules = check{Name: "modules", Codes: []finding.Code{"OFEDReloadBlocked"}, Judge: judgeModules}

func judgeModules(f *judged) finding.Said {
	client, core := f.holder()
	if client == "" {
		return finding.Said{}
	}
	users := f.advised().Peermem.Users
	unload := "`modprobe -r " + client + "`, then `/etc/init.d/openibd restart` (or leave that to the Network " +
		"Operator's Pod), then `modprobe " + client + "`"
	if users > 0 {
		unload = "end the jobs that use GPU memory over RDMA (refcnt counts their regions), then " + unload
	}
	blocked := finding.Warn("OFEDReloadBlocked", "%s holds %s while NICs are without driver or RDMA device: "+
		"a restart of the RDMA drivers (openibd, or the Network Operator's Pod) cannot finish", client, core).
		Saw(finding.Saw(kmod.AttributeFile(core, "holders"), client)).Do(unload)
	if users >= 0 && !forerunner(f, client) {
		blocked = blocked.Saw(finding.Saw(kmod.AttributeFile(client, "refcnt"), strconv.Itoa(users)))
	}
	return blocked
}

// holder returns the client that holds a module of the RDMA core on a node whose NICs
// lack a driver or RDMA device; "" for none.
func (f *judged) holder() (client, core string) {
	switch {
	case f.Verdict.NICDriven != tristate.False && f.Verdict.RDMADevice != tristate.False,
		allNICsPassedThrough(f), !f.NIC.PeerMemory.Core:
		return "", ""
	}
	for _, core := range [...]string{"ib_uverbs", "ib_core"} {
		for _, client := range f.GPU.Client.Modules {
			if slices.Contains(f.advised().Holders[core], client) {
				return client, core
			}
		}
	}
	return "", ""
}
