package main

import (
	"context"
	"fmt"
	"io"
	"syscall"
	"time"

	"gdr-features/host"
	machine "gdr-features/internal/report"
)

// What the node agent does in an hour when nothing happens: it reads everything every
// minute and the state of ports every second.
const (
	readings = 60
	looks    = 3600
)

// idle is what an hour of the agent costs, in ms of CPU.
type idle struct {
	readings, looks float64
	// bare is the cost of as many runs of bare.
	bare float64
}

// share is the CPU use, in percent of one core.
func (i idle) share() float64 { return (i.readings + i.looks) / time.Hour.Seconds() / 1e3 * 100 }

// idleHour does the readings of an hour back to back, and gives the most expensive of
// three such hours. An agent that sleeps in between wakes with colder caches.
func idleHour(ctx context.Context, tree string, bare *series) (idle, error) {
	fs, err := host.Open(host.Options{Root: tree})
	if err != nil {
		return idle{}, err
	}
	defer fs.Close()
	r := machine.NewReader(fs, machine.ForPublishing)
	if first := r.Read(ctx, machine.All); len(first.Labels) == 0 {
		return idle{}, fmt.Errorf("%s has no labels", tree)
	}
	var worst idle
	for range 3 {
		var now idle
		now.readings = spent(func() {
			for range readings {
				r.Read(ctx, machine.All)
			}
		})
		moved := false
		now.looks = spent(func() {
			for range looks {
				moved = r.PortsMoved(ctx) || moved
			}
		})
		if moved {
			return idle{}, fmt.Errorf("a port in %s has moved", tree)
		}
		if now.share() > worst.share() {
			worst = now
		}
	}
	worst.bare = readings * median(bare.cpu())
	return worst, nil
}

// spent is the CPU time of a function in this process, in ms.
func spent(do func()) float64 {
	before := usage()
	do()
	return usage() - before
}

func usage() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the kernel knows this call
	}
	return float64(time.Duration(u.Utime.Nano()+u.Stime.Nano())) / float64(time.Millisecond)
}

func idleTable(w io.Writer, i idle) {
	fmt.Fprintf(w, "\n%-40s %8s\n", "an idle hour of the agent, 8 GPUs", "CPU ms")
	fmt.Fprintf(w, "%-40s %8.0f\n", fmt.Sprintf("%d readings of everything", readings), i.readings)
	fmt.Fprintf(w, "%-40s %8.0f\n", fmt.Sprintf("%d looks at the ports", looks), i.looks)
	fmt.Fprintf(w, "%-40s %8.0f\n", fmt.Sprintf("for comparison: %d runs of bare", readings), i.bare)
}
