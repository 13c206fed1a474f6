package pod

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/findings"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/show"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
)

const (
	noDev = "there is no /dev here: only a container itself shows which of its device nodes it may use"

	resourceGPU = "request GPUs in the container's resources.limits (nvidia.com/gpu: 1, amd.com/gpu: 1), " +
		"or by a claim (resources.claims)"
	resourceNIC = "request the NIC in the container's resources.limits, by the name that your device " +
		"plugin gives it (rdma/hca: 1, nvidia.com/mlnxnics: 1), or by a claim (resources.claims)"
	anotherOwner = "run as a user or group that the nodes belong to (securityContext.runAsUser, runAsGroup, " +
		"supplementalGroups)"
	notMounted = "if the mode allows this user, the container was not given the device: request it in " +
		"resources.limits rather than mounting /dev"
	network = "give the Pod a network with an RDMA device (annotation k8s.v1.cni.cncf.io/networks, " +
		"with the CNI plugins sriov or host-device and rdma), or spec.hostNetwork: true"
	repairLink = "repair the link of these NICs (of a virtual function see also its link state: ip link " +
		"set PF vf N state auto), or request others in the container's resources.limits"
	together = "request the NICs together with the GPUs, so that they are near (a claim with " +
		"resource.kubernetes.io/pcieRoot, the kubelet's topologyManagerPolicy), or all of the node's in " +
		"resources.limits"
)

// gpuNodes: the GPUs that the container was given.
var gpuNodes = check{
	Name: "gpu-nodes", Sources: []string{"/dev"},
	Codes: []finding.Code{"GPUNodeMissing", "DeviceNodeDenied", finding.Unreadable},
	Judge: func(f *judged) finding.Said {
		all := show.Count(f.Matrix.EligibleGPUs, "GPU")
		denied, open := f.gpuNodesThat(tristate.False), f.gpuNodesThat(tristate.Unknown)
		switch {
		case f.Pod.Visible.NoDev:
			return finding.Unknown(noDev)
		case f.Pod.NoGPU:
			return finding.Fail("GPUNodeMissing", "none of the %s of this machine has its device node in "+
				"/dev here", all).
				Do(resourceGPU).Saw(f.sawGPUNodes()...)
		case denied.Any():
			return finding.Fail("DeviceNodeDenied", "this process may not read and write %s", denied).
				Of(denied).
				Do(anotherOwner, notMounted)
		case open.Any():
			return finding.Unknown("whether this process may read and write %s cannot be determined", open).
				Of(open)
		}
		return finding.OK("this container has %d of %s%s", f.Pod.GPUs, all, f.selectedGPUs())
	},
}

func (f *judged) selectedGPUs() string {
	s := &f.Pod.Selected
	names := finding.FirstFew(finding.Map(f.Pod.Map.Choices, func(c assign.Choice) string { return c.GPU.Address.String() }))
	by := strings.Join(s.By, " ")
	switch {
	case s.Unknown != "":
		return fmt.Sprintf("; which of them %s leaves is not known: %s", by, s.Unknown)
	case len(s.By) > 0 && len(s.GPUs) > 0:
		return fmt.Sprintf(", of which %s leaves %s", by, names)
	}
	return ": " + names
}

// sawGPUNodes is evidence of the nodes that are missing. Which node it would be is not known
// of a GPU that the driver does not show here.
func (f *judged) sawGPUNodes() []string {
	return finding.Map(f.Pod.Map.Choices, func(c assign.Choice) string {
		gpu := f.Pod.Visible.GPUs[c.GPU.Address]
		switch {
		case gpu.Node != "":
			return finding.SawFile(gpu.Node, gpu.Visible)
		case c.GPU.GPU.Information != "":
			return finding.SawMissing("/" + c.GPU.GPU.Information + "/" + c.GPU.Address.String() + "/information")
		}
		return finding.Saw(c.GPU.Address.File("drm"), "no render node")
	})
}

// gpuNodesThat names the nodes of the container's GPUs by whether this process may use them.
func (f *judged) gpuNodesThat(state tristate.State) (nodes finding.Subjects) {
	for _, c := range f.Pod.Map.Choices {
		gpu := f.Pod.Visible.GPUs[c.GPU.Address]
		switch {
		case gpu.Visible == tristate.False, f.Pod.usable(gpu.Node, gpu.Visible) != state:
		case gpu.Node == "":
			nodes.Add("the node of " + c.GPU.Address.String())
		default:
			nodes.Add(gpu.Node, f.sawNode(gpu.Node, gpu.Visible))
		}
	}
	return nodes
}

// verbsNodes: the NICs nearest to these GPUs. Where no port is active, the check of ports says so.
var verbsNodes = check{
	Name: "verbs-nodes", Sources: []string{"/dev/infiniband", rdma.Class},
	Codes: []finding.Code{"RDMADeviceElsewhere", "PortDown", "DeviceNodeDenied", "VerbsNodeMissing", "NearNICNotHere", finding.Unreadable},
	Judge: func(f *judged) finding.Said {
		if f.Pod.Visible.NoDev {
			return finding.Unknown(noDev)
		}
		if devices := f.elsewhere(); devices.Any() {
			return finding.Fail("RDMADeviceElsewhere", "no RDMA device is in this container's network "+
				"namespace, in which the node has %s", devices).Of(devices).Do(network)
		}
		if len(f.Pod.Map.NICs) == 0 {
			if said := f.whyNoNIC(); said.Found() {
				return said
			}
		}
		if gpus := f.nearNotHere(); gpus.Any() && !f.Pod.NoGPU {
			return finding.Warn("NearNICNotHere", "this container cannot use the nearest NICs of its GPUs: "+
				"%s", gpus).
				Of(gpus).Do(together)
		}
		if open := f.verbsNodesThat(tristate.Unknown, true); open.Any() {
			return finding.Unknown("whether this process may use %s cannot be determined", open).Of(open)
		}
		if len(f.Pod.Map.Used()) == 0 {
			return finding.Said{}
		}
		near := finding.Map(f.Pod.Map.Near(), func(nic *assign.NIC) string { return nic.RDMA })
		return finding.OK("the NICs nearest to these GPUs may be used: %s", strings.Join(near, " "))
	},
}

