// Command ghwpci does no more than ask ghw for the PCI devices of a tree, with
// its defaults, and print how many there are: a baseline of the benchmark.
package main

import (
	"fmt"
	"os"

	"github.com/jaypipes/ghw"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: ghwpci TREE")
		os.Exit(1)
	}
	info, err := ghw.PCI(ghw.WithChroot(os.Args[1]))
	if err != nil {
		fmt.Fprintln(os.Stderr, "ghwpci:", err)
		os.Exit(1)
	}
	fmt.Printf("functions=%d\n", len(info.Devices))
}
