package topology_test

import (
	"fmt"

	"gdr-features/topology"
)

// Levels are ordered: the nearest is the smallest. Unknown is no level and is smaller
// than all.
func ExampleParseLevel() {
	limit, err := topology.ParseLevel("PXB")
	fmt.Println(limit, err)
	for _, level := range []topology.Level{topology.PIX, topology.PXB, topology.PHB} {
		fmt.Println(level, level <= limit)
	}
	_, err = topology.ParseLevel("near")
	fmt.Println(err)
	// Output:
	// PXB <nil>
	// PIX true
	// PXB true
	// PHB false
	// "near" is not a level; levels are PIX, PXB, PHB, NODE and SYS
}
