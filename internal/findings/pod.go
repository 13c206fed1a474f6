package findings

import (
	"fmt"
	"slices"

	"gdr-features/internal/assign"
	"gdr-features/internal/frameworks"
	"gdr-features/internal/image"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/tristate"
)

// Pod is what a container lets this process do, and what its variables tell frameworks.
type Pod struct {
	platform.Container
	// Visible are the device nodes.
	Visible *platform.Devices
	// Map has the GPUs in question with the NICs that this process can use, and Namespace
	// with all NICs of its network namespace, whether their nodes are here or not.
	Map, Namespace *assign.Assignment
	// NoGPU: none of the machine's GPUs has its node here. Those in question are then all.
	NoGPU bool
	// Selected are those of the container's GPUs that its variables leave to a process, by which
	// the GPUs in question were chosen, and GPUs is how many GPUs the container has.
	Selected frameworks.Selection
	GPUs     int
	// Image is what the container's image has; nil where it is not judged, and where it could
	// not be read (ImageUnread). Elsewhere: it is the image of another container than this one.
	Image                  *image.Image
	ImageUnread, Elsewhere bool
	// For names the framework in question; "" for all that the image has.
	For string
	// Environment are the variables of the environment and the files that they name.
	Environment frameworks.Environment
}

// UsableNIC reports whether this process can use an RDMA device: it is in its network
// namespace, and its node is here and may be read and written.
func (p *Pod) UsableNIC(rdma string) tristate.State {
	here := p.Visible.RDMA(rdma)
	if p.Visible.NodeVisible(rdma) == tristate.True {
		return tristate.And(here, p.Usable[p.Visible.RDMANode(rdma)])
	}
	return here
}

// usable reports whether this process may read and write a device node that is here or not.
func (p *Pod) usable(node string, here tristate.State) tristate.State {
	if here == tristate.True {
		return p.Usable[node]
	}
	return here
}

// inPod are the checks of a container: what it lets its processes do, what variables and its
// libraries do.
var (
	inContainer = []check{gpuNodes, verbsNodes, lockedMemory, roceGIDs, gidIndex}
	inPod       = slices.Concat(inContainer, []check{switchedOff, nicVariables, podIBGDA}, inImage)
)

// checks are those of a container. Of one that is elsewhere nothing is known but its image and
// its variables.
func (p *Pod) checks() []check {
	if p.Elsewhere {
		return inPod[len(inContainer):]
	}
	return inPod
}

// AboutPod reports whether a finding is about the container.
func AboutPod(found *Finding) bool {
	return slices.ContainsFunc(inPod, func(c check) bool { return c.name == found.Check })
}

// InPod reports whether a container is ready, by the findings about it alone: False where
// one failed, Unknown where one is not known.
func InPod(all []Finding) tristate.State {
	state := tristate.True
	for i := range all {
		switch f := &all[i]; {
		case !AboutPod(f):
		case f.Status == Fail:
			state = tristate.False
		case f.Status == Undecidable:
			state = tristate.And(state, tristate.Unknown)
		}
	}
	return state
}

const (
	noDev = "there is no /dev here: only a container itself shows which of its device nodes it may use"

	resourceGPU  = "request GPUs in the container's resources.limits (nvidia.com/gpu: 1, amd.com/gpu: 1), or by a claim (resources.claims)"
	resourceNIC  = "request the NIC in the container's resources.limits, by the name that your device plugin gives it (rdma/hca: 1, nvidia.com/mlnxnics: 1), or by a claim (resources.claims)"
	anotherOwner = "run as a user or group that the nodes belong to (securityContext.runAsUser, runAsGroup, supplementalGroups)"
	notMounted   = "if the mode allows this user, the container was not given the device: request it in resources.limits rather than mounting /dev"
)

