package findings

import (
	"fmt"

	"gdr-features/source/platform"
	"gdr-features/tristate"
)

// lockedMemory: RDMA programs lock the host memory that they register, their queues
// included. The kernel allows it up to a limit, without one for who has CAP_IPC_LOCK in the
// machine's own user namespace (drivers/infiniband/core/umem.c, ib_umem_get; mm/mlock.c,
// can_do_mlock). GPU memory does not count.
//
// Kubernetes has no field for the limit: a container has that of the container runtime. And
// capabilities that are added reach the effective set of root alone: for another user they
// are in the bounding set, from which execve takes none.
var lockedMemory = check{name: "locked-memory", sources: []string{platform.LimitsFile, platform.StatusFile}, rows: []row{
	{status: OK, when: func(f *judged) bool { return f.Pod.Process.Locked != nil && f.Pod.Process.Locked.Unlimited }, text: "no limit", evidence: sawLimit},
	{status: OK, when: func(f *judged) bool { return ipcLock(f) == tristate.True }, text: "CAP_IPC_LOCK lifts the limit", evidence: sawCapabilities},
	{
		status: Undecidable, when: func(f *judged) bool { return f.Pod.Process.Locked == nil || ipcLock(f) == tristate.Unknown },
		text: "how much memory this process may lock cannot be determined: it is known only in the container itself",
	},
	{
		status: Fail, code: "IPCLockIneffective", when: func(f *judged) bool { return f.Pod.Process.Locked.Bytes <= lowLimit && ownUsers(f) },
		text: "at most {limit}; IPC_LOCK was added, but has no effect in a user namespace: " + enomem,
		fix:  do("spec.hostUsers: true with IPC_LOCK in securityContext.capabilities.add", "or "+raiseLimit), evidence: func(f *judged) []string {
			return append(sawMemory(f), saw(platform.UIDMapFile, "not the machine's own"))
		},
	},
	{
		status: Fail, code: "IPCLockIneffective", when: func(f *judged) bool { return f.Pod.Process.Locked.Bytes <= lowLimit && onlyBounding(f) },
		text: "at most {limit}; IPC_LOCK was added, but has no effect for a user other than root (it is in the bounding set alone): " + enomem,
		fix:  do("securityContext.runAsUser: 0 with IPC_LOCK in securityContext.capabilities.add", "or "+raiseLimit), evidence: sawMemory,
	},
	{
		status: Fail, code: "LockedMemoryLow", when: func(f *judged) bool { return f.Pod.Process.Locked.Bytes <= lowLimit }, text: "at most {limit}: " + enomem,
		fix: addIPCLock, evidence: sawMemory,
	},
	{
		status: Warn, code: "LockedMemoryLow", text: "at most {limit}, beyond which registering memory fails",
		fix: addIPCLock, evidence: sawMemory,
	},
}}

const enomem = "programs cannot register more memory with NICs (ENOMEM)"

var addIPCLock = do("add IPC_LOCK to securityContext.capabilities.add of a container that runs as root", "for any user "+raiseLimit)

const raiseLimit = "raise the limit of the container runtime on the node (LimitMEMLOCK=infinity in a drop-in of its systemd unit, then restart it)"

// lowLimit is the limit that the kernel and systemd give where nobody has set one, in bytes
// (include/uapi/linux/resource.h, MLOCK_LIMIT; systemd src/basic/rlimit-util.c). NCCL's
// buffers in host memory and UCX's are larger.
const lowLimit = 8 << 20

// ipcLock reports whether CAP_IPC_LOCK lifts the limit.
func ipcLock(f *judged) tristate.State { return f.capable(platform.CapIPCLock) }

// capable reports whether the process has a capability in the machine's own user namespace.
func (f *judged) capable(capability int) tristate.State {
	p := &f.Pod.Process
	if p.Capabilities == nil {
		return tristate.Unknown
	}
	return tristate.And(tristate.Of(platform.HasCapability(p.Capabilities.Effective, capability)), tristate.Not(p.OwnUsers))
}

// ownUsers: the process has the capability, in a user namespace of its own.
func ownUsers(f *judged) bool {
	return platform.HasCapability(f.Pod.Process.Capabilities.Effective, platform.CapIPCLock) && f.Pod.Process.OwnUsers == tristate.True
}

// onlyBounding: the capability was added, and the process is not root.
func onlyBounding(f *judged) bool {
	p := &f.Pod.Process
	return p.User != 0 && platform.HasCapability(p.Capabilities.Bounding, platform.CapIPCLock) && !platform.HasCapability(p.Capabilities.Effective, platform.CapIPCLock)
}

// limitText is the limit in a unit of which it has a whole number.
func limitText(f *judged) string {
	n := f.Pod.Process.Locked.Bytes
	for i, unit := range [...]string{"GiB", "MiB", "KiB"} {
		if size := uint64(1) << (30 - 10*i); n >= size && n%size == 0 {
			return fmt.Sprintf("%d %s", n/size, unit)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

func sawLimit(f *judged) []string {
	if f.Pod.Process.Locked != nil && f.Pod.Process.Locked.Unlimited {
		return []string{saw(platform.LimitsFile, "Max locked memory unlimited")}
	}
	return []string{saw(platform.LimitsFile, fmt.Sprintf("Max locked memory %d bytes", f.Pod.Process.Locked.Bytes))}
}

func sawMemory(f *judged) []string { return append(sawLimit(f), sawCapabilities(f)...) }

func sawCapabilities(f *judged) []string {
	p := &f.Pod.Process
	return []string{saw(platform.StatusFile, fmt.Sprintf("Uid %d, CapEff %016x, CapBnd %016x", p.User, p.Capabilities.Effective, p.Capabilities.Bounding))}
}
