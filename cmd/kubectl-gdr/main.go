// Command kubectl-gdr shows the nodes of a cluster: which can do GPUDirect RDMA,
// which do, and why the others do not. kubectl runs it for `kubectl gdr`, and
// `gdr-features nodes` becomes it.
package main

import (
	"context"
	"os"
	"time"

	"golang.org/x/term"
)

// version is set by the linker.
var version string

func main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{
		out: os.Stdout, err: os.Stderr,
		terminal: term.IsTerminal(int(os.Stderr.Fd())), //nolint:gosec // a file handle
		now:      time.Now,
	}))
}
