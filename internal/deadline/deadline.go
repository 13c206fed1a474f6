// Package deadline puts a time limit on reads that may block for ever. A read of a
// faulty device cannot be interrupted; it is left running in its own goroutine.
package deadline

import (
	"context"
	"errors"
)

// ErrTimeout is the error of a read that did not end in time.
var ErrTimeout = errors.New("no answer in time")

// Async starts a read and returns a function that waits for its result. That function
// gives ErrTimeout when the context ends first; it may be called again.
func Async[T any](read func() (T, error)) func(context.Context) (T, error) {
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
		case a := <-from: // both were ready
			return a.value, a.err
		default:
			var none T
			return none, ErrTimeout
		}
	}
}
