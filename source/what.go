// Package source has what the readers below it share.
package source

// Fact names what some files are read for. Each is named beside its reader.
type Fact string

// What is what a command needs of a machine beyond what labels and the verdict rest on. The
// zero value is for labels: no more is read.
type What struct {
	// Publish: what is published beside the labels: ports of software RDMA devices too, what RoCE
	// ports use, the firmware of NICs, and the release of the kernel.
	Publish bool
	// Advice: what says why something is missing and what to do about it, for check.
	Advice bool
	// Details: what people want to see of every function and device, for topo.
	Details bool
	// Routes: the default routes, for env. Advice has them too.
	Routes bool
	// Expect: what only a machine's type says: the firmware of NICs, for --expect.
	Expect bool
	// Everything: also what another command would read, or this one if the machine had other
	// devices, for a snapshot.
	Everything bool
}
