package verdict_test

import (
	"strings"
	"testing"

	"gdr-features/source/kmod"
	"gdr-features/source/rdma"
	"gdr-features/source/verbs"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

const (
	yes     = tristate.True
	no      = tristate.False
	unknown = tristate.Unknown
)

// TestAsked: what devices say stands in for the kernel's symbols, and for nothing
// else. The second adapter has mlx5_1; rxe0 is a software device.
func TestAsked(t *testing.T) {
	for _, tc := range []struct {
		name    string
		symbols tristate.State
		said    map[string]tristate.State
		change  func(*node)
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
		{"closed driver", yes, map[string]tristate.State{"mlx5_0": yes, "mlx5_1": yes}, func(n *node) { n.kmod.Driver.Open = no }, no},
		{"Volta", yes, map[string]tristate.State{"mlx5_0": yes, "mlx5_1": yes}, func(n *node) { n.gpu().Device = 0x1db1 }, no},
		{"no RDMA device left", yes, map[string]tristate.State{"mlx5_0": yes}, func(n *node) { n.rdma.Devices = nil }, no},
		{"devices may be hidden", yes, map[string]tristate.State{"mlx5_0": no, "mlx5_1": no}, func(n *node) { n.rdma.Complete = false }, yes},
		{"one is of mlx4", yes, map[string]tristate.State{"mlx5_1": no}, func(n *node) { n.nic().Driver = "mlx4_core" }, no},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := ready()
			n.addNIC()
			n.kmod.Symbols.UmemDMABuf, n.kmod.Symbols.MLX5DMABuf = tc.symbols, tc.symbols
			for _, device := range []string{"mlx5_0", "mlx5_1", "rxe0"} {
				if state, ok := tc.said[device]; ok {
					n.asked = append(n.asked, verbs.Answer{Device: device, DMABuf: state})
				}
			}
			if tc.change != nil {
				tc.change(n)
			}
			v := n.judge()
			if v.DMABuf != tc.want {
				t.Errorf("dmabuf %v, want %v", v.DMABuf, tc.want)
			}
			detail := finding(t, v, "dmabuf").Detail
			for device, state := range tc.said {
				if word := map[tristate.State]string{yes: " can", no: " cannot", unknown: " gave"}[state]; !strings.Contains(detail, device) || !strings.Contains(detail, word) {
					t.Errorf("%q does not tell what %s said", detail, device)
				}
			}
			if tc.said == nil && strings.Contains(detail, "asked") {
				t.Error(detail)
			}
		})
	}
}

// addNIC adds a second adapter beside the first.
func (n *node) addNIC() {
	second := at(0x21)
	n.pci.Functions = append(n.pci.Functions, function(0x21, 0x15b3, 0x1021, 0x020700, "mlx5_core"))
	n.rdma.Devices = append(n.rdma.Devices, rdma.Device{Name: "mlx5_1", PCI: &second, PortsRead: true})
}

func finding(t *testing.T, v verdict.Verdict, check string) verdict.Finding {
	t.Helper()
	for _, f := range v.Findings {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("no finding %s", check)
	return verdict.Finding{}
}

// TestAskedFindings: the finding of devices that say no says what to do.
func TestAskedFindings(t *testing.T) {
	n := ready()
	n.kmod.Peermem = no
	n.asked = []verbs.Answer{{Device: "mlx5_0", DMABuf: no}, {Device: "rxe0", DMABuf: no}}
	f := finding(t, n.judge(), "dmabuf")
	const detail = "the RDMA devices cannot register DMA-BUF; asked: mlx5_0 rxe0 cannot"
	if f.Status != verdict.Fail || f.Detail != detail || !strings.Contains(f.Fix, "ON_DEMAND_PAGING") {
		t.Errorf("%+v", f)
	}
	if last := f.Sources[len(f.Sources)-1]; last != "/dev/infiniband/uverbs*" {
		t.Errorf("sources %q", f.Sources)
	}
	n.asked[0].DMABuf = yes
	n.kmod.Symbols = kmod.Symbols{}
	f = finding(t, n.judge(), "dmabuf")
	const can = "the GPU driver is the open one, and mlx5 can register DMA-BUF (only a transfer proves more); asked: mlx5_0 can, rxe0 cannot"
	if f.Status != verdict.OK || f.Detail != can {
		t.Errorf("%+v", f)
	}
}
