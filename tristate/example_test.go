package tristate_test

import (
	"fmt"

	"gdr-features/tristate"
)

// One proven false decides, whatever is unknown; an unknown fact never counts as true.
func Example() {
	loaded, linkUp := tristate.Of(true), tristate.Of(false)
	var readable tristate.State // nobody could tell
	fmt.Println(tristate.And(loaded, readable))
	fmt.Println(tristate.And(loaded, readable, linkUp))
	fmt.Println(tristate.Or(loaded, readable))
	fmt.Println(tristate.Not(readable))
	// Output:
	// unknown
	// false
	// true
	// unknown
}
