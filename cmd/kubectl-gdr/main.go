// Command kubectl-gdr shows the nodes of a cluster: which can do GPUDirect RDMA, which
// are ready for it, and why the others are not. kubectl runs it for `kubectl gdr`, and
// `gdr-features nodes` executes it in its own place.
package main

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"gdr-features/internal/terminal"
)

// version is set by the linker.
var version string

// memory in bytes is what the program is to hold before it spends more time on collecting
// garbage, most of which is text of the API server.
const memory = 96 << 20

func main() {
	debug.SetMemoryLimit(memory)
	os.Exit(run(context.Background(), os.Args[1:], streams{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		terminal: terminal.Is(os.Stderr),
		columns:  terminal.Width(os.Stdout),
		now:      time.Now,
	}))
}
