package pod_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gdr-features/docs/reasons"
	"gdr-features/host"
	"gdr-features/internal/finding"
	"gdr-features/internal/report"
	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/pod"
	containers "gdr-features/source/container"
	"gdr-features/test/machine"
	"gdr-features/tristate"
)

const machinesDir = "../../../testdata/machines"

// roce is a GPU with a near NIC of Ethernet on each of two sockets.
const roce = `nodes 2
pci0000:10 numa=0
  0000:10:01.0 port 8086:352a
    0000:11:00.0 switch 10b5:9797
      0000:12:00.0 port 10b5:9797 acs=0001
        0000:13:00.0 gpu 10de:2330
      0000:12:01.0 port 10b5:9797 acs=0001
        0000:14:00.0 eth 15b3:1021 rdma=mlx5_0
pci0000:80 numa=1
  0000:80:01.0 port 8086:352a
    0000:81:00.0 switch 10b5:9797
      0000:82:00.0 port 10b5:9797 acs=0001
        0000:83:00.0 gpu 10de:2330
      0000:82:01.0 port 10b5:9797 acs=0001
        0000:84:00.0 eth 15b3:1021 rdma=mlx5_1
`

// Capabilities of a process.
const (
	ipcLock  = 1 << 14
	sysAdmin = 1 << 21
)

// Entries of a GID table: those of a port with an address, and without.
var (
	withAddress = []string{"0 v1 fe80::1 eth0", "1 v2 fe80::1 eth0", "2 v1 ::ffff:10.0.0.1 eth0", "3 v2 ::ffff:10.0.0.1 eth0"}
	linkLocal   = withAddress[:2]
)

// container is one in which everything is right, laid out in dir.
type container struct {
	*machine.Machine
	t         *testing.T
	dir       string
	variables map[string]string
	image     fs.FS  // nil: not judged
	framework string // --for
}

func newContainer(t *testing.T, description string) *container {
	t.Helper()
	m, err := machine.Parse(description)
	if err != nil {
		t.Fatal(err)
	}
	c := &container{Machine: m, t: t, dir: m.Tree(t, m.Ready()), variables: map[string]string{}}
	m.Container(t, c.dir, []int{0, 1}, m.RDMADevices()...)
	c.locked("unlimited", 0, 0, 0)
	m.GIDs(t, c.dir, withAddress...)
	c.mkdir("sys/class/net/eth0")
	return c
}

func (c *container) locked(limit string, user int, effective, bounding uint64) {
	c.Process(c.t, c.dir, limit, user, effective, bounding)
}

func (c *container) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *container) mkdir(name string)  { c.check(os.MkdirAll(filepath.Join(c.dir, name), 0o755)) }
func (c *container) remove(name string) { c.check(os.RemoveAll(filepath.Join(c.dir, name))) }

func (c *container) write(name, text string) {
	c.mkdir(filepath.Dir(name))
	c.check(os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644))
}

// reading is a container that was read and judged.
type reading struct {
	report.Report
	container *pod.Container
	all       []finding.Finding // about the container
}

// read reads and judges the container.
func (c *container) read() *reading {
	c.t.Helper()
	machine, err := host.Open(host.Options{Root: c.dir})
	c.check(err)
	defer machine.Close()
	r := &reading{Report: report.Collect(c.t.Context(), machine, report.ForCheck)}
	visible := containers.ReadDevices(c.t.Context(), machine, &r.PCI, &r.RDMA)
	r.Problems = append(r.Problems, visible.Problems...)
	question := pod.Question{Variables: c.variables, ReadFile: os.ReadFile, Image: c.image, For: c.framework}
	var problems []error
	r.container, problems = pod.Read(c.t.Context(), machine, assign.Here{Node: &r.Node, Visible: &visible}, question)
	r.Problems = append(r.Problems, problems...)
	r.all = pod.Check(&r.Node, r.container)
	for i := range r.all {
		if f := &r.all[i]; !pod.Listed(f) {
			c.t.Errorf("the check %s does not list its code %q", f.Check, f.Code)
		}
	}
	return r
}

// notOK are the findings about the container that are not OK.
func (r *reading) notOK() (found []finding.Finding) {
	for _, f := range r.all {
		if f.Status != finding.StatusOK {
			found = append(found, f)
		}
	}
	return found
}

