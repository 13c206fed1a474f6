//go:build nccl

package nccl

import (
	"slices"
	"testing"

	"gdr-features/internal/rooms/assign"
	"gdr-features/test/machine"
	"gdr-features/topology"
)

// elsewhere are machines on which NCCL goes by other places than ours.
var elsewhere = map[string]string{
	"broadcom-nested": "both levels of a Broadcom chip are one switch to NCCL",
	"oke-gb200-v3":    "NCCL takes a data-direct function for the NIC, and only the first port of a card has one there",
	"vmd-domain":      "NCCL cuts addresses with a domain of five digits",
}

// TestNear: NCCL's own code may use, for each GPU, exactly the NICs near it, if it is told of
// those that are for GPUs, at their rates. It does not tell NODE from PHB, so that farther ones
// come with those.
func TestNear(t *testing.T) {
	gpus, told := 0, false
	for _, described := range machine.All(t, machinesDir) {
		t.Run(described.Name, func(t *testing.T) {
			differs := 0
			root := described.Tree(t, described.Ready())
			addBuses(t, root)
			r := collect(t, root, nil)
			m := assign.NewMachine(&r.Node, func(string) bool { return true })
			q := question{root: root, rates: map[int]int{}}
			for i := range r.Matrix.NICs {
				if nic := m.Usable(i); nic != nil && nic.Aside == "" && left(&r.Matrix.NICs[i]) == "" {
					q.rates[i] = int(nic.RateGbps * 1000)
				}
			}
			if len(q.rates) == 0 || len(r.Matrix.GPUs) == 0 {
				return
			}
			a := ask(t, &r, q)
			if a.fails != "" {
				t.Fatalf("NCCL fails: %s", a.fails)
			}
			if told = told || a.local != nil; a.local == nil {
				t.SkipNow()
			}
			for _, c := range m.Assign(m.EveryGPU(), nil).Choices {
				var near []string
				for _, nic := range c.Near {
					near = append(near, nic.RDMA)
				}
				local := a.local[c.GPU.Address.String()]
				slices.Sort(near)
				slices.Sort(local)
				farther := slices.ContainsFunc(near, func(name string) bool { return !slices.Contains(local, name) })
				if gpus++; slices.Equal(near, local) || !farther && c.Level == topology.PHB {
					continue
				}
				if differs++; elsewhere[described.Name] == "" {
					t.Errorf("%v at %v: %q, NCCL %q", c.GPU.Address, c.Level, near, local)
				}
			}
			if differs == 0 && elsewhere[described.Name] != "" {
				t.Error("NCCL agrees: take the machine out of the list")
			}
		})
	}
	if !told {
		t.Skip("NCCL_ORACLE does not answer with lines local (README.md)")
	}
	t.Logf("%d GPUs", gpus)
}
