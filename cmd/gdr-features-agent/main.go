// The agent needs one processor and sleeps most of the time: asking the cgroup
// again and again how many there are would be most of what it does.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command gdr-features-agent is the node agent. It is started by `gdr-features
// run`, whose command line it takes.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// version is set by the linker.
var version string

func main() {
	runtime.GOMAXPROCS(1)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	status := run(ctx, os.Args[1:], time.Now, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