// podFailure is what may be wrong with a container: the change that makes it so, the finding
// that names it, with a part of its text, evidence and fix.
type podFailure struct {
	name   string
	on     string // a description; "" is roce
	broken func(c *container)
	status finding.Status
	code   finding.Code

	text, evidence, fix string
}

func podFailures() []podFailure {
	set := func(variables ...string) func(c *container) {
		return func(c *container) {
			for _, v := range variables {
				name, value, _ := strings.Cut(v, "=")
				c.variables[name] = value
			}
		}
	}
	gids := func(entries ...string) func(c *container) {
		return func(c *container) {
			c.remove("sys/class/infiniband/mlx5_0/ports/1/gid_attrs")
			c.remove("sys/class/infiniband/mlx5_1/ports/1/gid_attrs")
			c.GIDs(c.t, c.dir, entries...)
		}
	}
	const fail, warn = finding.StatusFail, finding.StatusWarn
	return slices.Concat(imageFailures(), []podFailure{
		{name: "no GPU", broken: func(c *container) { c.remove("dev/nvidia0"); c.remove("dev/nvidia1") }, status: fail, code: "GPUNodeMissing", text: "2 GPUs", evidence: "/dev/nvidia0=absent", fix: "resources.limits"},
		{name: "no GPU, of which the driver says nothing", broken: func(c *container) { c.remove("proc/driver/nvidia/gpus") }, status: fail, code: "GPUNodeMissing", evidence: "/proc/driver/nvidia/gpus/0000:13:00.0/information=absent", fix: "nvidia.com/gpu"},
		{name: "no render node", on: strings.ReplaceAll(roce, "gpu 10de:2330", "accel 1002:74a1"), broken: func(c *container) { c.remove("dev/dri") }, status: fail, code: "GPUNodeMissing", evidence: "/dev/dri/renderD128=absent", fix: "amd.com/gpu"},
		{name: "an AMD GPU without drm", on: strings.ReplaceAll(roce, "gpu 10de:2330", "accel 1002:74a1"), broken: func(c *container) {
			c.remove("sys/bus/pci/devices/0000:13:00.0/drm")
			c.remove("sys/bus/pci/devices/0000:83:00.0/drm")
		}, status: fail, code: "GPUNodeMissing", evidence: "/sys/bus/pci/devices/0000:13:00.0/drm=no render node", fix: "amd.com/gpu"},
		{name: "no verbs nodes", broken: func(c *container) { c.remove("dev/infiniband") }, status: fail, code: "VerbsNodeMissing", text: "/dev/infiniband/uverbs0 (mlx5_0)", evidence: "/dev/infiniband/uverbs1=absent", fix: "resources.limits"},
		{name: "a far NIC alone", broken: func(c *container) { c.remove("dev/infiniband/uverbs0") }, status: warn, code: "NearNICNotHere", text: "0000:13:00.0 has mlx5_0 at PIX, and of those here mlx5_1 at SYS", evidence: "/dev/infiniband/uverbs0=absent", fix: "pcieRoot"},
		{name: "a far NIC that is not for GPUs alone", on: strings.Replace(roce, "0000:84:00.0 eth 15b3:1021", "0000:84:00.0 eth 15b3:101f", 1), broken: func(c *container) { c.remove("dev/infiniband/uverbs0") }, status: warn, code: "NearNICNotHere", text: "0000:13:00.0 has mlx5_0 at PIX, and of those here mlx5_1 at SYS", evidence: "/dev/infiniband/uverbs0=absent", fix: "pcieRoot"},
		{name: "no GPU, and a NIC", broken: func(c *container) {
			c.remove("dev/nvidia0")
			c.remove("dev/nvidia1")
			c.remove("dev/infiniband/uverbs0")
		}, status: fail, code: "GPUNodeMissing", evidence: "/dev/nvidia0=absent", fix: "resources.limits"},
		{name: "a NIC whose port is down", broken: func(c *container) {
			c.remove("dev/infiniband/uverbs1")
			c.write("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n")
		}, status: fail, code: "PortDown", text: "mlx5_0/1 DOWN", evidence: "mlx5_0/ports/1/state=DOWN", fix: "resources.limits"},
		{name: "a NIC whose port is down in another network namespace than the others", broken: func(c *container) {
			c.remove("dev/infiniband")
			c.write("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n")
			c.Namespace(c.t, c.dir, "mlx5_0")
		}, status: fail, code: "PortDown", text: "mlx5_0/1 DOWN", evidence: "mlx5_0/ports/1/state=DOWN", fix: "resources.limits"},
		{name: "another network namespace", broken: func(c *container) { c.Namespace(c.t, c.dir) }, status: fail, code: "RDMADeviceElsewhere", text: "mlx5_0, mlx5_1", evidence: "/sys/class/infiniband_verbs/uverbs1/ibdev=mlx5_1", fix: "hostNetwork"},
		{name: "the default limit of locked memory", broken: func(c *container) { c.locked("8388608", 0, 0, 0) }, status: fail, code: "LockedMemoryLow", text: "at most 8 MiB", evidence: "Max locked memory 8388608 bytes", fix: "capabilities.add"},
		{name: "a limit of locked memory", broken: func(c *container) { c.locked("68719476736", 1000, 0, 0) }, status: warn, code: "LockedMemoryLow", text: "at most 64 GiB", evidence: "Uid 1000", fix: "LimitMEMLOCK"},
		{name: "IPC_LOCK for another user than root", broken: func(c *container) { c.locked("65536", 1000, 0, ipcLock) }, status: fail, code: "IPCLockIneffective", text: "64 KiB", evidence: "CapEff 0000000000000000, CapBnd 0000000000004000", fix: "runAsUser"},
		{name: "IPC_LOCK in a user namespace", broken: func(c *container) {
			c.locked("8388608", 0, ipcLock, ipcLock)
			c.write("proc/self/uid_map", "0 100000 65536\n")
		}, status: fail, code: "IPCLockIneffective", text: "user namespace", evidence: "/proc/self/uid_map", fix: "hostUsers"},
		{name: "no GID", broken: gids(), status: fail, code: "NoRoCEGID", text: "mlx5_0/1, mlx5_1/1", evidence: "/sys/class/infiniband/mlx5_0/ports/1/gids=empty", fix: "networks"},
		{name: "link-local GIDs alone", broken: gids(linkLocal...), status: warn, code: "LinkLocalGID", text: "mlx5_0/1", evidence: "0 IB/RoCE v1 link-local, 1 RoCE v2 link-local", fix: "hostNetwork"},
		{name: "no GID of RoCE v2", broken: gids("0 v1 ::ffff:10.0.0.1 eth0"), status: warn, code: "LinkLocalGID", evidence: "0 IB/RoCE v1 IPv4", fix: "hostNetwork"},
		{name: "GIDs of the node's network", broken: func(c *container) { c.remove("sys/class/net/eth0"); c.mkdir("sys/class/net/lo") }, status: fail, code: "GIDElsewhere", text: "mlx5_0/1", evidence: "3 RoCE v2 IPv4", fix: "hostNetwork"},
		{name: "IPv6 alone", broken: gids(append(slices.Clone(linkLocal), "2 v2 2001:db8::1 eth0")...), status: warn, code: "IPv6OnlyGID", evidence: "2 RoCE v2 IPv6", fix: "NCCL_IB_ADDR_FAMILY=AF_INET6"},
		{name: "the link-local GID by its index, beside IPv6 alone", broken: func(c *container) {
			gids("0 v2 fe80::1 eth0", "1 v2 fc01::1 eth0")(c)
			set("NCCL_IB_GID_INDEX=0")(c)
		}, status: warn, code: "GIDIndexWrong", text: "NCCL_IB_GID_INDEX=0 on mlx5_0/1", fix: "set NCCL_IB_GID_INDEX=1; or set NCCL_IB_ADDR_FAMILY=AF_INET6 and remove NCCL_IB_GID_INDEX"},
		{name: "an empty GID by its index, beside IPv6 alone", broken: func(c *container) {
			gids("0 v2 fe80::1 eth0", "1 v2 fc01::1 eth0")(c)
			set("NVSHMEM_IB_GID_INDEX=7")(c)
		}, status: fail, code: "GIDIndexWrong", text: "NVSHMEM_IB_GID_INDEX=7", fix: "set NVSHMEM_IB_GID_INDEX=1"},
		{name: "a GID index that is empty", broken: set("NCCL_IB_GID_INDEX=5"), status: fail, code: "GIDIndexWrong", text: "NCCL_IB_GID_INDEX=5 on mlx5_0/1", evidence: "NCCL_IB_GID_INDEX=5", fix: "remove the variable"},
		{name: "a GID index of RoCE v1", broken: set("UCX_IB_GID_INDEX=2"), status: warn, code: "GIDIndexWrong", text: "UCX_IB_GID_INDEX=2 on mlx5_1/1", fix: "spec.containers[].env"},
		{name: "NCCL without RDMA", broken: set("NCCL_IB_DISABLE=1"), status: fail, code: "GPUDirectOff", text: "NCCL_IB_DISABLE=1 (NCCL does not use", evidence: "NCCL_IB_DISABLE=1", fix: "spec.containers[].env"},
		{name: "NCCL without GPUDirect RDMA to send", broken: set("NCCL_NET_GDR_READ=0"), status: warn, code: "GPUDirectOff", text: "only to receive", fix: "spec.containers[].env"},
		{name: "a level that NCCL does not know", broken: set("NCCL_NET_GDR_LEVEL=NODE"), status: warn, code: "GPUDirectOff", text: "NCCL_NET_GDR_LEVEL=NODE: NCCL ignores it", evidence: "NCCL_NET_GDR_LEVEL=NODE", fix: "spec.containers[].env"},
		{name: "a UCX without GPU memory", broken: set("UCX_TLS=tcp"), status: warn, code: "GPUDirectOff", text: "an MPI beside NCCL", fix: "spec.containers[].env"},
		{name: "a UCX over TCP", broken: set("UCX_NET_DEVICES=eth0"), status: warn, code: "WrongNICVariable", text: "an MPI beside NCCL", evidence: "UCX_NET_DEVICES=eth0", fix: "gdr-features env"},
		{name: "the NIC of one GPU for all", broken: set("UCX_NET_DEVICES=mlx5_0:1"), status: warn, code: "WrongNICVariable", text: "the GPU 0000:83:00.0 is given mlx5_0 at SYS", evidence: "UCX_NET_DEVICES=mlx5_0:1", fix: "gdr-features env"},
		{name: "the NIC of another GPU", broken: set("UCX_NET_DEVICES=mlx5_0:1", "CUDA_VISIBLE_DEVICES=1", "CUDA_DEVICE_ORDER=PCI_BUS_ID"), status: fail, code: "WrongNICVariable", text: "the GPU 0000:83:00.0 is given mlx5_0 at SYS", evidence: "UCX_NET_DEVICES=mlx5_0:1", fix: "gdr-features env"},
		{name: "no visible GPU", broken: set("CUDA_VISIBLE_DEVICES="), status: fail, code: "GPUDirectOff", text: "CUDA_VISIBLE_DEVICES= (it leaves no GPU)", evidence: "CUDA_VISIBLE_DEVICES=", fix: "spec.containers[].env"},
		{name: "a list of more NICs than are here", broken: set("NCCL_IB_HCA=mlx5_0,mlx5_1,mlx5_2"), status: warn, code: "WrongNICVariable", text: `there is no RDMA device "mlx5_2"`, fix: "gdr-features env"},
		{name: "IBGDA on NICs with names that udev made", on: strings.NewReplacer("mlx5_0", "rocep1s0", "mlx5_1", "rocep2s0").Replace(roce), broken: set("NVSHMEM_IB_ENABLE_IBGDA=1", "NVSHMEM_IBGDA_NIC_HANDLER=gpu"), status: fail, code: "IBGDAImpossible", text: "contains mlx5 alone; there are rocep1s0 (mlx5)", evidence: "NVSHMEM_IB_ENABLE_IBGDA=1", fix: "NVSHMEM_HCA_PREFIX=rocep"},
		{name: "nccl: IPv6 asked for on ports of IPv4", broken: set("NCCL_IB_ADDR_FAMILY=AF_INET6"), status: warn, code: "GIDIndexWrong", text: "NCCL_IB_ADDR_FAMILY=AF_INET6 on mlx5_0/1: NCCL takes the entry 0 (IB/RoCE v1 link-local)", evidence: "NCCL_IB_ADDR_FAMILY=AF_INET6", fix: "remove or correct"},
		{name: "nccl: a range without addresses", broken: set("NCCL_IB_ADDR_RANGE=172.16.0.0/12"), status: warn, code: "GIDIndexWrong", text: "NCCL takes the entry 0", evidence: "2 IB/RoCE v1 IPv4, 3 RoCE v2 IPv4", fix: "remove or correct"},
		{name: "nccl: RoCE v1 asked for", broken: set("NCCL_IB_ROCE_VERSION_NUM=1"), status: warn, code: "GIDIndexWrong", text: "NCCL takes the entry 2 (IB/RoCE v1 IPv4)", evidence: "NCCL_IB_ROCE_VERSION_NUM=1", fix: "remove or correct"},
		{name: "nvshmem: IPv6 asked for, and nccl is told the index", broken: set("NVSHMEM_IB_ADDR_FAMILY=AF_INET6", "NCCL_IB_GID_INDEX=3", "NCCL_IB_ADDR_FAMILY=AF_INET6"), status: warn, code: "GIDIndexWrong", text: "lead to an entry that is not one of RoCE v2 with a routable address: NVSHMEM_IB_ADDR_FAMILY=AF_INET6 on mlx5_0/1: NVSHMEM", evidence: "NVSHMEM_IB_ADDR_FAMILY=AF_INET6", fix: "remove or correct"},
		{name: "nccl: IPv6 asked for, and an empty entry chosen", broken: func(c *container) {
			gids("0 v1 ::ffff:10.0.0.1 eth0", "1 v2 ::ffff:10.0.0.1 eth0")(c)
			set("NCCL_IB_ADDR_FAMILY=AF_INET6")(c)
		}, status: warn, code: "GIDIndexWrong", text: "NCCL takes the entry 2 (empty)", evidence: "0 IB/RoCE v1 IPv4", fix: "remove or correct"},
		{name: "a handler that NVSHMEM does not know", broken: set("NVSHMEM_IB_ENABLE_IBGDA=1", "NVSHMEM_IBGDA_NIC_HANDLER=dpu"), status: fail, code: "IBGDAImpossible", text: "none of auto", evidence: "NVSHMEM_IBGDA_NIC_HANDLER=dpu", fix: "remove"},
		{name: "a wrong NIC", broken: set("UCX_NET_DEVICES=mlx5_7:1"), status: fail, code: "WrongNICVariable", text: `there is no RDMA device "mlx5_7"; the GPU`, evidence: "UCX_NET_DEVICES=mlx5_7:1", fix: "gdr-features env"},
		{name: "IBGDA on other NICs", on: strings.ReplaceAll(roce, "15b3:1021", "14e4:1760"), broken: set("NVSHMEM_IB_ENABLE_IBGDA=1"), status: fail, code: "IBGDAImpossible", text: "mlx5_0 (bnxt_re)", evidence: "NVSHMEM_IB_ENABLE_IBGDA=1", fix: "ConnectX"},
		{name: "IBGDA without GDRCopy", broken: set("NVSHMEM_IB_ENABLE_IBGDA=1", "NVSHMEM_IBGDA_NIC_HANDLER=CPU"), status: fail, code: "IBGDAImpossible", text: "/dev/gdrdrv", evidence: "/dev/gdrdrv=absent", fix: "NVIDIA_GDRCOPY"},
		{
			name: "IBGDA without options", status: warn, code: "IBGDAOptions", text: "PeerMappingOverride is not set and gdrdrv is not loaded", evidence: "RegistryDwords: PeerMappingOverride=0;", fix: "gdrcopy.enabled=true",
			broken: func(c *container) {
				set("NVSHMEM_IB_ENABLE_IBGDA=1")(c)
				c.write("proc/driver/nvidia/params", "RegistryDwords: \"PeerMappingOverride=0;\"\nRegistryDwordsPerDevice: \"\"\n")
			},
		},
		{
			name: "IBGDA by the CPU", status: warn, code: "IBGDAByCPU", text: "/dev/gdrdrv cannot be used here", evidence: "NVSHMEM_IB_ENABLE_IBGDA=1", fix: "IBGDAOptions",
			broken: func(c *container) {
				set("NVSHMEM_IB_ENABLE_IBGDA=1")(c)
				c.write("sys/module/gdrdrv/initstate", "live\n")
				c.write("proc/driver/nvidia/params", "EnableStreamMemOPs: 0\nRegistryDwords: \"\"\nRegistryDwordsPerDevice: \"\"\n")
			},
		},
	})
}

