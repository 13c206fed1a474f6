package verdict_test

import (
	"testing"

	"gdr-features/source/kmod"
	"gdr-features/source/verbs"
	"gdr-features/test/sample"
	"gdr-features/tristate"
)

const (
	yes     = tristate.True
	no      = tristate.False
	unknown = tristate.Unknown
)

// TestAsked: the devices' answers replace the kernel's symbols, and nothing else.
// The second NIC has mlx5_1; rxe0 is a software device.
func TestAsked(t *testing.T) {
	for _, tc := range []struct {
		name    string
		symbols tristate.State
		said    map[string]tristate.State
		change  func(*sample.Node)
		want    tristate.State
	}{
		{"nobody asked", yes, nil, nil, yes},
		{"all can, symbols deny", no, map[string]tristate.State{"mlx5_0": yes, "mlx5_1": yes}, nil, yes},
		{"all can, no symbols to read", unknown, map[string]tristate.State{"mlx5_0": yes, "mlx5_1": yes}, nil, yes},
		{"one can", no, map[string]tristate.State{"mlx5_0": no, "mlx5_1": yes}, nil, yes},
		{"one can, the other is not clear", no, map[string]tristate.State{"mlx5_0": unknown, "mlx5_1": yes}, nil, yes},
		{"none can, symbols agree not", yes, map[string]tristate.State{"mlx5_0": no, "mlx5_1": no}, nil, no},
		{"none can, no symbols to read", unknown, map[string]tristate.State{"mlx5_0": no, "mlx5_1": no}, nil, no},
		{"one cannot, the other is not clear", yes, map[string]tristate.State{"mlx5_0": no, "mlx5_1": unknown}, nil, yes},
		{"one cannot, the other was not asked", yes, map[string]tristate.State{"mlx5_0": no}, nil, yes},
		{"none is clear, symbols deny", no, map[string]tristate.State{"mlx5_0": unknown, "mlx5_1": unknown}, nil, no},
		{"none is clear, no symbols to read", unknown, map[string]tristate.State{"mlx5_0": unknown, "mlx5_1": unknown}, nil, unknown},
		{"a software device cannot", yes, map[string]tristate.State{"rxe0": no}, nil, yes},
		{"a software device can", no, map[string]tristate.State{"rxe0": yes}, nil, no},
		{"closed driver", yes, map[string]tristate.State{"mlx5_0": yes, "mlx5_1": yes}, func(n *sample.Node) { n.Kmod.Drivers = sample.Driver(tristate.True, no) }, no},
		{"Volta", yes, map[string]tristate.State{"mlx5_0": yes, "mlx5_1": yes}, func(n *sample.Node) { n.GPU().Device = 0x1db1 }, no},
		{"no RDMA device left", yes, map[string]tristate.State{"mlx5_0": yes}, func(n *sample.Node) { n.RDMA.Devices = nil }, no},
		{"devices may be hidden", yes, map[string]tristate.State{"mlx5_0": no, "mlx5_1": no}, func(n *sample.Node) { n.RDMA.Complete = false }, yes},
		{"none can, and no driver is known", yes, map[string]tristate.State{"mlx5_0": no, "mlx5_1": no}, func(n *sample.Node) {
			n.NIC().DriverKnown, n.PCI.Functions[sample.NIC+1].DriverKnown = false, false
		}, unknown},
		{"none can, no driver is known, symbols deny", no, map[string]tristate.State{"mlx5_0": no, "mlx5_1": no}, func(n *sample.Node) {
			n.NIC().DriverKnown, n.PCI.Functions[sample.NIC+1].DriverKnown = false, false
		}, no},
		{"none can, and one driver is not known", yes, map[string]tristate.State{"mlx5_0": no, "mlx5_1": no}, func(n *sample.Node) {
			n.PCI.Functions[sample.NIC+1].DriverKnown = false
		}, no},
		{"one is of mlx4", yes, map[string]tristate.State{"mlx5_1": no}, func(n *sample.Node) { n.NIC().Driver = "mlx4_core" }, no},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := sample.Ready()
			n.AddNIC()
			n.Kmod.Symbols[kmod.UmemDMABuf], n.Kmod.Symbols[sample.MLX5DMABuf] = kmod.Symbol{Found: tc.symbols}, kmod.Symbol{Found: tc.symbols}
			for _, device := range []string{"mlx5_0", "mlx5_1", "rxe0"} {
				if state, ok := tc.said[device]; ok {
					n.Asked = append(n.Asked, verbs.Answer{Device: device, DMABuf: state})
				}
			}
			if tc.change != nil {
				tc.change(n)
			}
			if got := n.Judge().Verdict.DMABuf; got != tc.want {
				t.Errorf("dmabuf %v, want %v", got, tc.want)
			}
		})
	}
}
