package nfdsource

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"
	"sigs.k8s.io/node-feature-discovery/source"

	"gdr-features/host"
	"gdr-features/source/family"
	"gdr-features/test/machine"
)

const machines = "../testdata/machines/"

// load reads the description of a machine.
func load(t *testing.T, file string) *machine.Machine {
	t.Helper()
	m, err := machine.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// tree lays a machine out in a state and opens it.
func tree(t *testing.T, m *machine.Machine, state string) *host.FS {
	t.Helper()
	s, ok := m.StateNamed(state)
	if !ok {
		t.Fatalf("no state %s", state)
	}
	dir := t.TempDir()
	if err := m.Write(dir, s); err != nil {
		t.Fatal(err)
	}
	return open(t, dir)
}

func open(t *testing.T, dir string) *host.FS {
	t.Helper()
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fs.Close(); err != nil {
			t.Error(err)
		}
	})
	return fs
}

// small is a machine of one GPU and a NIC of two ports.
func small(t *testing.T) *machine.Machine { return load(t, machines+"vllm-1gpu-dualport-node.txt") }

// node is the source of the labels.
func node(fs *host.FS) *labelSource { return sources(fs, family.Known())[0].(*labelSource) }

// text returns features one line an instance or attribute, sorted within each
// feature by key.
func text(f *v1alpha1.Features) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.Attributes)) {
		for _, key := range slices.Sorted(maps.Keys(f.Attributes[name].Elements)) {
			fmt.Fprintf(&out, "%s: %s=%s\n", name, key, f.Attributes[name].Elements[key])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Instances)) {
		for _, e := range f.Instances[name].Elements {
			out.WriteString(name + ":")
			for _, key := range slices.Sorted(maps.Keys(e.Attributes)) {
				fmt.Fprintf(&out, " %s=%s", key, strings.ReplaceAll(e.Attributes[key], " ", "~"))
			}
			out.WriteByte('\n')
		}
	}
	return out.String()
}

func TestFeatures(t *testing.T) {
	all := sources(tree(t, small(t), "ready"), family.Known())
	for _, tc := range []struct {
		source source.FeatureSource
		want   string
	}{
		{all[0], `
node: fingerprint=6cd08e4c25f44338
node: gdr.acs=clear
node: gdr.align=numaNode
node: gdr.degraded=false
node: gdr.dmabuf=true
node: gdr.gpu.nvidia=true
node: gdr.gpus=1
node: gdr.iommu=passthrough
node: gdr.level=NODE
node: gdr.level.best=NODE
node: gdr.link=ethernet
node: gdr.mofed=24.10-1.1.4
node: gdr.nccl-default=false
node: gdr.nic.mlx5=true
node: gdr.nics=2
node: gdr.peerdirect=current
node: gdr.peermem=true
node: gdr.rate=100
node: gdr.topology=physical
node: gpudirect.rdma=true
node: gpudirect.rdma.capable=true
node: gpudirect.rdma.connectx=true
node: gpudirect.storage=false
state: driverOpen=true
state: driverVersion=570.86.15
state: findings=BeyondNCCLDefault,GPUWithoutNearNIC
finding: check=level code=GPUWithoutNearNIC status=WARN
finding: check=nccl-default code=BeyondNCCLDefault status=WARN
gpu: address=0000:02:00.0 device=20f1 family=nvidia name=A100~PCIe~40GB numaNode=1 pcieRoot=pci0000:01
nic: address=0000:04:00.0 device=101d family=mlx5 linkLayer=Ethernet name=ConnectX-6~Dx numaNode=1 pcieRoot=pci0000:03 rail=0 rateGbps=100 rdma=mlx5_0 state=ACTIVE
nic: address=0000:04:00.1 device=101d family=mlx5 linkLayer=Ethernet name=ConnectX-6~Dx numaNode=1 pcieRoot=pci0000:03 rail=1 rateGbps=100 rdma=mlx5_1 state=ACTIVE
pair: bridge= gpu=0000:02:00.0 level=NODE nccl=PHB nic=0000:04:00.0 rdma=mlx5_0
pair: bridge= gpu=0000:02:00.0 level=NODE nccl=PHB nic=0000:04:00.1 rdma=mlx5_1
`},
		{all[1], `
function: address=0000:01:01.0 class=060400 device=0000 driver=pcieport linkSpeed=32 linkWidth=16 maxLinkSpeed=32 maxLinkWidth=16 numaNode=1 parent= pcieRoot=pci0000:01 vendor=8086
function: address=0000:02:00.0 class=030200 device=20f1 driver=nvidia eligible=true family=nvidia iommuGroup=1 linkSpeed=32 linkWidth=16 maxLinkSpeed=32 maxLinkWidth=16 name=A100~PCIe~40GB numaNode=1 parent=0000:01:01.0 pcieRoot=pci0000:01 vendor=10de
function: address=0000:03:01.0 class=060400 device=0000 driver=pcieport linkSpeed=32 linkWidth=16 maxLinkSpeed=32 maxLinkWidth=16 numaNode=1 parent= pcieRoot=pci0000:03 vendor=8086
function: address=0000:04:00.0 class=020000 device=101d driver=mlx5_core eligible=true family=mlx5 iommuGroup=3 linkSpeed=32 linkWidth=16 maxLinkSpeed=32 maxLinkWidth=16 name=ConnectX-6~Dx numaNode=1 parent=0000:03:01.0 pcieRoot=pci0000:03 vendor=15b3
function: address=0000:04:00.1 class=020000 device=101d driver=mlx5_core eligible=true family=mlx5 iommuGroup=4 linkSpeed=32 linkWidth=16 maxLinkSpeed=32 maxLinkWidth=16 name=ConnectX-6~Dx numaNode=1 parent=0000:03:01.0 pcieRoot=pci0000:03 vendor=15b3
`},
		{all[2], `
device: address=0000:04:00.0 board=MT_0000000838 firmware=28.42.1000 nodeType=CA rdma=mlx5_0
device: address=0000:04:00.1 board=MT_0000000838 firmware=28.42.1000 nodeType=CA rdma=mlx5_1
port: address=0000:04:00.0 board=MT_0000000838 firmware=28.42.1000 linkLayer=Ethernet nodeType=CA port=1 rateGbps=100 rdma=mlx5_0 state=ACTIVE
port: address=0000:04:00.1 board=MT_0000000838 firmware=28.42.1000 linkLayer=Ethernet nodeType=CA port=1 rateGbps=100 rdma=mlx5_1 state=ACTIVE
`},
		{all[3], `
state: driverLoaded=true
state: driverOpen=true
state: driverVersion=570.86.15
state: mofed=24.10-1.1.4
state: peerdirect=current
state: peermem=true
state: peermemBy=nvidia_peermem
state: peermemModule=live
state: storage=false
state: symbolBNXT_REDMABuf=false
state: symbolEFADMABuf=false
state: symbolIONICDMABuf=false
state: symbolMLX5DMABuf=true
state: symbolPeerMemory=true
state: symbolPeerMemoryOwner=ib_uverbs
state: symbolUmemDMABuf=true
state: virtual=false
`},
	} {
		t.Run(tc.source.Name(), func(t *testing.T) {
			if err := tc.source.Discover(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), text(tc.source.GetFeatures())); diff != "" {
				t.Errorf("features (-want +got):\n%s", diff)
			}
		})
	}
}

