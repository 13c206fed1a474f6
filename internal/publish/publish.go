// Package publish defines what the node agent publishes, and what a publisher is.
package publish

import (
	"context"
	"time"

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
	// Seen is when the machine was last read.
	Seen time.Time
}

// Publisher makes the labels of a node known to others. Its methods except Changed
// are never called at the same time.
type Publisher interface {
	// Name is a word for logs and metrics.
	Name() string
	// Last returns the labels that are published now, without prefix; none where
	// nothing is published.
	Last(context.Context) (label.Set, error)
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
