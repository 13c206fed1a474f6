package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/internal/fleet/mechanism"
	"gdr-features/internal/rooms/frameworks"
	"gdr-features/test/machine"
)

// podMachine has eight GPUs with a RoCE NIC near each.
const podMachine = "gke-a3ultra-h200"

// containers are containers on that machine.
var containers = map[string]func(t *testing.T, m *machine.Machine, dir string){
	// the first GPU and its NIC, and all right
	"right": func(t *testing.T, m *machine.Machine, dir string) {
		m.Container(t, dir, []int{0}, m.RDMADevices()[0])
		m.Process(t, dir, "unlimited", 1000, 0, 0)
		m.GIDs(t, dir, "0 v1 fe80::1 eth1", "1 v2 fe80::1 eth1", "2 v1 ::ffff:10.0.0.1 eth1", "3 v2 ::ffff:10.0.0.1 eth1")
		makeDir(t, dir, "sys/class/net/eth1")
	},
	// the same as another user than root with IPC_LOCK, in a network with other GIDs
	"wrong": func(t *testing.T, m *machine.Machine, dir string) {
		m.Container(t, dir, []int{0}, m.RDMADevices()[0])
		m.Process(t, dir, "8388608", 1000, 0, 1<<14)
		m.GIDs(t, dir, "0 v1 fe80::1 net1", "1 v2 fe80::1 net1", "4 v1 ::ffff:10.0.0.1 net1", "5 v2 ::ffff:10.0.0.1 net1")
		makeDir(t, dir, "sys/class/net/net1")
	},
	// no devices, and the default limit of locked memory
	"bare": func(t *testing.T, m *machine.Machine, dir string) {
		m.Container(t, dir, nil)
		m.Process(t, dir, "8388608", 0, 0xa80425fb, 0xa80425fb)
		m.GIDs(t, dir)
		makeDir(t, dir, "sys/class/net/lo")
	},
}

func makeDir(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
}

// podGoldens are what check --pod prints in them.
var podGoldens = []struct {
	container, args string
	status          int
	file            string
}{
	{"right", "check --pod --level PXB", 0, "pod-right.txt"},
	{"wrong", "check --pod --level PXB", 2, "pod-wrong.txt"},
	{"wrong", "check --pod -o json", 2, "pod-wrong.json"},
	{"bare", "check --pod --level PXB", 2, "pod-bare.txt"},
}

