// Command levels prints how far the GPUs of a machine are from its NICs, and whether it
// does GPUDirect RDMA. It is an example of a program that imports gdr-features from a
// module of its own.
//
//	levels [ROOT]
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
	"gdr-features/source/platform"
	"gdr-features/source/rdma"
	"gdr-features/topology"
	"gdr-features/verdict"
)

func main() {
	root := "/"
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(context.Background(), os.Stdout, root); err != nil {
		fmt.Fprintln(os.Stderr, "levels:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, root string) error {
	tree, err := host.Open(host.Options{Root: root})
	if err != nil {
		return err
	}
	defer tree.Close()

	table := family.Known()
	functions, err := pci.Scan(tree, table, source.What{})
	if err != nil {
		return err
	}
	devices := rdma.Scan(ctx, tree, &functions, source.What{})
	drivers := kmod.Scan(tree, &functions, table, source.What{})
	system := platform.Read(tree, platform.ReadDMI(tree), &functions, source.What{})
	matrix := topology.Build(topology.Inputs{PCI: &functions, RDMA: &devices, Platform: system})
	node := verdict.Judge(&verdict.Node{
		Families: table, PCIRead: true, PCI: functions, RDMA: devices, Kmod: drivers, Platform: system, Matrix: matrix,
	})

	for _, pair := range matrix.Pairs {
		gpu, nic := matrix.GPUs[pair.GPU], matrix.NICs[pair.NIC]
		if _, err := fmt.Fprintf(out, "%s %s %s nccl=%s\n", gpu.Address, nic.Name(), pair.Level, pair.NCCL); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "capable=%s ready=%s %s\n", node.Capable, node.Ready, node.Reason)
	return err
}
