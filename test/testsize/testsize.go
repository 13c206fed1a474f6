// Package testsize says how much of a long test one run does. Tests of many machines
// or random inputs ask it for their share:
//
//	make test       go test -race -short: some machines, some inputs, with the race detector
//	                go test -short of these tests alone: all machines, some inputs
//	hack/check.sh long  go test -race: all of everything
//
// hack/test.sh finds these tests by their calls of Share, Partial and Inputs, which must be
// in the test function itself.
package testsize

import "testing"

// Share returns the cases of a test: all of them, or in a short run under the race
// detector every sixteenth, starting with the first.
func Share[T any](all []T) []T {
	if !Partial() {
		return all
	}
	return every(16, all, 0)
}

// Few returns the cases of a test in which each is much like the next: all of them, or in
// a short run every eighth, starting with the first.
func Few[T any](all []T) []T { return FewInTurn(0, all) }

// FewInTurn is Few for the nth round of a loop: eight rounds together have all cases, and each has
// one at least.
func FewInTurn[T any](n int, all []T) []T {
	if !testing.Short() {
		return all
	}
	return every(8, all, n%max(1, min(8, len(all))))
}

func every[T any](nth int, all []T, from int) []T {
	var some []T
	for i := from; i < len(all); i += nth {
		some = append(some, all[i])
	}
	return some
}

// Race reports whether the race detector is on, with which programs need several times the memory.
func Race() bool { return race }

// Partial reports whether Share leaves anything out. A test that counts what it has
// seen expects less then.
func Partial() bool { return testing.Short() && race }

// Inputs returns how many of n random inputs a test tries: n, in a short run a tenth,
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
