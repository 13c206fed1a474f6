// Command mktree writes a machine's description as a directory that
// `gdr-features --root` reads.
//
//	go run ./test/machine/mktree testdata/machines/dell-xe9680-h100.txt /tmp/dell [STATE]
package main

import (
	"fmt"
	"os"

	"gdr-features/test/machine"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mktree:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 || len(args) > 3 {
		return fmt.Errorf("usage: mktree MACHINE.txt DIRECTORY [STATE]")
	}
	state := "ready"
	if len(args) == 3 {
		state = args[2]
	}
	return machine.LayOut(args[0], state, args[1])
}
