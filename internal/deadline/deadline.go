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

// Single runs reads of one kind, never two at the same time: while one is stuck, the
// next ones fail at once. So reading a faulty machine again and again leaves at most
// one goroutine behind. (x/sync/singleflight would give a later caller the stuck
// read's result, which is old by then.) The zero value is ready.
type Single[T any] struct{ last chan struct{} } // closed when the last read has ended

// Start starts a read as Async does. While an earlier one is stuck, it starts none, and the
// function that it returns gives ErrTimeout. It may not be called from two goroutines at the
// same time.
func (o *Single[T]) Start(read func() (T, error)) func(context.Context) (T, error) {
	ended := make(chan struct{})
	if o.last != nil {
		select {
		case <-o.last:
		default:
			return func(context.Context) (none T, err error) { return none, ErrTimeout }
		}
	}
	o.last = ended
	return Async(func() (T, error) {
		defer close(ended)
		return read()
	})
}
