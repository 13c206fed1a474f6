// Command gdr-features reports whether a machine can do GPUDirect RDMA, whether it is
// ready for it now, and how close its GPUs and NICs are to each other, from /sys and
// /proc alone. It prints labels for Node Feature Discovery, and tables for people.
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"gdr-features/internal/cli/machineflags"
	"gdr-features/internal/terminal"
)

// version is set by the linker; see cli.Version.
var version string

func main() {
	// A run takes milliseconds, and one thread at a time has work. With 1, Go takes a thread that
	// reads a file for blocked after 20 µs, and wakes another.
	runtime.GOMAXPROCS(2)
	// Most runs need less than 8 MB and end before the first collection of garbage.
	debug.SetGCPercent(200)
	os.Exit(run(context.Background(), os.Args[1:], streams{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		terminal: terminal.Is(os.Stdout),
		columns:  terminal.Width(os.Stdout),
		color:    terminal.Colors(terminal.Is(os.Stdout), os.Getenv),
		exit:     os.Exit,
		become:   become,
		now:      time.Now,
		limit:    machineflags.ReadLimit,
	}))
}
