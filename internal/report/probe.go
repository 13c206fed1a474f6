package report

import (
	"context"
	"errors"
	"fmt"

	"gdr-features/host"
	"gdr-features/internal/deadline"
	"gdr-features/verdict"
)

// Parts of a machine that can be read without the others.
type Parts uint8

// The parts.
const (
	PCI     Parts = 1 << iota // the PCI bus, and with it everything else
	RDMA                      // RDMA devices and their ports
	Drivers                   // modules, symbols, drivers
	All     = PCI | RDMA | Drivers
)

// probe reads one kind of facts on its own: where it hangs, the others are read all the same.
type probe interface {
	// due reports whether it is read with these parts.
	due(parts Parts) bool
	// start starts to read. The function that it returns waits for the result and keeps it. It may
	// be called again with a longer context if there was no answer in time.
	start(ctx context.Context, from known) func(context.Context) error
	// put completes a report with what was last read.
	put(r *Report)
	// again returns the parts to read again, since this one did not answer.
	again() Parts
}

// known is what a probe reads from: a copy, as a read that hangs goes on.
type known struct {
	verdict.Node
	fs      *host.FS
	options Options
}

// part is a probe of facts T, and what it last read.
type part[T any] struct {
	name string // of the facts, for the error of one that does not answer
	with Parts  // it is read if all of these are
	read func(context.Context, *known) (T, error)
	// keep puts facts, or the error in their place, into a report. It returns their problems.
	keep func(*Report, T, error) []error

	one   deadline.Single[T]
	value T
	err   error // it could not be read
	done  bool
}

// row returns a probe, as a row of the table.
func row[T any](name string, with Parts, read func(context.Context, *known) (T, error), keep func(*Report, T, error) []error) *part[T] {
	return &part[T]{name: name, with: with, read: read, keep: keep}
}

func (p *part[T]) due(parts Parts) bool { return parts&p.with == p.with }

func (p *part[T]) start(ctx context.Context, from known) func(context.Context) error {
	wait := p.one.Start(func() (T, error) { return p.read(ctx, &from) })
	return func(ctx context.Context) error {
		p.value, p.err = wait(ctx)
		p.done = true
		if errors.Is(p.err, deadline.ErrTimeout) {
			p.err = fmt.Errorf("%s: %w", p.name, p.err)
		}
		return p.err
	}
}

func (p *part[T]) put(r *Report) {
	problems := p.keep(r, p.value, p.err)
	if p.err != nil {
		r.problem(p.err)
		r.Late = r.Late || errors.Is(p.err, deadline.ErrTimeout)
	}
	r.problem(problems...)
}

func (p *part[T]) again() Parts {
	if p.with == All || !errors.Is(p.err, deadline.ErrTimeout) {
		return 0
	}
	return p.with
}
