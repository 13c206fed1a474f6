package verdict_test

import (
	"context"
	"fmt"
	"os"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/test/machine"
	"gdr-features/topology"
	"gdr-features/verdict"
)

// Reading a machine takes five steps: its PCI functions, its RDMA devices, its drivers, the rest,
// and how near GPUs and NICs are to each other. The verdict follows from these
// facts.
func Example() {
	root, remove := exampleTree()
	defer remove()
	tree, err := host.Open(host.Options{Root: root}) // host.Options{} is this machine
	if err != nil {
		panic(err)
	}
	defer tree.Close()

	table := family.Known()
	functions, err := pci.Scan(tree, table, source.What{})
	if err != nil {
		panic(err)
	}
	devices := rdma.Scan(context.Background(), tree, &functions, source.What{})
	drivers := kmod.Scan(tree, &functions, table, source.What{})
	system := platform.Read(tree, platform.ReadDMI(tree), &functions, source.What{})
	matrix := topology.Build(topology.Inputs{PCI: &functions, RDMA: &devices, Platform: system})

	for _, pair := range matrix.Pairs {
		gpu, nic := matrix.GPUs[pair.GPU], matrix.NICs[pair.NIC]
		fmt.Println(gpu.Address, nic.Name(), pair.Level, "NCCL", pair.NCCL)
	}
	v := verdict.Judge(&verdict.Node{
		Families: table, PCIRead: true, PCI: functions, RDMA: devices, Kmod: drivers, Platform: system, Matrix: matrix,
	})
	fmt.Println("capable", v.Capable, "ready", v.Ready, v.Reason)
	// Output:
	// 0000:18:00.0 mlx5_0 PIX NCCL PIX
	// 0000:18:00.0 mlx5_1 NODE NCCL PHB
	// capable true ready false PeermemNotLoaded
}

// exampleTree writes /sys and /proc of a machine with one GPU and two NICs whose
// nvidia-peermem is not loaded. It gives their root, and a function that removes it.
func exampleTree() (root string, remove func()) {
	m, err := machine.Parse(`
nodes 2
pci0000:15 numa=0
  0000:15:01.0 port 8086:352a
    0000:16:00.0 switch 1000:c030
      0000:17:00.0 port 1000:c030
        0000:18:00.0 gpu 10de:2330 name=GPU0
      0000:17:01.0 port 1000:c030
        0000:19:00.0 ib 15b3:1021 rdma=mlx5_0
pci0000:50 numa=0
  0000:50:01.0 port 8086:352a
    0000:51:00.0 ib 15b3:1021 rdma=mlx5_1
`)
	if err != nil {
		panic(err)
	}
	if root, err = os.MkdirTemp("", "machine"); err != nil {
		panic(err)
	}
	state, ok := machine.StateNamed("closed-no-peermem")
	if err := m.Write(root, state); err != nil || !ok {
		panic(err)
	}
	return root, func() { _ = os.RemoveAll(root) }
}
