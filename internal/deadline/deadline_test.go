package deadline

import (
	"context"
	"errors"
	"testing"
)

func TestStart(t *testing.T) {
	failure := errors.New("broken")
	wait := Async(func() (int, error) { return 7, failure })
	if got, err := wait(t.Context()); got != 7 || !errors.Is(err, failure) {
		t.Errorf("%d, %v", got, err)
	}

	ended, end := context.WithCancel(t.Context())
	end()
	hang := make(chan struct{})
	wait = Async(func() (int, error) { <-hang; return 1, nil })
	if got, err := wait(ended); got != 0 || !errors.Is(err, ErrTimeout) {
		t.Errorf("left behind: %d, %v", got, err)
	}
	close(hang)
	if got, err := wait(t.Context()); got != 1 || err != nil {
		t.Errorf("asked again: %d, %v", got, err)
	}
}

// Single leaves at most one read behind, and reads again once that has ended.
func TestSingle(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	var o Single[int]
	hang := make(chan struct{})
	started := 0
	for range 3 {
		if _, err := o.Start(func() (int, error) { started++; <-hang; return 1, nil })(ended); !errors.Is(err, ErrTimeout) {
			t.Errorf("stuck: %v", err)
		}
	}
	close(hang)
	for {
		got, err := o.Start(func() (int, error) { return 2, nil })(t.Context())
		if errors.Is(err, ErrTimeout) {
			continue // the first is on its way back
		}
		if got != 2 || err != nil {
			t.Errorf("afterwards: %d, %v", got, err)
		}
		break
	}
	if started != 1 {
		t.Errorf("%d reads were stuck at the same time", started)
	}
}
