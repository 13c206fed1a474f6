package dra_test

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"gdr-features/internal/rooms/assign"
	"gdr-features/internal/rooms/dra"
	"gdr-features/source/pci"
	"gdr-features/topology"
)

// TestFit: a claim by attribute is given no NIC that is not for GPUs while others are, and none
// that is near to no GPU while the near ones are enough. Where there are as many cards as GPUs it
// is given no two NICs of a card. Each GPU can be given all that is left.
func TestFit(t *testing.T) {
	out := 0
	each(t, func(t *testing.T, s *subject) {
		claim, template, err := s.claim(t, 1)
		if err != nil || template == nil || claim.Attribute == topology.NoAttribute {
			return
		}
		name := resourceapi.QualifiedName(dra.Name(claim.Attribute))
		m := assign.NewMachine(&s.report.Node, func(string) bool { return true })
		gpus, near, cards := map[string]int{}, map[string]map[*assign.NIC]bool{}, map[string]map[pci.Address]int{}
		anyLayer := func(n *assign.NIC) bool { return n.Aside == "" || n.OtherLayer } // a claim pairs one GPU with one NIC
		for _, c := range m.Assign(m.EveryGPU(), anyLayer).Choices {
			value := text(s.attributes[c.GPU.Address.String()][name])
			if near[value] == nil {
				near[value], cards[value] = map[*assign.NIC]bool{}, map[pci.Address]int{}
			}
			if !c.GPU.Counts() {
				continue
			}
			gpus[value]++
			for _, nic := range c.Near {
				if text(s.attributes[nic.Address.String()][name]) == value {
					near[value][nic] = true
					cards[value][m.CardOf(nic)] = 0
				}
			}
		}
		for i := range s.report.Matrix.NICs {
			n := &s.report.Matrix.NICs[i]
			value := text(s.attributes[n.Address()][name])
			nic := m.Usable(i)
			down := n.Counts() && nic == nil // it may be near and come back
			if n.RDMA == nil || down || gpus[value] == 0 {
				continue
			}
			enough := len(near[value]) >= gpus[value]
			each := gpus[value] > 1 && len(cards[value]) >= gpus[value]
			switch selected := s.selected(t, template, "nic-0", n.Address()); {
			case selected && (!n.Counts() || n.Role != "" && len(near[value]) > 0 || enough && !near[value][nic]):
				t.Errorf("%s (%s) may be given, and near are %d NICs for %d GPUs", n.Address(), n.Role, len(near[value]), gpus[value])
			case !selected && near[value][nic] && !each:
				t.Errorf("%s may not be given, and is near", n.Address())
			case selected && near[value][nic]:
				cards[value][m.CardOf(nic)]++
			case !selected:
				out++
			}
		}
		for value := range cards {
			for card, given := range cards[value] {
				if each := gpus[value] > 1 && len(cards[value]) >= gpus[value]; each && given > 1 {
					t.Errorf("of the card %v %d NICs may be given, for %d GPUs are %d cards", card, given, gpus[value], len(cards[value]))
				}
			}
		}
	})
	if out == 0 {
		t.Error("no machine has a NIC that is left out for the sake of others")
	}
}

// selected reports whether a template's request may be given the device at an address: every
// selector accepts what its driver publishes.
func (s *subject) selected(t *testing.T, template *resourceapi.ResourceClaimTemplate, request, address string) bool {
	t.Helper()
	for _, slice := range s.slices {
		for _, d := range slice.Spec.Devices {
			if s.address[slice.Spec.Driver+"/"+d.Name] != address {
				continue
			}
			for _, r := range template.Spec.Spec.Devices.Requests {
				if r.Name == request && accepts(t, r.Exactly.Selectors, slice.Spec.Driver, d) {
					return true
				}
			}
		}
	}
	return false
}

// accepts evaluates selectors as the scheduler does.
func accepts(t *testing.T, selectors []resourceapi.DeviceSelector, driver string, d resourceapi.Device) bool {
	t.Helper()
	for _, selector := range selectors {
		result := cel.GetCompiler(cel.Features{}).CompileCELExpression(selector.CEL.Expression, cel.Options{})
		ok, _, err := result.DeviceMatches(t.Context(), cel.Device{Driver: driver, Attributes: d.Attributes})
		if err != nil {
			t.Fatalf("%s: %v", selector.CEL.Expression, err)
		}
		if !ok {
			return false
		}
	}
	return true
}

// TestMany: as many pairs as the program prints in one claim are allocated at once.
func TestMany(t *testing.T) {
	each(t, func(t *testing.T, s *subject) {
		for n := 1; n <= dra.MaxPairs; n++ {
			claim, template, err := s.claim(t, n)
			if err != nil && n > 1 || template == nil && n == 1 || template != nil && pending(claim, template) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := s.allocate(t, template, sets.New[structured.DeviceID]())
			if len(got) != 2*n {
				t.Errorf("%d pairs: %v", n, got)
				continue
			}
			for i := range n {
				gpu, nic := got[fmt.Sprintf("gpu-%d", i)], got[fmt.Sprintf("nic-%d", i)]
				if level := s.level(t, gpu, nic); !kept(promised(t, template), level) {
					t.Errorf("%d pairs: %s and %s are at %v, promised is %v", n, gpu, nic, level, promised(t, template))
				}
			}
		}
	})
}
