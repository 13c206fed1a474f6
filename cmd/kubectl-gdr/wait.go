package main

import (
	"context"
	"fmt"
	"time"

	"gdr-features/internal/cli"
	"gdr-features/tristate"
)

// Between two looks, while it waits.
const (
	longestPause  = 5 * time.Second
	shortestPause = 100 * time.Millisecond
)

// wait looks until all selected nodes are ready, or the time is over, and prints the last look.
// Once one look has succeeded, it goes on when another fails. One that the end of the time cut off
// tells nothing.
func (p *program) wait(ctx context.Context, a *asked) error {
	limited, cancel := context.WithTimeout(ctx, p.flags.Wait)
	defer cancel()
	pause := min(longestPause, max(shortestPause, p.flags.Wait/20))
	var last *reading
	told := ""
	for {
		r, err := p.look(limited, a)
		cut, waiting := limited.Err() != nil, ""
		switch {
		case err == nil && cut:
			if last == nil { // a look that was cut lacks something that the one before has
				last = &r
			}
		case err == nil:
			last, waiting = &r, a.filter.Waiting(r.all, a.query.Names, &r.cluster)
			if waiting == "" {
				return p.print(a.query.Names, last)
			}
		case last == nil:
			return err
		case !cut:
			waiting = err.Error()
		}
		if waiting != "" && waiting != told {
			told = waiting
			fmt.Fprintln(p.err, waiting)
		}
		select {
		case <-limited.Done():
			fmt.Fprintf(p.err, "not all nodes were ready within %v\n", p.flags.Wait)
			if err := p.print(nil, last); err != nil {
				return err
			}
			return cli.StatusOf(tristate.False)
		case <-time.After(pause):
		}
	}
}
