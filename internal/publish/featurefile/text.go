package featurefile

import (
	"fmt"
	"strings"
	"time"

	"gdr-features/internal/label"
)

// expiryDirective ends the life of the labels below it (NFD, source/local).
const expiryDirective = "# +expiry-time="

const header = "# Labels of this node for Node Feature Discovery, written by gdr-features run.\n" +
	"# Those below an expiry time are about drivers and links.\n"

// format writes a feature file: hardware labels, which never expire, then the
// others, which do. The names in each part are sorted.
func format(labels label.Set, expiry time.Time) string {
	var hardware, state strings.Builder
	for _, name := range labels.Names() {
		part := &state
		if label.Hardware(name) {
			part = &hardware
		}
		fmt.Fprintf(part, "%s%s=%s\n", label.DefaultPrefix, name, labels[name])
	}
	text := header + hardware.String()
	if state.Len() > 0 {
		text += expiryDirective + expiry.UTC().Format(time.RFC3339) + "\n" + state.String()
	}
	return text
}

// file is what a feature file says.
type file struct {
	labels label.Set
	// expiry is when the state labels expire, if anything does.
	expiry  time.Time
	expires bool
}

// parse reads a feature file that format wrote. It passes over everything else,
// so that what somebody put into it does no harm.
func parse(text string) file {
	f := file{labels: label.Set{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if at, ok := strings.CutPrefix(line, expiryDirective); ok {
			f.expires = true
			f.expiry, _ = time.Parse(time.RFC3339, at)
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		if name, ok := label.Parse(key, value); ok {
			f.labels[name] = value
		}
	}
	return f
}

// alive gives the labels that have not expired.
func (f file) alive(now time.Time) label.Set {
	labels := label.Set{}
	for name, value := range f.labels {
		if label.Hardware(name) || f.expiry.After(now) {
			labels[name] = value
		}
	}
	return labels
}