// gpuNodes: the GPUs that the container was given.
var gpuNodes = check{name: "gpu-nodes", sources: []string{"/dev"}, rows: []row{
	{status: Undecidable, when: func(f *judged) bool { return f.Pod.Visible.NoDev }, text: noDev},
	{
		status: Fail, code: "GPUNodeMissing", when: func(f *judged) bool { return f.Pod.NoGPU },
		text: "none of the {gpus} of this machine has its device node in /dev here",
		fix:  do(resourceGPU), evidence: sawGPUNodes,
	},
	{
		status: Fail, code: "DeviceNodeDenied", which: gpuNodesThat(tristate.False),
		text: "this process may not read and write {about}", fix: do(anotherOwner, notMounted),
	},
	{status: Undecidable, which: gpuNodesThat(tristate.Unknown), text: "whether this process may read and write {about} cannot be determined"},
	{
		status: OK, when: func(f *judged) bool { return f.Pod.Selected.Unknown != "" },
		text: "this container has {gpusHere} of {gpus}; which of them {selectedBy} leaves is not known: {selectionUnknown}",
	},
	{
		status: OK, when: func(f *judged) bool { return len(f.Pod.Selected.By) > 0 && len(f.Pod.Selected.GPUs) > 0 },
		text: "this container has {gpusHere} of {gpus}, of which {selectedBy} leaves {gpuNames}",
	},
	{status: OK, text: "this container has {gpusHere} of {gpus}: {gpuNames}"},
}}

func gpuNames(f *judged) string {
	return firstFew(texts(f.Pod.Map.Choices, func(c assign.Choice) string { return c.GPU.Address.String() }))
}

// sawGPUNodes is evidence of the nodes that are missing. Which node it would be is not known
// of a GPU that the driver does not show here.
func sawGPUNodes(f *judged) []string {
	return texts(f.Pod.Map.Choices, func(c assign.Choice) string {
		gpu := f.Pod.Visible.GPUs[c.GPU.Address]
		switch {
		case gpu.Node != "":
			return sawFile(gpu.Node, gpu.Visible)
		case c.GPU.GPU.Information != "":
			return sawMissing("/" + c.GPU.GPU.Information + "/" + c.GPU.Address.String() + "/information")
		}
		return saw(c.GPU.Address.File("drm"), "no render node")
	})
}

// gpuNodesThat names the nodes of the container's GPUs that this process may use, may not
// use, or may use as far as is known.
func gpuNodesThat(state tristate.State) func(*judged) subjects {
	return func(f *judged) (nodes subjects) {
		for _, c := range f.Pod.Map.Choices {
			gpu := f.Pod.Visible.GPUs[c.GPU.Address]
			switch {
			case gpu.Visible == tristate.False, f.Pod.usable(gpu.Node, gpu.Visible) != state:
			case gpu.Node == "":
				nodes.add("the node of " + c.GPU.Address.String())
			default:
				nodes.add(gpu.Node, f.sawNode(gpu.Node, gpu.Visible))
			}
		}
		return nodes
	}
}

// verbsNodes: the NICs nearest to these GPUs. Where no port of the machine is active, the
// check of ports says so.
var verbsNodes = check{name: "verbs-nodes", sources: []string{"/dev/infiniband", rdma.Class}, rows: []row{
	{status: Undecidable, when: func(f *judged) bool { return f.Pod.Visible.NoDev }, text: noDev},
	{
		status: Fail, code: "RDMADeviceElsewhere", which: elsewhere,
		text: "no RDMA device is in this container's network namespace, in which the node has {about}",
		fix:  do("give the Pod a network with an RDMA device (annotation k8s.v1.cni.cncf.io/networks, with the CNI plugins sriov or host-device and rdma), or spec.hostNetwork: true"),
	},
	{
		status: Undecidable, when: noUsableNIC, which: idleHere(true),
		text: "the ports of the only NICs for this container cannot be read: {about}",
	},
	{
		status: Fail, code: "PortDown", when: func(f *judged) bool { return noUsableNIC(f) && f.ActivePort() != tristate.False }, which: idleHere(false),
		text: "the NICs for this container have no ACTIVE port: {about}",
		fix:  do("repair the link of these NICs (of a virtual function see also its link state: ip link set PF vf N state auto), or request others in the container's resources.limits"),
	},
	{
		status: Fail, code: "DeviceNodeDenied", when: noUsableNIC, which: verbsNodesThat(tristate.False, true),
		text: "this process may not read and write {about}", fix: do(anotherOwner, notMounted),
	},
	{
		status: Fail, code: "VerbsNodeMissing", when: noUsableNIC, which: verbsNodesThat(tristate.False, false),
		text: "no usable NIC has its device node here; missing are {about}", fix: do(resourceNIC),
	},
	{
		status: Warn, code: "NearNICNotHere", when: func(f *judged) bool { return !f.Pod.NoGPU }, which: nearNotHere,
		text: "this container cannot use the nearest NICs of its GPUs: {about}",
		fix:  do("request the NICs together with the GPUs, so that they are near (a claim with resource.kubernetes.io/pcieRoot, the kubelet's topologyManagerPolicy), or all of the node's in resources.limits"),
	},
	{status: Undecidable, which: verbsNodesThat(tristate.Unknown, true), text: "whether this process may use {about} cannot be determined"},
	{
		status: OK, when: func(f *judged) bool { return len(f.Pod.Map.Used()) > 0 },
		text: "the NICs nearest to these GPUs may be used: {nearNICs}",
	},
}}

