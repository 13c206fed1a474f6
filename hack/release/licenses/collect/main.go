// Command collect prints the licenses of everything that is linked into the programs of
// this repository, and fails if one of them may not be linked.
//
//	go run ./licenses/collect [-C REPOSITORY] [-platforms linux/amd64,linux/arm64] PACKAGE...
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"gdr-features/hack/release/licenses"
)

func main() {
	directory := flag.String("C", "../..", "directory of the repository")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64", "for which platforms")
	flag.Parse()
	modules, err := licenses.Collect(*directory, strings.Split(*platforms, ","), flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = os.Stdout.Write(licenses.Text(modules))
}