// Before any discovery there are no features and no labels, and nothing panics.
func TestNeverDiscovered(t *testing.T) {
	fs := open(t, t.TempDir())
	for _, s := range sources(fs, family.Known()) {
		if diff := cmp.Diff(v1alpha1.NewFeatures(), s.GetFeatures()); diff != "" {
			t.Errorf("%s: features (-want +got):\n%s", s.Name(), diff)
		}
	}
	if labels, err := node(fs).GetLabels(); err != nil || len(labels) != 0 {
		t.Errorf("labels %v, error %v", labels, err)
	}
}

// A bus that cannot be read is an error, and what was found before is gone. The
// drivers are known all the same.
func TestNoBus(t *testing.T) {
	for _, s := range sources(open(t, t.TempDir()), family.Known()) {
		old := &v1alpha1.Features{Attributes: map[string]v1alpha1.AttributeFeatureSet{"old": {}}}
		switch s := s.(type) {
		case *featureSource:
			s.last.Store(old)
		case *labelSource:
			s.last.Store(old)
		}
		err := s.Discover()
		if s.Name() == "gdr-kmod" {
			if err != nil {
				t.Errorf("%s: %v", s.Name(), err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "PCI bus") || !strings.Contains(err.Error(), "/sys/bus/pci/devices") {
			t.Errorf("%s: error %v", s.Name(), err)
		}
		if diff := cmp.Diff(v1alpha1.NewFeatures(), s.GetFeatures()); diff != "" {
			t.Errorf("%s: features (-want +got):\n%s", s.Name(), diff)
		}
	}
}

// The worker and its event loop may ask while a discovery runs.
func TestConcurrent(t *testing.T) {
	all := sources(tree(t, small(t), "ready"), family.Known())
	var wg sync.WaitGroup
	for _, s := range slices.Concat(all, all) {
		wg.Go(func() {
			for range 5 {
				if err := s.Discover(); err != nil {
					t.Error(err)
				}
				text(s.GetFeatures())
				if s, ok := s.(source.LabelSource); ok {
					if labels, err := s.GetLabels(); err != nil || len(labels) == 0 {
						t.Errorf("labels %v, error %v", labels, err)
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestSources(t *testing.T) {
	if _, err := Sources(Options{Root: filepath.Join(t.TempDir(), "missing")}); err == nil {
		t.Error("no error for a root that is not there")
	}
}
