// Package journal is what changed on a node lately: its labels and the codes of its findings. The
// agent keeps it in an annotation of the node's NodeFeature, kubectl-gdr prints it. This package
// is pure, and kubectl-gdr uses it on any system.
package journal

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// Annotation is the key of the annotation that holds the journal, as JSON.
	Annotation = "gdr-features/journal"
	// Most is how many changes are kept.
	Most = 20
	// MostBytes is how long the annotation may be.
	MostBytes = 4096
)

// Change is one change. Name is a label without prefix (gdr.rate), or the code of a finding
// (LinkDegraded), whose values are statuses (WARN). "" is no value: the label or finding is new
// or gone.
type Change struct {
	Time time.Time `json:"time"`
	Name string    `json:"name"`
	Old  string    `json:"old,omitempty"`
	New  string    `json:"new,omitempty"`
}

// Between returns the changes from some values to others at a time, sorted by name. "" is no value.
func Between(was, is map[string]string, at time.Time) (changes []Change) {
	all := map[string]string{}
	maps.Copy(all, was)
	maps.Copy(all, is)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if was[name] != is[name] {
			changes = append(changes, Change{at.UTC().Truncate(time.Second), name, was[name], is[name]})
		}
	}
	return changes
}

// Encode returns the value of the annotation for changes, oldest first. The oldest are left out
// where they are too many, or too long.
func Encode(changes []Change) string {
	changes = changes[max(0, len(changes)-Most):]
	for ; len(changes) > 0; changes = changes[1:] {
		// Neither a time of these years nor a string can fail to encode.
		if text, err := json.Marshal(changes); err == nil && len(text) <= MostBytes {
			return string(text)
		}
	}
	return "[]"
}

// Decode returns the changes of the annotation's value, oldest first. It is an error if the value
// is too long, or was not written by Encode.
func Decode(value string) ([]Change, error) {
	if value == "" {
		return nil, nil
	}
	if len(value) > MostBytes {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", Annotation, len(value), MostBytes)
	}
	var changes []Change
	if err := json.Unmarshal([]byte(value), &changes); err != nil {
		return nil, fmt.Errorf("%s: %w", Annotation, err)
	}
	return changes[max(0, len(changes)-Most):], nil
}
