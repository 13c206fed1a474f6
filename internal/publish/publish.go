// Package publish defines what the node agent publishes, and what a publisher is.
package publish

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/wait"

	"gdr-features/internal/label"
	"gdr-features/internal/report"
)

// Content is what is to be published.
type Content struct {
	// Labels are without prefix. A node without GPU has none.
	Labels label.Set
	// Report is what the labels follow from. Where it could not read a fact, Labels
	// may have the value published before.
	Report *report.Report
	// BootID is the kernel's random id of this boot; "" where it is unknown.
	BootID string
	// Seen is when the machine was last read.
	Seen time.Time
}

// Publisher makes the labels of a node known to others. Its methods except Changed
// are never called at the same time.
type Publisher interface {
	// Name is a word for logs and metrics.
	Name() string
	// Last returns the labels that are published now, and the boot in which they were
	// published; no labels for nothing. The rest of the content is empty.
	Last(context.Context) (Content, error)
	// Publish makes what is published match the content, and does nothing if it does
	// already. The error is ErrUnconfirmed, or says why publishing failed.
	Publish(context.Context, Content) (wrote bool, err error)
	// Changed receives when others may have changed what is published. It is nil for a
	// publisher that does not notice changes.
	Changed() <-chan struct{}
	// Remove removes everything that was published.
	Remove(context.Context) error
	// Close waits until the consumer has noticed the last publication, if the publisher
	// can know. Nothing is removed.
	Close(context.Context) error
}

// ErrUnconfirmed means that, as far as is known, nothing is to be written, but this
// cannot be confirmed now. It is neither a success nor a failure yet.
var ErrUnconfirmed = errors.New("what is published cannot be confirmed now")

// Limits of the pause between two tries; jitter adds as much again at most.
const (
	// retryLimit is short, to recover soon after an outage.
	retryLimit = 2 * time.Second
	// overloadLimit lets the server answer any number of nodes that try again.
	overloadLimit = 30 * time.Second
	// denialLimit is for what an administrator has to allow first: thousands of nodes
	// that try every few seconds would be a useless load.
	denialLimit = time.Minute
)

// SlowRetry is an error after which trying again soon does not help, or does harm.
type SlowRetry struct {
	error
	limit time.Duration // of the pause, without jitter
}

// Unwrap returns what went wrong.
func (s *SlowRetry) Unwrap() error { return s.error }

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
		limit = slow.limit
	}
	if b[limit] == nil {
		b[limit] = &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: limit}
	}
	return b[limit].Step()
}

// causeInterval is the least time between two causes that are logged: two that
// alternate must not fill the log.
const causeInterval = 10 * time.Second

// Cause remembers the cause that was logged last in a row of failures. The zero
// value is the beginning of a row.
type Cause struct {
	text   string
	logged time.Time
}

// News reports whether a failure is to be logged: it is the first, or has another cause than
// the one logged last. URLs and numbers, such as ports and times, are ignored.
func (c *Cause) News(err error, now time.Time) bool {
	if request := (*url.Error)(nil); errors.As(err, &request) {
		err = request.Err
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, err.Error())
	if c.text == text || !c.logged.IsZero() && now.Sub(c.logged) < causeInterval {
		return false
	}
	c.text, c.logged = text, now
	return true
}