// TestPodFailures: each change to a container in which all is right gives the finding that
// names it, and no other about the container that is not OK.
func TestPodFailures(t *testing.T) {
	for _, tt := range podFailures() {
		t.Run(tt.name, func(t *testing.T) {
			description := tt.on
			if description == "" {
				description = roce
			}
			c := newContainer(t, description)
			tt.broken(c)
			r := c.read()
			found := r.notOK()
			if len(found) != 1 || found[0].Status != tt.status || found[0].Code != tt.code {
				t.Fatalf("%+v, want one %s %s", found, tt.status, tt.code)
			}
			f := found[0]
			if !strings.Contains(f.Detail, tt.text) || !strings.Contains(strings.Join(f.Evidence, " "), tt.evidence) || !strings.Contains(f.FixText(), tt.fix) || f.FixText() == "" || len(f.Evidence) == 0 {
				t.Errorf("%+v", f)
			}
			if strings.Contains(f.Detail+f.FixText(), "%!") || len(f.Sources) == 0 {
				t.Errorf("a text lacks a part: %+v", f)
			}
			page, _ := reasons.Page(string(f.Code))
			if strings.Contains(f.Detail+f.FixText(), "Operator") && !strings.Contains(page, "operators.md#") {
				t.Errorf("the page of %s does not say where that was read", f.Code)
			}
			if state := pod.Ready(r.all); state != map[finding.Status]tristate.State{finding.StatusFail: tristate.False, finding.StatusWarn: tristate.True}[tt.status] {
				t.Errorf("the container's state is %v", state)
			}
		})
	}
}

