package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
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
	// bare is the cost of the same in C: as many runs of bare, and one of life that
	// looks as often.
	bare float64
}

// share is the CPU use, in percent of one core.
func (i idle) share() float64 { return (i.readings + i.looks) / time.Hour.Seconds() / 1e3 * 100 }

// times is the cost of the hour relative to bare.
func (i idle) times() float64 { return (i.readings + i.looks) / i.bare }

// hours is how many idle hours are measured.
const hours = 5

// idleHours does the readings of some hours back to back, in turns with the same in C:
// whatever slows the machine down slows down both. An agent that sleeps in between wakes
// with colder caches.
func idleHours(ctx context.Context, bin binaries, tree string, bare *series) ([]idle, error) {
	fs, err := host.Open(host.Options{Root: tree})
	if err != nil {
		return nil, err
	}
	defer fs.Close()
	r := machine.NewReader(fs, machine.ForPublishing)
	if first := r.Read(ctx, machine.All); len(first.Labels) == 0 {
		return nil, fmt.Errorf("%s has no labels", tree)
	}
	life := &series{name: "life", argv: []string{bin.life, tree, fmt.Sprint(looks)}, want: "ports="}
	var all []idle
	for range hours {
		var now idle
		for range readings {
			c, err := bare.once(ctx, bin.launch)
			if err != nil {
				return nil, err
			}
			now.bare += c.cpu
		}
		c, err := life.once(ctx, bin.launch)
		if err != nil {
			return nil, err
		}
		now.bare += c.cpu
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
			return nil, fmt.Errorf("a port in %s has moved", tree)
		}
		all = append(all, now)
	}
	return all, nil
}

// middle is the hour with the median of the ratios to bare.
func middle(all []idle) idle {
	return slices.SortedFunc(slices.Values(all), func(a, b idle) int { return cmp.Compare(a.times(), b.times()) })[len(all)/2]
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
	fmt.Fprintf(w, "%-40s %8.0f\n", "for comparison: the same in C", i.bare)
}