func (f *judged) whyNoNIC() finding.Said {
	unread, idle := f.idleHere(true), f.idleHere(false)
	denied, missing := f.verbsNodesThat(tristate.False, true), f.verbsNodesThat(tristate.False, false)
	switch {
	case unread.Any():
		return finding.Unknown("the ports of the only NICs for this container cannot be read: %s", unread).
			Of(unread)
	case idle.Any() && f.Verdict.ActivePort != tristate.False:
		return finding.Fail("PortDown", "the NICs for this container have no ACTIVE port: %s", idle).Of(idle).
			Do(repairLink)
	case denied.Any():
		return finding.Fail("DeviceNodeDenied", "this process may not read and write %s", denied).Of(denied).
			Do(anotherOwner, notMounted)
	case missing.Any():
		return finding.Fail("VerbsNodeMissing", "no usable NIC has its device node here; missing are "+
			"%s", missing).
			Of(missing).Do(resourceNIC)
	}
	return finding.Said{}
}

// devicesThat are the RDMA devices of eligible NICs that are usable in some way, or may be.
func (f *judged) devicesThat(usable func(rdma string) tristate.State) []*rdma.Device {
	return slices.DeleteFunc(eligible(f.Node), func(d *rdma.Device) bool { return usable(d.Name) == tristate.False })
}

// elsewhere names the RDMA devices of eligible NICs where all are in other network namespaces.
func (f *judged) elsewhere() (devices finding.Subjects) {
	if len(f.devicesThat(f.Pod.Visible.InNamespace)) > 0 {
		return devices
	}
	for _, n := range f.Matrix.NICs {
		if !n.Counts() || n.RDMA != nil {
			continue
		}
		for _, name := range f.Pod.Visible.Foreign(n.Function.Address) {
			devices.Add(name, finding.SawMissing(rdma.Class+"/"+name), finding.Saw(f.Pod.Visible.VerbsFile(name), name))
		}
	}
	return devices
}

// idleHere names the NICs whose nodes this process may use, or without one those of its
// network namespace, where none has an active port: with unread those whose ports could not be
// read, otherwise the others.
func (f *judged) idleHere(unread bool) (idle finding.Subjects) {
	of, unknown := f.devicesThat(f.Pod.UsableNIC), f.Pod.Map.Unknown
	if len(of) == 0 && len(f.Pod.Namespace.NICs) == 0 {
		of, unknown = f.devicesThat(f.Pod.Visible.InNamespace), f.Pod.Namespace.Unknown
	}
	for _, d := range of {
		if slices.Contains(unknown, d.Name) != unread {
			continue
		}
		if len(d.Ports) == 0 {
			idle.Add(d.Name)
		}
		for _, p := range d.Ports {
			idle.Add(fmt.Sprintf("%s/%d %s", d.Name, p.Number, findings.PortState(p)), findings.SawPort(d, p))
		}
	}
	return idle
}

// verbsNodesThat names the nodes of the nearest NICs by whether they are here, and whether this
// process may use them.
func (f *judged) verbsNodesThat(state tristate.State, here bool) (nodes finding.Subjects) {
	for _, nic := range f.nearest() {
		path, there := f.Pod.Visible.RDMANode(nic.RDMA), f.Pod.Visible.NodeVisible(nic.RDMA)
		switch {
		case (there != tristate.False) != here || f.Pod.UsableNIC(nic.RDMA) != state:
		case path == "":
			nodes.Add("the node of " + nic.RDMA)
		default:
			nodes.Add(path+" ("+nic.RDMA+")", f.sawNode(path, there))
		}
	}
	return nodes
}

func (f *judged) sawNode(path string, there tristate.State) string {
	if there != tristate.True {
		return finding.SawFile(path, there)
	}
	return finding.Saw(path, finding.Choose(f.Pod.Usable[path], "readable and writable", "not readable and "+
		"writable", ""))
}

// nearest are the NICs of this network namespace that are near some GPU in question, and their
// virtual functions.
func (f *judged) nearest() []*assign.NIC {
	m := f.Pod.Namespace
	near := m.Near()
	return slices.DeleteFunc(slices.Clone(m.NICs), func(nic *assign.NIC) bool {
		return !slices.Contains(near, nic) && !slices.Contains(near, m.Physical(nic))
	})
}

// nearNotHere names the GPUs that have a nearer NIC than those whose node may be used.
func (f *judged) nearNotHere() (gpus finding.Subjects) {
	for i, c := range f.Pod.Map.Choices {
		near := f.Pod.Namespace.Choices[i]
		if c.NIC == nil || near.NIC == nil || c.Level == topology.Unknown || near.Level == topology.Unknown || near.Level >= c.Level {
			continue
		}
		gpus.Add(fmt.Sprintf("%v has %s at %v, and of those here %s at "+
			"%v", c.GPU.Address, near.NIC.RDMA, near.Level, c.NIC.RDMA, c.Level))
		if node := f.Pod.Visible.RDMANode(near.NIC.RDMA); node != "" {
			gpus.Evidence = append(gpus.Evidence, f.sawNode(node, f.Pod.Visible.NodeVisible(near.NIC.RDMA)))
		}
	}
	return gpus
}
