package main

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/test/machine"
)

// machineFile is the machine that is measured.
const machineFile = "testdata/machines/dell-xe9680-h100.txt"

const (
	// baseFunctions is how many PCI functions the first tree has, and furtherFunctions how
	// many virtual functions, each with an RDMA device, the second has more.
	baseFunctions, furtherFunctions = 96, 2000
	// kallsymsSize is that of a large kernel with its modules, in bytes.
	kallsymsSize = 12 << 20
)

// layOut writes the machine, with everything in place, and the one with more functions.
func layOut(base, more string) error {
	m, err := machine.Load(machineFile)
	if err != nil {
		return err
	}
	state := m.Ready()
	kallsyms := machine.Kallsyms(kallsymsSize, m.Symbols(state))
	state.Kallsyms = &kallsyms
	if err := share(m, baseFunctions).Write(base, state); err != nil {
		return err
	}
	return share(m, baseFunctions+furtherFunctions).Write(more, state)
}

// share returns the machine with as many virtual functions more as give it size functions,
// spread over its NICs, each with an RDMA device. Those of one NIC have a bus of their own,
// which the machine does not use.
func share(m *machine.Machine, size int) *machine.Machine {
	const firstBus = 0xe0
	var nics []machine.Function
	for _, f := range m.Functions {
		if f.IsNIC() {
			nics = append(nics, f)
		}
	}
	shared := *m
	shared.Functions = slices.Clone(m.Functions)
	for i := range size - len(m.Functions) {
		which, slot := i%len(nics), i/len(nics)
		f := nics[which]
		f.Address = fmt.Sprintf("0000:%02x:%02x.%d", firstBus+which, slot/8, slot%8)
		f.Path = f.Path[:strings.LastIndexByte(f.Path, '/')+1] + f.Address
		f.Device = "101e"
		f.Attrs = map[string]string{"rdma": fmt.Sprintf("mlx5_%d", 100+i), "physfn": nics[which].Address}
		shared.Functions = append(shared.Functions, f)
	}
	return &shared
}
