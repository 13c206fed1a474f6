// Package pod judges a container from inside, or its image: which devices it lets a process
// use, how much memory it may lock, its network, its variables and its libraries.
package pod

import (
	"slices"

	"gdr-features/internal/fleet/image"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/source/container"
	"gdr-features/topology"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// Container is what a container lets this process do, and what its variables tell frameworks.
type Container struct {
	container.State
	// Visible are the device nodes.
	Visible *container.Devices
	// Map has the GPUs in question with the NICs that this process can use, and Namespace with all
	// of its network namespace, whether their nodes are here or not.
	Map, Namespace *assign.Assignment
	// NoGPU: none of the machine's GPUs has its node here. Those in question are then all.
	NoGPU bool
	// Selected are those of the container's GPUs that its variables leave to a process: the ones in
	// question. GPUs is how many the container has.
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

// newContainer finds the GPUs in question and their NICs.
func newContainer(here assign.Here, q Question, seen container.State) *Container {
	c := &Container{State: seen, Visible: here.Visible, Elsewhere: q.Elsewhere, For: q.For}
	// The GPUs are those of the container. Without any, all count for its other devices.
	ineligible := func(gpu int) bool { return !here.Node.Matrix.GPUs[gpu].Counts() }
	gpus := slices.DeleteFunc(here.GPUs(), ineligible)
	c.NoGPU, c.GPUs = len(gpus) == 0, len(gpus)
	chosen := q.GPUs
	if chosen == nil {
		c.Selected = frameworks.SelectHere(here, q.Variables)
		chosen = c.Selected.GPUs
	}
	if chosen = slices.DeleteFunc(slices.Clone(chosen), ineligible); len(chosen) > 0 {
		gpus = chosen
	}
	if c.NoGPU {
		gpus = slices.DeleteFunc((&assign.Machine{Matrix: &here.Node.Matrix}).EveryGPU(), ineligible)
	}
	c.Namespace = here.AssignTo(gpus, here.Visible.InNamespace)
	c.Map = here.AssignTo(gpus, c.UsableNIC)
	c.Environment = frameworks.Environment{Variables: q.Variables, Networks: here.Visible.Networks, UnknownGPUs: c.Selected.Unknown}
	return c
}

// UsableNIC reports whether this process can use an RDMA device: it is in its network namespace, and
// its node may be read and written.
func (c *Container) UsableNIC(rdma string) tristate.State {
	here := c.Visible.RDMA(rdma)
	if c.Visible.NodeVisible(rdma) == tristate.True {
		return tristate.And(here, c.Usable[c.Visible.RDMANode(rdma)])
	}
	return here
}

// usable reports whether this process may read and write a device node that is here or not.
func (c *Container) usable(node string, here tristate.State) tristate.State {
	if here == tristate.True {
		return c.Usable[node]
	}
	return here
}

// Within reports whether each of the container's GPUs has a NIC that it can use at this level
// (topology.Unknown: any) or a nearer one.
func (c *Container) Within(node *verdict.Node, limit topology.Level) tristate.State {
	if limit == topology.Unknown {
		return tristate.True
	}
	state := c.Map.Within(limit)
	if state == tristate.False && node.Verdict.Capable == tristate.Unknown {
		return tristate.Unknown
	}
	return state
}

// TooFar are the GPUs of the container without a usable NIC at this level or a nearer one.
func (c *Container) TooFar(limit topology.Level) []assign.Choice {
	return slices.DeleteFunc(slices.Clone(c.Map.Choices), func(choice assign.Choice) bool {
		return limit == topology.Unknown || choice.NIC != nil && choice.Level <= limit
	})
}
