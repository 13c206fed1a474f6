// Package publish is what the node agent publishes and how it is published.
package publish

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"gdr-features/internal/label"
	"gdr-features/internal/report"
)

// Content is what is to be published.
type Content struct {
	// Labels are without prefix. A node without GPU has none.
	Labels label.Set
	// Report is what they follow from. Where a fact could not be read, Labels
	// may know more, from before.
	Report *report.Report
	// Seen is when the machine was last read.
	Seen time.Time
}

// Refusal is an error that will be the same the next time unless somebody steps
// in: a missing right, a kind that nobody knows. There is no hurry to try again.
type Refusal struct{ Err error }

// Error implements error.
func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap gives what was refused.
func (r *Refusal) Unwrap() error { return r.Err }

// Busy is an error of a server that is there and has too much to do. Asking it
// again at once would make that worse.
type Busy struct{ Err error }

// Error implements error.
func (b *Busy) Error() string { return b.Err.Error() }

// Unwrap gives what went wrong.
func (b *Busy) Unwrap() error { return b.Err }

// ErrUnconfirmed tells that nothing is to be written, as far as is known, and that
// nobody has answered for a moment who would know better. That is no success, and
// not yet a failure.
var ErrUnconfirmed = errors.New("what is published is not confirmed")

// Patience is how long to wait after failures: up to four seconds with jitter, so
// that things are right again soon after an outage, and not all nodes come at
// once.
func Patience() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 3, Cap: 2 * time.Second}
}

// Deference is how long to wait while the server is busy: up to a minute, so that
// any number of nodes that all want something at once come to ask no more often
// than they can be answered.
func Deference() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 7, Cap: 30 * time.Second}
}

// Resignation is how long to wait after refusals: up to two minutes, since
// thousands of nodes that ask every few seconds for what is not allowed are a load
// that helps nobody.
func Resignation() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 8, Cap: time.Minute}
}

// Publisher shows the labels of a node to others. Its methods are not called at
// the same time, but for Changed.
type Publisher interface {
	// Name is a word for logs and metrics.
	Name() string
	// Last gives the labels that are published now, without prefix: none where
	// nothing is.
	Last(context.Context) (label.Set, error)
	// Publish makes what is published what it should be, and does nothing where
	// it is that. The error tells why it could not, where trying again may help, or
	// is ErrUnconfirmed.
	Publish(context.Context, Content) (wrote bool, err error)
	// Changed receives something when what is published may have been changed
	// by somebody else. Nil for a publisher that does not notice.
	Changed() <-chan struct{}
	// Remove takes everything away that was published.
	Remove(context.Context) error
	// Close waits until what was published has reached the others as far as
	// this publisher cares for it. Nothing is taken away.
	Close(context.Context) error
}
