package featurefile

import (
	"fmt"
	"strings"
	"time"

	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
)

// expiryDirective says when the labels below it expire (NFD, source/local).
const expiryDirective = "# +expiry-time="

const header = "# Labels of this node for Node Feature Discovery, written by gdr-features run.\n" +
	"# Those below an expiry time are about drivers and links.\n"

// format returns the text of a feature file: hardware labels, which never expire, then state
// labels, which do, each sorted by name.
func format(labels label.Set, expiry time.Time) string {
	var hardware, state strings.Builder
	for _, name := range labels.Names() {
		part := &state
		if nodelabel.Hardware(name) {
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

type file struct {
	labels  label.Set
	expiry  time.Time // of the state labels
	expires bool      // it has an expiry time
}

// parse reads a feature file that format wrote, and ignores everything else in it.
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

func (f file) unexpired(now time.Time) label.Set {
	if f.expiry.After(now) {
		return f.labels
	}
	return nodelabel.HardwareOf(f.labels)
}
