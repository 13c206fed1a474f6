package main

import (
	"errors"
	"fmt"
	"path"
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
	// wideFunctions and widestFunctions are how many those have that get further NICs: one half
	// of what they have more are NICs, each with an RDMA device, the other half their ports.
	wideFunctions, widestFunctions = 712, 2824
	// kallsymsSize is that of a large kernel with its modules, in bytes.
	kallsymsSize = 12 << 20
)

// layOut writes the machine, with everything in place: as it is, with more virtual functions, and
// with more NICs.
func layOut(base, more, wide, widest string) error {
	m, err := machine.Load(machineFile)
	if err != nil {
		return err
	}
	state := m.Ready()
	kallsyms := machine.Kallsyms(kallsymsSize, m.Symbols(state))
	state.Kallsyms = &kallsyms
	first := share(m, baseFunctions)
	return errors.Join(
		first.Write(base, state),
		share(m, baseFunctions+furtherFunctions).Write(more, state),
		widen(first, wideFunctions).Write(wide, state),
		widen(first, widestFunctions).Write(widest, state),
	)
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

// widen returns the machine with as many NICs more as give it size functions, each with an RDMA
// device and below a port of its own, beside the ports of the machine's InfiniBand NICs.
func widen(m *machine.Machine, size int) *machine.Machine {
	const busesOfDomain = 240
	var nics []machine.Function
	for _, f := range m.Functions {
		if f.IsNIC() && f.Class == "020700" {
			nics = append(nics, f)
		}
	}
	ports := map[string]machine.Function{}
	for _, f := range m.Functions {
		ports[f.Path] = f
	}
	wide := *m
	wide.Functions = slices.Clone(m.Functions)
	for i := range (size - len(m.Functions)) / 2 {
		domain, bus := 1+i/busesOfDomain, 1+i%busesOfDomain
		nic := nics[i%len(nics)]
		port := ports[path.Dir(nic.Path)]
		port.Address = fmt.Sprintf("%04x:f0:%02x.%d", domain, bus/8, bus%8)
		port.Path = path.Join(path.Dir(port.Path), port.Address)
		nic.Address = fmt.Sprintf("%04x:%02x:00.0", domain, bus)
		nic.Path = path.Join(port.Path, nic.Address)
		nic.Attrs = map[string]string{"rdma": fmt.Sprintf("mlx5_%d", 10000+i)}
		wide.Functions = append(wide.Functions, port, nic)
	}
	return &wide
}
