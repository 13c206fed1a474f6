package pod

import (
	"fmt"

	"gdr-features/internal/finding"
	"gdr-features/source/container"
	"gdr-features/tristate"
)

const (
	enomem     = "programs cannot register more memory with NICs (ENOMEM)"
	addIPCLock = "add IPC_LOCK to securityContext.capabilities.add of a container that runs as root"
	raiseLimit = "raise the limit of the container runtime on the node (LimitMEMLOCK=infinity in a drop-in " +
		"of its systemd unit, then restart it)"
)

// lowLimit is the limit that the kernel and systemd give where nobody has set one, in bytes
// (include/uapi/linux/resource.h, MLOCK_LIMIT; systemd src/basic/rlimit-util.c). NCCL's
// buffers in host memory and UCX's are larger.
const lowLimit = 8 << 20

// lockedMemory: RDMA programs lock the host memory that they register, their queues
// included. The kernel allows it up to a limit, without one for who has CAP_IPC_LOCK in the
// machine's own user namespace (drivers/infiniband/core/umem.c, ib_umem_get; mm/mlock.c,
// can_do_mlock). GPU memory does not count.
//
// Kubernetes has no field for the limit: a container has that of the container runtime. Capabilities
// that are added reach the effective set of root alone; those of other users are in the bounding
// set, from which execve takes none.
var lockedMemory = check{
	Name: "locked-memory", Sources: []string{container.LimitsFile, container.StatusFile},
	Codes: []finding.Code{"IPCLockIneffective", "LockedMemoryLow", finding.Unreadable},
	Judge: func(f *judged) finding.Said {
		lifted, p := f.capable(container.CapIPCLock), &f.Pod.Process
		switch {
		case p.Locked != nil && p.Locked.Unlimited:
			return finding.OK("no limit").Saw(finding.Saw(container.LimitsFile, "Max locked memory unlimited"))
		case lifted == tristate.True:
			return finding.OK("CAP_IPC_LOCK lifts the limit").Saw(sawCapabilities(p))
		case p.Locked == nil || lifted == tristate.Unknown:
			return finding.Unknown("how much memory this process may lock cannot be determined: it is known " +
				"only in the container itself")
		}
		return limited(p)
	},
}

// limited says what a process cannot do that has a limit.
func limited(p *container.Process) finding.Said {
	limit := limitText(p.Locked.Bytes)
	effective := container.HasCapability(p.Capabilities.Effective, container.CapIPCLock)
	bounding := container.HasCapability(p.Capabilities.Bounding, container.CapIPCLock)
	seen := []string{
		finding.Saw(container.LimitsFile, fmt.Sprintf("Max locked memory %d bytes", p.Locked.Bytes)), sawCapabilities(p),
	}
	switch {
	case p.Locked.Bytes > lowLimit:
		return finding.Warn("LockedMemoryLow", "at most %s, beyond which registering memory fails", limit).
			Do(addIPCLock, "for any user "+raiseLimit).Saw(seen...)
	case effective && p.OwnUsers == tristate.True:
		return finding.Fail("IPCLockIneffective", "at most %s; IPC_LOCK was added, but has no effect in a "+
			"user namespace: "+enomem, limit).
			Do("spec.hostUsers: true with IPC_LOCK in securityContext.capabilities.add", "or "+raiseLimit).
			Saw(seen...).Saw(finding.Saw(container.UIDMapFile, "not the machine's own"))
	case bounding && !effective && p.User != 0:
		return finding.Fail("IPCLockIneffective", "at most %s; IPC_LOCK was added, but has no effect for a "+
			"user other than root (it is in the bounding set alone): "+enomem, limit).
			Do("securityContext.runAsUser: 0 with IPC_LOCK in securityContext.capabilities.add", "or "+raiseLimit).
			Saw(seen...)
	}
	return finding.Fail("LockedMemoryLow", "at most %s: "+enomem, limit).
		Do(addIPCLock, "for any user "+raiseLimit).
		Saw(seen...)
}

// capable reports whether the process has a capability in the machine's own user namespace.
func (f *judged) capable(capability int) tristate.State {
	p := &f.Pod.Process
	if p.Capabilities == nil {
		return tristate.Unknown
	}
	return tristate.And(tristate.Of(container.HasCapability(p.Capabilities.Effective, capability)), tristate.Not(p.OwnUsers))
}

// limitText is a limit in a unit of which it has a whole number.
func limitText(n uint64) string {
	for i, unit := range [...]string{"GiB", "MiB", "KiB"} {
		if size := uint64(1) << (30 - 10*i); n >= size && n%size == 0 {
			return fmt.Sprintf("%d %s", n/size, unit)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

func sawCapabilities(p *container.Process) string {
	return finding.Saw(container.StatusFile, fmt.Sprintf("Uid %d, CapEff %016x, CapBnd "+
		"%016x", p.User, p.Capabilities.Effective, p.Capabilities.Bounding))
}
