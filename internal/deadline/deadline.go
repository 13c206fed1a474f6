// Package deadline runs reads that may never end: one from a sick device cannot be
// interrupted, only left behind.
package deadline

import (
	"context"
	"errors"
)

// ErrTimeout tells that a part of the machine was not read in time.
var ErrTimeout = errors.New("no answer in time")

// Start runs read beside the caller. The function it gives waits for the result,
// or leaves the read behind with ErrTimeout when the context ends first; it may
// be called again with a longer one.
func Start[T any](read func() (T, error)) func(context.Context) (T, error) {
	type answer struct {
		value T
		err   error
	}
	from := make(chan answer, 1)
	go func() {
		value, err := read()
		from <- answer{value, err}
	}()
	return func(ctx context.Context) (T, error) {
		select {
		case a := <-from:
			return a.value, a.err
		case <-ctx.Done():
		}
		select {
		case a := <-from: // both were there
			return a.value, a.err
		default:
			var none T
			return none, ErrTimeout
		}
	}
}
