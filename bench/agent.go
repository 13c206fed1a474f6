package main

import (
	"fmt"
	"syscall"
	"testing"
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

// cpuPerOp is the metric of the benchmarks.
const cpuPerOp = "cpu-ns/op"

// idleShare is the CPU time of an idle agent, in percent of a core. One that sleeps between
// its readings wakes with colder caches.
func idleShare(tree string) (float64, error) {
	fs, err := host.Open(host.Options{Root: tree})
	if err != nil {
		return 0, err
	}
	defer fs.Close()
	ns := func(benchmark func(*testing.B, *machine.Reader)) float64 {
		return testing.Benchmark(func(b *testing.B) { benchmark(b, machine.NewReader(fs, machine.ForPublishing)) }).Extra[cpuPerOp]
	}
	all, ports := ns(readAll), ns(lookAtPorts)
	if all == 0 || ports == 0 {
		return 0, fmt.Errorf("the agent cannot read %s", tree)
	}
	return (readings*all + looks*ports) / float64(time.Hour) * 100, nil
}

// readAll reads everything, as the agent does again and again.
func readAll(b *testing.B, r *machine.Reader) {
	read := func() {
		if got := r.Read(b.Context(), machine.All); len(got.Labels) == 0 {
			b.Fatal("no labels")
		}
	}
	read()
	perOp(b, read)
}

// lookAtPorts looks whether the state of a port has changed.
func lookAtPorts(b *testing.B, r *machine.Reader) {
	r.Read(b.Context(), machine.All)
	perOp(b, func() {
		if r.PortsMoved(b.Context()) {
			b.Fatal("a port has moved")
		}
	})
}

// perOp does something again and again and reports its CPU time.
func perOp(b *testing.B, do func()) {
	before := usage()
	for b.Loop() {
		do()
	}
	b.ReportMetric(float64(usage()-before)/float64(b.N), cpuPerOp)
}

func usage() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the kernel knows this call
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
