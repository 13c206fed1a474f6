// Package testsize says how much of a long test one run does. Tests that go over many
// machines or random inputs ask it for their share:
//
//	make test       go test -race -short: some machines, some inputs, with the race detector
//	                go test -short: all machines, some inputs
//	make test-long  go test -race: all of everything
package testsize

import "testing"

// Some gives what a test goes over: all of it, and in a short run under the race
// detector every sixth, the first included.
func Some[T any](all []T) []T {
	if !Partial() {
		return all
	}
	var some []T
	for i := 0; i < len(all); i += 6 {
		some = append(some, all[i])
	}
	return some
}

// Partial tells whether Some leaves anything out. A test that counts what it has seen
// expects less then.
func Partial() bool { return testing.Short() && race }

// Inputs gives how many of n random inputs a test tries: n, in a short run a tenth,
// and under the race detector a thirtieth.
func Inputs(n uint64) uint64 {
	switch {
	case !testing.Short():
		return n
	case race:
		return n/30 + 1
	}
	return n/10 + 1
}
