package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gdr-features/internal/machine"
)

// sizes are the numbers of PCI functions that the machine is grown to.
var sizes = []int{1000, 2000, 3000}

// kallsymsSize is that of a usual kernel's table with its modules'.
const kallsymsSize = 6 << 20

// tree is a machine laid out.
type tree struct {
	dir       string
	functions int
}

// layOut writes the machine as it is, then with more and more functions.
func layOut(dir string) ([]tree, error) {
	m, err := machine.Load(machineFile)
	if err != nil {
		return nil, err
	}
	state, ok := machine.StateNamed("ready")
	if !ok {
		return nil, fmt.Errorf("no state %q", "ready")
	}
	kallsyms := machine.Kallsyms(kallsymsSize, state.Symbols)
	state.Kallsyms = &kallsyms
	var trees []tree
	for _, size := range append([]int{len(m.Functions)}, sizes...) {
		t := tree{filepath.Join(dir, fmt.Sprint(size)), size}
		if err := grow(m, size).Write(t.dir, state); err != nil {
			return nil, err
		}
		trees = append(trees, t)
	}
	return trees, nil
}

// grow gives the machine with as many functions more as make it size. Ten at a
// time: a root bus with a switch, its ports and four drives, nine together, and a
// virtual function of an adapter. Every other virtual function has an RDMA device
// here, the rest are given away to virtual machines.
func grow(m *machine.Machine, size int) *machine.Machine {
	var adapters []machine.Function
	for _, f := range m.Functions {
		if f.IsNIC() {
			adapters = append(adapters, f)
		}
	}
	grown := *m
	grown.Functions = slices.Clone(m.Functions)
	for block := 0; len(grown.Functions) < size; block++ {
		more := append(drives(block), virtual(adapters[block%len(adapters)], block/len(adapters), block))
		grown.Functions = append(grown.Functions, more[:min(len(more), size-len(grown.Functions))]...)
	}
	return &grown
}

// drives makes nine functions on a root bus of their own: a root port, a switch
// of three ports, and four drives below them.
func drives(block int) []machine.Function {
	const bridge, nvme = "060400", "010802"
	domain := fmt.Sprintf("%04x", 0x1000+block)
	var all []machine.Function
	add := func(above, address, class, vendor, device string) string {
		f := machine.Function{
			Address: domain + ":" + address, Path: above + "/" + domain + ":" + address,
			Class: class, Vendor: vendor, Device: device, SubVendor: vendor, Sub: "0001",
			NUMA: block % 2, Attrs: map[string]string{},
		}
		all = append(all, f)
		return f.Path
	}
	root := add("devices/pci"+domain+":00", "00:01.0", bridge, "8086", "352a")
	upstream := add(root, "01:00.0", bridge, "1000", "c030")
	for i, names := range [][]string{{"03:00.0"}, {"04:00.0"}, {"05:00.0", "05:00.1"}} {
		port := add(upstream, fmt.Sprintf("02:%02x.0", i), bridge, "1000", "c030")
		for _, name := range names {
			add(port, name, nvme, "144d", "a80a")
		}
	}
	return all
}

// virtual makes the n-th virtual function of an adapter, on the adapter's bus
// behind its physical functions.
func virtual(adapter machine.Function, n, block int) machine.Function {
	bus, function := adapter.Address[:len("0000:00:")], adapter.Address[len(adapter.Address)-1]
	slot := 8 + 2*n + int(function-'0') // two physical functions a bus at most
	f := adapter
	f.Address = fmt.Sprintf("%s%02x.%d", bus, slot/8, slot%8)
	f.Path = f.Path[:strings.LastIndexByte(f.Path, '/')+1] + f.Address
	f.Device = "101e"
	f.Attrs = map[string]string{"physfn": adapter.Address, "driver": "vfio-pci"}
	if block%2 == 0 {
		f.Attrs = map[string]string{"physfn": adapter.Address, "rdma": fmt.Sprintf("mlx5_%d", 100+block)}
	}
	return f
}
