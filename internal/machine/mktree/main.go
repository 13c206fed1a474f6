// Command mktree lays a machine's description out as a directory that
// `gdr-features --root` reads.
//
//	go run ./internal/machine/mktree testdata/machines/dell-xe9680-h100.txt /tmp/dell [STATE]
package main

import (
	"fmt"
	"os"

	"gdr-features/internal/machine"
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
	m, err := machine.Load(args[0])
	if err != nil {
		return err
	}
	name := "ready"
	if len(args) == 3 {
		name = args[2]
	}
	state, ok := machine.StateNamed(name)
	if !ok {
		return fmt.Errorf("no state %q", name)
	}
	return m.Write(args[1], state)
}
