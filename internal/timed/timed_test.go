package timed

import (
	"context"
	"errors"
	"testing"
)

func TestStart(t *testing.T) {
	failure := errors.New("broken")
	wait := Start(func() (int, error) { return 7, failure })
	if got, err := wait(t.Context()); got != 7 || !errors.Is(err, failure) {
		t.Errorf("%d, %v", got, err)
	}

	ended, end := context.WithCancel(t.Context())
	end()
	hang := make(chan struct{})
	wait = Start(func() (int, error) { <-hang; return 1, nil })
	if got, err := wait(ended); got != 0 || !errors.Is(err, ErrNoAnswer) {
		t.Errorf("left behind: %d, %v", got, err)
	}
	close(hang)
	if got, err := wait(t.Context()); got != 1 || err != nil {
		t.Errorf("asked again: %d, %v", got, err)
	}
}
