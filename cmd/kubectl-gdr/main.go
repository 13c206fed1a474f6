// Command kubectl-gdr shows the nodes of a cluster: which can do GPUDirect RDMA, which
// are ready for it, and why the others are not. kubectl runs it for `kubectl gdr`, and
// `gdr-features nodes` executes it in its own place.
package main

import (
	"context"
	"os"
	"time"

	"golang.org/x/term"

	"gdr-features/internal/cli"
)

// version is set by the linker.
var version string

func main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		terminal: term.IsTerminal(int(os.Stderr.Fd())), //nolint:gosec // a file handle
		columns:  cli.Columns(os.Stdout),
		now:      time.Now,
	}))
}
