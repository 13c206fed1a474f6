package publish

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// ErrUnconfirmed means that, as far as is known, nothing is to be written, but this
// cannot be confirmed now. It is neither a success nor a failure yet.
var ErrUnconfirmed = errors.New("what is published cannot be confirmed now")

// Limits of the pause between two tries; jitter adds as much again at most.
const (
	// retryLimit is short, to recover soon after an outage.
	retryLimit = 2 * time.Second
	// overloadLimit is long enough for the server to answer any number of nodes that
	// try again.
	overloadLimit = 30 * time.Second
	// denialLimit is for what an administrator has to allow first: thousands of nodes
	// that try every few seconds would be a useless load.
	denialLimit = time.Minute
)

// SlowRetry is an error after which trying again soon does not help, or does harm.
type SlowRetry struct {
	Err   error
	Limit time.Duration // of the pause, without jitter
}

// Error implements error.
func (s *SlowRetry) Error() string { return s.Err.Error() }

// Unwrap returns what went wrong.
func (s *SlowRetry) Unwrap() error { return s.Err }

// Overloaded marks an error of a server that has too much to do.
func Overloaded(err error) error { return &SlowRetry{err, overloadLimit} }

// Denied marks an error that stays the same until an administrator acts: a missing
// permission, a kind that the server does not know.
func Denied(err error) error { return &SlowRetry{err, denialLimit} }

// Backoff has the pauses between the tries of one publisher, by limit: after an
// error with another limit the pause is short again.
type Backoff map[time.Duration]*wait.Backoff

// Next returns the pause after an error: half a second, doubled up to the limit of the
// error, with jitter, so that nodes do not all come back at once.
func (b Backoff) Next(err error) time.Duration {
	limit := retryLimit
	if slow := (*SlowRetry)(nil); errors.As(err, &slow) {
		limit = slow.Limit
	}
	if b[limit] == nil {
		b[limit] = &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: limit}
	}
	return b[limit].Step()
}