// TestEveryCode: some case shows each code that a check lists. TestPodMergeVFs of cmd/gdr-features
// shows the one that stands in the place of the node's.
func TestEveryCode(t *testing.T) {
	shown := map[finding.Code]bool{}
	for _, c := range podFailures() {
		shown[c.code] = true
	}
	for _, c := range deniedNodes() {
		shown[c.code] = true
	}
	for _, code := range pod.Codes() {
		if !shown[code] && code != "BeyondNCCLDefault" {
			t.Errorf("no case shows %s", code)
		}
	}
}

// denied is what is found where nodes are here and may not be used.
type denied struct {
	name   string
	usable map[string]tristate.State // of the nodes that are not usable
	status finding.Status
	code   finding.Code
	text   string
}

func deniedNodes() []denied {
	return []denied{
		{"a GPU", map[string]tristate.State{"/dev/nvidia1": tristate.False}, finding.StatusFail, "DeviceNodeDenied", "/dev/nvidia1"},
		{"a GPU, as far as is known", map[string]tristate.State{"/dev/nvidia1": tristate.Unknown}, finding.StatusUnknown, "Unreadable", "/dev/nvidia1"},
		{"all NICs", map[string]tristate.State{"/dev/infiniband/uverbs0": tristate.False, "/dev/infiniband/uverbs1": tristate.False}, finding.StatusFail, "DeviceNodeDenied", "/dev/infiniband/uverbs0 (mlx5_0)"},
		{"a near NIC", map[string]tristate.State{"/dev/infiniband/uverbs0": tristate.False}, finding.StatusWarn, "NearNICNotHere", "mlx5_0 at PIX"},
		{"a NIC, as far as is known", map[string]tristate.State{"/dev/infiniband/uverbs0": tristate.Unknown}, finding.StatusUnknown, "Unreadable", "/dev/infiniband/uverbs0 (mlx5_0)"},
	}
}

