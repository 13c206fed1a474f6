// Command gdr-features-agent is the node agent, into which `gdr-features run` turns.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// version is set by the linker.
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	status := run(ctx, os.Args[1:], time.Now, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
