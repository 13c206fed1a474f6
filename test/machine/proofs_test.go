package machine

import (
	"testing"

	"gdr-features/source/family"
)

// Every family that is judged has proofs of its own.
func TestProofs(t *testing.T) {
	known := family.Known()
	for _, n := range known.NICs {
		if _, ok := nicProofs[n.Name]; !ok {
			t.Errorf("%s has no row in nicProofs", n.Name)
		}
	}
	for _, g := range known.GPUs {
		if _, ok := gpuProofs[g.Name]; !ok {
			t.Errorf("%s has no row in gpuProofs", g.Name)
		}
	}
}