func noUsableNIC(f *judged) bool { return len(f.Pod.Map.NICs) == 0 }

// devicesThat are the RDMA devices of eligible NICs that are usable in some way, as far as is
// known.
func (f *judged) devicesThat(usable func(rdma string) tristate.State) []*rdma.Device {
	return slices.DeleteFunc(f.devices(), func(d *rdma.Device) bool { return usable(d.Name) == tristate.False })
}

// elsewhere names the RDMA devices of eligible NICs where all are in other network
// namespaces.
func elsewhere(f *judged) (devices subjects) {
	if len(f.devicesThat(f.Pod.Visible.InNamespace)) > 0 {
		return devices
	}
	for _, n := range f.Matrix.NICs {
		if !n.Eligible || n.RDMA != nil {
			continue
		}
		for _, name := range f.Pod.Visible.Foreign(n.Function.Address) {
			devices.add(name, sawMissing(rdma.Class+"/"+name), saw(f.Pod.Visible.VerbsFile(name), name))
		}
	}
	return devices
}

// idleHere names the NICs whose nodes this process may use, or without one those of its
// network namespace, where none has an active port: with unread those whose ports could not be
// read, otherwise the others.
func idleHere(unread bool) func(*judged) subjects {
	return func(f *judged) (idle subjects) {
		of, unknown := f.devicesThat(f.Pod.UsableNIC), f.Pod.Map.Unknown
		if len(of) == 0 && len(f.Pod.Namespace.NICs) == 0 {
			of, unknown = f.devicesThat(f.Pod.Visible.InNamespace), f.Pod.Namespace.Unknown
		}
		for _, d := range of {
			if slices.Contains(unknown, d.Name) != unread {
				continue
			}
			if len(d.Ports) == 0 {
				idle.add(d.Name)
			}
			for _, p := range d.Ports {
				idle.add(fmt.Sprintf("%s/%d %s", d.Name, p.Number, portState(p)), sawPort(d, p))
			}
		}
		return idle
	}
}

// verbsNodesThat names the nodes of the nearest NICs that are here, or that are not, and that
// this process may use, may not use, or may use as far as is known.
func verbsNodesThat(state tristate.State, here bool) func(*judged) subjects {
	return func(f *judged) (nodes subjects) {
		for _, nic := range f.nearest() {
			path, there := f.Pod.Visible.RDMANode(nic.RDMA), f.Pod.Visible.NodeVisible(nic.RDMA)
			switch {
			case (there != tristate.False) != here || f.Pod.UsableNIC(nic.RDMA) != state:
			case path == "":
				nodes.add("the node of " + nic.RDMA)
			default:
				nodes.add(path+" ("+nic.RDMA+")", f.sawNode(path, there))
			}
		}
		return nodes
	}
}

// sawNode is evidence of a device node.
func (f *judged) sawNode(path string, there tristate.State) string {
	if there != tristate.True {
		return sawFile(path, there)
	}
	return saw(path, choose(f.Pod.Usable[path], "readable and writable", "not readable and writable", ""))
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
func nearNotHere(f *judged) (gpus subjects) {
	for i, c := range f.Pod.Map.Choices {
		near := f.Pod.Namespace.Choices[i]
		if c.NIC == nil || near.NIC == nil || c.Level == topology.Unknown || near.Level == topology.Unknown || near.Level >= c.Level {
			continue
		}
		gpus.add(fmt.Sprintf("%v has %s at %v, and of those here %s at %v", c.GPU.Address, near.NIC.RDMA, near.Level, c.NIC.RDMA, c.Level))
		if node := f.Pod.Visible.RDMANode(near.NIC.RDMA); node != "" {
			gpus.evidence = append(gpus.evidence, f.sawNode(node, f.Pod.Visible.NodeVisible(near.NIC.RDMA)))
		}
	}
	return gpus
}
