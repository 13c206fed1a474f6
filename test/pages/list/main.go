// Command list prints the pages of a repository, with their blocks and commands, as JSON: for
// tests in modules that cannot import package pages.
//
//	go run ./test/pages/list .
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"gdr-features/test/pages"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "list:", err)
		os.Exit(1)
	}
}

// block is a block, and the commands in it.
type block struct {
	pages.Block
	Tests, Commands []string
}

// page is a page with such blocks.
type page struct {
	Path   string
	Blocks []block
	Spans  []string
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: list ROOT")
	}
	read, err := pages.All(args[0])
	if err != nil {
		return err
	}
	var all []page
	for _, p := range read {
		listed := page{Path: p.Path, Spans: p.Spans}
		for _, b := range p.Blocks {
			listed.Blocks = append(listed.Blocks, block{b, b.Tests(), b.Commands()})
		}
		all = append(all, listed)
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}