// contained lays out one of the containers.
func contained(t *testing.T, name string) (dir string) {
	t.Helper()
	m, err := machine.Load(filepath.Join(machinesDir, podMachine+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir = m.Tree(t, m.Ready())
	containers[name](t, m, dir)
	return dir
}

// TestGoldenPod keeps what check prints in containers. Of what goes wrong, the last 2048
// bytes and 80 lines name every reason: they are what kubelet keeps.
func TestGoldenPod(t *testing.T) {
	for _, test := range podGoldens {
		t.Run(test.container+" "+test.args, func(t *testing.T) {
			t.Setenv("NCCL_IB_GID_INDEX", map[string]string{"wrong": "3"}[test.container])
			said, status := runOn(t, contained(t, test.container), strings.Fields(test.args)...)
			if status != test.status {
				t.Errorf("status %d, want %d", status, test.status)
			}
			golden(t, filepath.Join(goldenDir, podMachine, test.file), []byte(said))
			if status == 0 || strings.HasSuffix(test.args, "json") {
				return
			}
			end := said[max(0, len(said)-2048):]
			for line := range strings.Lines(said) {
				if words := strings.Fields(line); len(words) > 2 && words[0] == "FAIL" && !strings.Contains(end, words[2]) {
					t.Errorf("%s is not named at the end of the output:\n%s", words[2], end)
				}
			}
			if _, reasons, ok := strings.Cut(end, "\nThis container is not ready"); !ok || strings.Count(reasons, "\n") > 12 {
				t.Errorf("no reasons, or too long:\n%s", end)
			}
		})
	}
}

// TestPodOnSnapshot: a snapshot that was taken in a container says which nodes and GIDs it has,
// and leaves open what only its processes can know.
func TestPodOnSnapshot(t *testing.T) {
	dir := contained(t, "wrong")
	file := takeSnapshot(t, dir)
	said, status := runOn(t, file, "check", "--pod")
	if status != 3 || strings.Contains(said, "FAIL") || strings.Contains(said, "Not readable") || strings.Contains(said, "10.0.0.1") {
		t.Errorf("status %d\n%s", status, said)
	}
	for _, check := range []string{"gpu-nodes", "verbs-nodes", "locked-memory"} {
		if !strings.Contains(said, "UNKNOWN  "+check) {
			t.Errorf("%s is not unknown:\n%s", check, said)
		}
	}
	if !strings.Contains(said, "GID index 5 (IPv4) on 1 port") {
		t.Errorf("no GID index:\n%s", said)
	}
	t.Setenv("NCCL_IB_ADDR_RANGE", "10.0.0.0/8") // the snapshot has other addresses
	said, status = runOn(t, file, "check", "--pod")
	if status != 3 || strings.Contains(said, "FAIL") || !strings.Contains(said, "UNKNOWN  roce-gids") {
		t.Errorf("a range of addresses: status %d\n%s", status, said)
	}
}

// TestSnapshotGIDs: what check says of GIDs is the same of a container and of a snapshot of it.
func TestSnapshotGIDs(t *testing.T) {
	for name, entries := range map[string][]string{
		"routable":           {"0 v1 fe80::1 eth1", "1 v2 fe80::1 eth1", "2 v1 ::ffff:10.0.0.1 eth1", "3 v2 ::ffff:10.0.0.1 eth1"},
		"link-local alone":   {"0 v1 fe80::5a00:ff:fe00:1 eth1", "1 v2 fe80::5a00:ff:fe00:1 eth1"},
		"IPv6 alone":         {"0 v1 fe80::1 eth1", "3 v2 2600:1f18::7 eth1", "9 v2 fd00::1 eth1"},
		"behind empty ones":  {"0 v1 fe80::1 eth1", "12 v2 ::ffff:10.0.0.1 eth1"},
		"of another network": {"3 v2 ::ffff:10.0.0.1 eth7"},
		"none":               {},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := machine.Load(filepath.Join(machinesDir, podMachine+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			dir := m.Tree(t, m.Ready())
			m.Container(t, dir, []int{0}, m.RDMADevices()[0])
			m.GIDs(t, dir, entries...)
			makeDir(t, dir, "sys/class/net/eth1")
			file := takeSnapshot(t, dir)
			for _, variable := range []string{"", "NCCL_IB_GID_INDEX=3", "NCCL_IB_ADDR_FAMILY=AF_INET6"} {
				name, value, _ := strings.Cut(variable+"=", "=")
				if name != "" {
					t.Setenv(name, strings.TrimSuffix(value, "="))
				}
				want, got := gidFindings(t, dir), gidFindings(t, file)
				if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
					t.Errorf("%s: %d findings (-machine +snapshot):\n%s", variable, len(want), diff)
				}
			}
		})
	}
}

// gidFindings are what check --pod says of GIDs on a root.
func gidFindings(t *testing.T, root string) (some []map[string]any) {
	t.Helper()
	said, _ := runOn(t, root, "check", "--pod", "-o", "json")
	var all struct{ Findings []map[string]any }
	if err := json.Unmarshal([]byte(said), &all); err != nil {
		t.Fatal(err)
	}
	for _, f := range all.Findings {
		if f["check"] == "roce-gids" || f["check"] == "gid-index" {
			some = append(some, f)
		}
	}
	return some
}

// TestPodLabels: what a container may use moves no label.
func TestPodLabels(t *testing.T) {
	var first string
	for name := range containers {
		said, status := runOn(t, contained(t, name), "labels")
		if status != 0 || said == "" || first != "" && said != first {
			t.Errorf("%s: %d\n%s\nwant\n%s", name, status, said, first)
		}
		first = said
	}
}

// TestPodFIFO: a variable that names a FIFO, from which nothing ever comes, is wrong.
func TestPodFIFO(t *testing.T) {
	dir, fifo := contained(t, "right"), filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MC_CUSTOM_TOPO_JSON", fifo)
	for _, args := range [][]string{{"check", "--pod"}, {"env", "--check"}} {
		if said, status := runOn(t, dir, args...); status != 2 || !strings.Contains(said, "fifo: not a regular file") {
			t.Errorf("%s: status %d\n%s", args[0], status, said)
		}
	}
}

// TestPodEnvironment: each variable that a check looks at is read from the environment.
func TestPodEnvironment(t *testing.T) {
	dir := contained(t, "right")
	for want, variables := range map[string][]string{
		"GPUDirectOff":        {"NCCL_IB_DISABLE=1"},
		"GIDIndexWrong":       {"UCX_IB_GID_INDEX=5"},
		"WrongNICVariable":    {"NCCL_IB_HCA=mlx5_77"},
		"needs GDRCopy":       {"NVSHMEM_IB_ENABLE_IBGDA=1", "NVSHMEM_IBGDA_NIC_HANDLER=cpu"},
		"name contains rocep": {"NVSHMEM_IB_ENABLE_IBGDA=1", "NVSHMEM_HCA_PREFIX=rocep"},
	} {
		t.Run(want, func(t *testing.T) {
			for _, v := range variables {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			if said, status := runOn(t, dir, "check", "--pod"); status != 2 || !strings.Contains(said, want) {
				t.Errorf("status %d\n%s", status, said)
			}
		})
	}
}

// TestPodGPUs: in a container with eight GPUs the variables of a process with one of them are
// judged for that one, which --gpus or the process's own variables name.
func TestPodGPUs(t *testing.T) {
	m, err := machine.Load(filepath.Join(machinesDir, podMachine+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := m.Tree(t, m.Ready())
	m.Container(t, dir, []int{0, 1, 2, 3, 4, 5, 6, 7}, m.RDMADevices()...)
	m.Process(t, dir, "unlimited", 1000, 0, 0)
	m.GIDs(t, dir, "3 v2 ::ffff:10.0.0.1 eth1")
	makeDir(t, dir, "sys/class/net/eth1")
	nic := gpusOf(t, dir, "env -o json --gpus 3")[0]
	t.Setenv("UCX_NET_DEVICES", nic.RDMA+":1")
	for _, tt := range []struct {
		args, visible, order string
		status               int
		says                 string
	}{
		{"check --pod", "", "", 0, "WARN  nic-variables"},
		{"check --pod --gpus 3", "", "", 0, "each GPU is given the nearest NIC by UCX_NET_DEVICES"},
		{"check --pod", "3", "PCI_BUS_ID", 0, "of which CUDA_VISIBLE_DEVICES=3 CUDA_DEVICE_ORDER=PCI_BUS_ID leaves " + nic.GPU},
		{"check --pod", "3", "", 3, "CUDA_DEVICE_ORDER=PCI_BUS_ID is not set"},
		{"check --pod", "4", "PCI_BUS_ID", 2, "FAIL  nic-variables"},
		{"check --pod --gpus 3", "4", "PCI_BUS_ID", 0, "each GPU is given the nearest NIC by UCX_NET_DEVICES"},
		{"check --pod --gpus 8", "", "", 1, `no GPU "8"`},
		{"check --gpus 3", "", "", 1, "--gpus goes with --pod"},
		{"env --check", "3", "PCI_BUS_ID", 0, "OK       UCX_NET_DEVICES"},
		{"env --check", "3", "", 3, "UNKNOWN  UCX_NET_DEVICES"},
		{"env --check", "4", "PCI_BUS_ID", 2, "WRONG    UCX_NET_DEVICES"},
		{"env --check --gpus 3", "4", "PCI_BUS_ID", 0, "OK       UCX_NET_DEVICES"},
	} {
		t.Run(tt.args+" "+tt.visible+" "+tt.order, func(t *testing.T) {
			t.Setenv("CUDA_VISIBLE_DEVICES", tt.visible)
			if tt.visible == "" {
				_ = os.Unsetenv("CUDA_VISIBLE_DEVICES") // t.Setenv restores it
			}
			t.Setenv("CUDA_DEVICE_ORDER", tt.order)
			said, status := runOn(t, dir, strings.Fields(tt.args)...)
			if status != tt.status || !strings.Contains(said, tt.says) {
				t.Errorf("status %d\n%s", status, said)
			}
		})
	}
}

// TestForTakes: check --pod --for takes what env --for takes, and more.
func TestForTakes(t *testing.T) {
	for _, name := range frameworks.Names() {
		if !slices.Contains(mechanism.Names(), name) {
			t.Errorf("check --pod --for does not take %s: it has no row in internal/fleet/mechanism (rows.go)", name)
		}
	}
}

// TestPodMergeVFs: a virtual machine whose topology file has a virtual function beside the GPU is
// told to set NCCL_IB_MERGE_VFS=0, unless the container has it.
func TestPodMergeVFs(t *testing.T) {
	m, err := machine.Parse("virtual\npci0000:00 numa=0\n  0000:00:05.0 gpu 10de:2330\npci0000:01 numa=0\n  0000:01:09.0 ib 15b3:101e rdma=mlx5_0\n")
	if err != nil {
		t.Fatal(err)
	}
	s := m.Ready()
	s.Files = map[string]string{"var/run/nvidia-topologyd/virtualTopology.xml": `<system version="1"><cpu numaid="0">` +
		`<pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">` +
		`<pci busid="0000:00:05.0" class="0x030200"/><pci busid="0000:01:09.0" class="0x020700"/></pci></cpu></system>`}
	dir := m.Tree(t, s)
	m.Container(t, dir, []int{0}, "mlx5_0")
	m.Process(t, dir, "unlimited", 1000, 0, 0)
	for value, want := range map[string]string{"": "set NCCL_IB_MERGE_VFS=0 beside NCCL_TOPO_FILE", "1": "right: 0", "0": "NCCL looks for each virtual function where"} {
		t.Setenv("NCCL_IB_MERGE_VFS", value)
		said, _ := runOn(t, dir, "check", "--pod")
		if !strings.Contains(said, want) || strings.Contains(said, "VirtualTopology") == (value == "0") {
			t.Errorf("%q:\n%s", value, said)
		}
	}
	if said, status := runOn(t, dir, "env", "--for", "nccl"); status != 0 || !strings.Contains(said, "export NCCL_IB_MERGE_VFS='0'") {
		t.Errorf("env: status %d\n%s", status, said)
	}
}