// TestPodDenied: nodes that are here and may not be used, or may be as far as is known. Which
// nodes root may not use, no tree of files can show: what was found out is changed.
func TestPodDenied(t *testing.T) {
	for _, tt := range deniedNodes() {
		t.Run(tt.name, func(t *testing.T) {
			r := newContainer(t, roce).read()
			maps.Copy(r.container.Usable, tt.usable)
			here := assign.NewMachine(&r.Node, func(rdma string) bool { return r.container.UsableNIC(rdma) != tristate.False })
			r.container.Map = here.Assign(here.EveryGPU(), nil)
			r.all = pod.Check(&r.Node, r.container)
			found := r.notOK()
			if len(found) != 1 || found[0].Status != tt.status || found[0].Code != tt.code || !strings.Contains(found[0].Detail, tt.text) {
				t.Errorf("%+v, want %s %s about %s", found, tt.status, tt.code, tt.text)
			}
		})
	}
}

// TestPodRight: a container in which all is right, in several ways, has nothing but OK.
func TestPodRight(t *testing.T) {
	tests := map[string]func(c *container){
		"no limit of memory":  func(*container) {},
		"root with IPC_LOCK":  func(c *container) { c.locked("65536", 0, ipcLock, ipcLock) },
		"one GPU of two":      func(c *container) { c.remove("dev/nvidia1") },
		"one GPU and its NIC": func(c *container) { c.remove("dev/nvidia1"); c.remove("dev/infiniband/uverbs1") },
		"IPv6 that is asked for": func(c *container) {
			c.remove("sys/class/infiniband/mlx5_0/ports/1/gid_attrs")
			c.remove("sys/class/infiniband/mlx5_1/ports/1/gid_attrs")
			c.GIDs(c.t, c.dir, "2 v2 2001:db8::1 eth0")
			c.variables["NCCL_IB_ADDR_FAMILY"] = "AF_INET6"
		},
		"a range with the address": func(c *container) {
			maps.Copy(c.variables, map[string]string{"NCCL_IB_ADDR_RANGE": "10.0.0.0/8", "NCCL_IB_ROCE_VERSION_NUM": "2", "NCCL_IB_ADDR_FAMILY": "AF_INET"})
		},
		"one visible GPU and its NIC": func(c *container) {
			maps.Copy(c.variables, map[string]string{"UCX_NET_DEVICES": "mlx5_1:1", "CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
		},
		"one visible GPU by its UUID": func(c *container) {
			maps.Copy(c.variables, map[string]string{"UCX_NET_DEVICES": "mlx5_1:1", "CUDA_VISIBLE_DEVICES": "GPU-00000000-0000-4000-8000-000000000002"})
		},
		"GIDs of the node, without MOFED": func(c *container) {
			for _, file := range []string{"mlx_compat", "mlx5_core/version", "mlx5_ib/version", "ib_core/version"} {
				c.remove("sys/module/" + file)
			}
			c.remove("sys/class/net/eth0")
			c.mkdir("sys/class/net/lo")
		},
		"variables that are right": func(c *container) {
			maps.Copy(c.variables, map[string]string{"NCCL_IB_HCA": "=mlx5_0:1,mlx5_1:1", "NCCL_IB_GID_INDEX": "3", "UCX_TLS": "rc,cuda", "NVSHMEM_IB_GID_INDEX": "-1"})
		},
		"no options for IBGDA, which nobody asks for": func(c *container) {
			c.write("proc/driver/nvidia/params", "RegistryDwords: \"\"\nRegistryDwordsPerDevice: \"\"\n")
		},
		"IBGDA that the driver allows": func(c *container) {
			c.variables["NVSHMEM_IB_ENABLE_IBGDA"] = "1"
			c.write("proc/driver/nvidia/params", "RegistryDwords: \"PeerMappingOverride=1;\"\n")
		},
		"IBGDA for a process with all rights": func(c *container) {
			c.variables["NVSHMEM_IB_ENABLE_IBGDA"] = "true"
			c.write("proc/driver/nvidia/params", "RegistryDwords: \"\"\nRegistryDwordsPerDevice: \"\"\n")
			c.locked("unlimited", 0, sysAdmin, sysAdmin)
		},
		"IBGDA by GDRCopy": func(c *container) {
			c.variables["NVSHMEM_IB_ENABLE_IBGDA"], c.variables["NVSHMEM_IBGDA_NIC_HANDLER"] = "1", "cpu"
			c.write("dev/gdrdrv", "")
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			c := newContainer(t, roce)
			change(c)
			r := c.read()
			if found := r.notOK(); len(found) > 0 || pod.Ready(r.all) != tristate.True || len(r.Problems) > 0 {
				t.Errorf("%+v, problems %v", found, r.Problems)
			}
		})
	}
}
