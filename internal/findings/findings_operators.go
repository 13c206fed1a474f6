package findings

import (
	"slices"
	"strconv"

	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Marks of the operators; see kmod.Operators.
const (
	validations = "/run/nvidia/validations"
	driverCtr   = validations + "/.driver-ctr-ready"
	mofedReady  = "/run/mellanox/drivers/.driver-ready"
)

// operators says who waits for whom on a node of the GPU Operator, as far as its
// marks show. Its containers wait without end: before the GPU driver is loaded in
// the init container k8s-driver-manager, after it in nvidia-peermem-ctr, either
// for mlx5_core (useHostMofed) or for the Network Operator's mark
// (docs/operators.md#manager-wait, #ctr-peermem).
func (f *Facts) operators(v verdict.Verdict) []Finding {
	o := f.advice().Operators
	if o.GPU != tristate.True || v.Peermem != tristate.False {
		return nil
	}
	out := Finding{Check: "operators", Status: Warn, Sources: []string{validations, mofedReady, pciDevices + "/*/driver"}}
	out.Evidence = []string{sawFile(mofedReady, o.MOFEDReady), sawFile(driverCtr, o.DriverReady)}
	host := f.NICDriven() == tristate.True
	switch {
	case f.GPUDriven() == tristate.False && o.DriverReady == tristate.False && o.MOFEDReady == tristate.False && f.AllPassthrough() == tristate.False:
		out.Code = OperatorsWait
		out.Detail = "if driver.rdma.enabled is set, the GPU Operator's driver waits without end for the Network Operator's drivers, which are not ready"
		out.Fix = "install MOFED by the Network Operator (NicClusterPolicy ofedDriver) and see its Pod on this node; or driver.rdma.enabled=false, as DMA-BUF needs no order"
		if host {
			out.Detail += ", though the adapters have a driver of the host"
			out.Fix = "set driver.rdma.useHostMofed=true to use the drivers of the host; else " + out.Fix
		}
	case o.DriverReady != tristate.True:
		return nil
	case o.RDMA == tristate.False && v.DMABuf != tristate.True:
		out.Code = OperatorRDMAOff
		out.Detail = "the GPU Operator was not told to load nvidia-peermem"
		out.Fix = "set driver.rdma.enabled=true, with useHostMofed=true where MOFED is installed on the host"
		out.Evidence = append(out.Evidence, saw(driverCtr, "GPU_DIRECT_RDMA_ENABLED: false"))
	case o.RDMA == tristate.True && o.MOFEDReady == tristate.False:
		out.Code = OperatorsWait
		out.Detail = "the GPU Operator's container nvidia-peermem-ctr waits for the Network Operator's drivers, which are not ready; or, with useHostMofed, modprobe failed in it"
		out.Fix = "kubectl logs -c nvidia-peermem-ctr of this node's driver Pod; if it says waiting, set driver.rdma.useHostMofed=true for drivers of the host, or install MOFED by the Network Operator"
		out.Fix += orOff(v)
		out.Evidence = append(out.Evidence, saw(driverCtr, "GPU_DIRECT_RDMA_ENABLED: true"))
	case o.RDMA == tristate.True && o.MOFEDReady == tristate.True && host:
		out.Code = PeermemSidecar
		out.Detail = "both operators' drivers are ready, and nvidia-peermem is not loaded: its container failed, or the RDMA drivers were restarted since"
		out.Fix = "kubectl logs -c nvidia-peermem-ctr of this node's driver Pod; what it says of modprobe is explained under peermem; the kubelet restarts the container until the module is loaded, so a new Pod changes nothing"
		out.Fix += orOff(v)
		out.Evidence = append(out.Evidence, saw(driverCtr, "GPU_DIRECT_RDMA_ENABLED: true"))
	default:
		return nil
	}
	return []Finding{out}
}

func orOff(v verdict.Verdict) string {
	if v.DMABuf == tristate.True {
		return "; or driver.rdma.enabled=false, as DMA-BUF serves"
	}
	return ""
}

// held finds RDMA drivers that were unloaded half-way: a restart takes the
// adapters' drivers out and then cannot unload the core, which peermem holds.
func (f *Facts) held() []Finding {
	a := f.advice()
	if f.NICDriven() != tristate.False && f.RDMADevice() != tristate.False || f.nicPassed() {
		return nil
	}
	for _, core := range [...]string{"ib_uverbs", "ib_core"} {
		for _, client := range [...]string{"nvidia_peermem", "nv_peer_mem"} {
			if !slices.Contains(a.Holders[core], client) {
				continue
			}
			out := Finding{
				Check: "modules", Status: Warn, Code: OFEDReloadBlocked,
				Detail:   client + " holds " + core + " while adapters are without driver or RDMA device: a restart of the RDMA drivers (openibd, or the Network Operator's Pod) cannot finish",
				Fix:      "modprobe -r " + client + ", then /etc/init.d/openibd restart (or leave that to the Network Operator's Pod), then modprobe it again",
				Sources:  []string{"/sys/module/" + core + "/holders", "/sys/module/" + client + "/refcnt"},
				Evidence: []string{saw("/sys/module/"+core+"/holders", client)},
			}
			if client == "nvidia_peermem" && a.Peermem.Users >= 0 {
				out.Evidence = append(out.Evidence, saw(peermemDir+"/refcnt", strconv.Itoa(a.Peermem.Users)))
			}
			if a.Peermem.Users > 0 {
				out.Fix = "end the jobs that use GPU memory over RDMA (refcnt counts their regions), then " + out.Fix
			}
			return []Finding{out}
		}
	}
	return nil
}
