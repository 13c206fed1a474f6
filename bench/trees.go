package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gdr-features/test/machine"
)

// sizes are the numbers of PCI functions that the machine is grown to.
var sizes = []int{1000, 3000}

// kallsymsSize is that of a usual kernel with its modules, in bytes.
const kallsymsSize = 6 << 20

// virtualFunctions is how many virtual functions, each with an RDMA device, the last tree
// has more than the machine.
const virtualFunctions = 2000

// tree is a machine written as files.
type tree struct {
	dir       string
	functions int
}

// layOut writes the machine as it is, then with more and more functions, and last with
// more virtual functions only, and one with NICs of another family.
func layOut(dir string) (grown []tree, shared tree, otherFamily string, err error) {
	m, state, err := ready(machineFile)
	if err != nil {
		return nil, shared, "", err
	}
	other, otherState, err := ready(otherFamilyFile)
	if err != nil {
		return nil, shared, "", err
	}
	otherFamily = filepath.Join(dir, "other-family")
	if err := other.Write(otherFamily, otherState); err != nil {
		return nil, shared, "", err
	}
	write := func(m *machine.Machine) (tree, error) {
		t := tree{filepath.Join(dir, fmt.Sprint(len(m.Functions))), len(m.Functions)}
		return t, m.Write(t.dir, state)
	}
	for _, size := range append([]int{len(m.Functions)}, sizes...) {
		t, err := write(grow(m, size))
		if err != nil {
			return nil, shared, "", err
		}
		grown = append(grown, t)
	}
	shared, err = write(share(m, virtualFunctions))
	return grown, shared, otherFamily, err
}

// ready returns a machine with everything in place and a kallsyms of the usual size.
func ready(file string) (*machine.Machine, machine.State, error) {
	m, err := machine.Load(file)
	if err != nil {
		return nil, machine.State{}, err
	}
	state := m.Ready()
	kallsyms := machine.Kallsyms(kallsymsSize, m.Symbols(state))
	state.Kallsyms = &kallsyms
	return m, state, nil
}

// nicsOf returns the machine's NICs.
func nicsOf(m *machine.Machine) []machine.Function {
	var nics []machine.Function
	for _, f := range m.Functions {
		if f.IsNIC() {
			nics = append(nics, f)
		}
	}
	return nics
}

// share returns the machine with n virtual functions more, spread over its NICs, each with
// an RDMA device. Those of one NIC have a bus of their own, which the machine does not
// use.
func share(m *machine.Machine, n int) *machine.Machine {
	const firstBus = 0xe0
	nics := nicsOf(m)
	shared := *m
	shared.Functions = slices.Clone(m.Functions)
	for i := range n {
		which, slot := i%len(nics), i/len(nics)
		address := fmt.Sprintf("0000:%02x:%02x.%d", firstBus+which, slot/8, slot%8)
		shared.Functions = append(shared.Functions, virtual(nics[which], address, map[string]string{"rdma": fmt.Sprintf("mlx5_%d", 100+i)}))
	}
	return &shared
}

// grow adds functions to the machine until it has size of them, ten at a time: a root bus
// with a switch, its ports and four drives, nine together, and a virtual function of a
// NIC. Every other virtual function has an RDMA device, the rest belong to virtual
// machines.
func grow(m *machine.Machine, size int) *machine.Machine {
	nics := nicsOf(m)
	grown := *m
	grown.Functions = slices.Clone(m.Functions)
	for block := 0; len(grown.Functions) < size; block++ {
		attrs := map[string]string{"driver": "vfio-pci"}
		if block%2 == 0 {
			attrs = map[string]string{"rdma": fmt.Sprintf("mlx5_%d", 100+block)}
		}
		nic := nics[block%len(nics)]
		more := append(drives(block), virtual(nic, virtualAddress(nic, block/len(nics)), attrs))
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

// virtualAddress is the address of the n-th virtual function on the NIC's own bus,
// after its physical functions, of which a bus has two at most.
func virtualAddress(nic machine.Function, n int) string {
	bus, function := nic.Address[:len("0000:00:")], nic.Address[len(nic.Address)-1]
	slot := 8 + 2*n + int(function-'0')
	return fmt.Sprintf("%s%02x.%d", bus, slot/8, slot%8)
}

// virtual makes a virtual function of a NIC.
func virtual(nic machine.Function, address string, attrs map[string]string) machine.Function {
	f := nic
	f.Address = address
	f.Path = f.Path[:strings.LastIndexByte(f.Path, '/')+1] + address
	f.Device = "101e"
	f.Attrs = maps.Clone(attrs)
	f.Attrs["physfn"] = nic.Address
	return f
}
