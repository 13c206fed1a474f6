package featurefile

import (
	"fmt"
	"strings"
	"time"

	"gdr-features/internal/label"
	"gdr-features/internal/nodelabel"
	"gdr-features/internal/publish"
)

// expiryDirective says when the labels below it expire (NFD, source/local).
const expiryDirective = "# +expiry-time="

// bootIDComment says in which boot the file was written. To NFD it is a comment.
const bootIDComment = "# boot-id="

const header = "# Labels of this node for Node Feature Discovery, written by gdr-features run.\n" +
	"# Those below an expiry time are about drivers and links.\n"

// format returns the text of a feature file: hardware labels, which never expire, then state
// labels, which do, each sorted by name.
func format(c publish.Content, expiry time.Time) string {
	var hardware, state strings.Builder
	for _, name := range c.Labels.Names() {
		part := &state
		if nodelabel.Hardware(name) {
			part = &hardware
		}
		fmt.Fprintf(part, "%s%s=%s\n", label.DefaultPrefix, name, c.Labels[name])
	}
	text := header
	if c.BootID != "" {
		text += bootIDComment + c.BootID + "\n"
	}
	text += hardware.String()
	if state.Len() > 0 {
		text += expiryDirective + expiry.UTC().Format(time.RFC3339) + "\n" + state.String()
	}
	return text
}

type file struct {
	labels  label.Set
	bootID  string
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
		if id, ok := strings.CutPrefix(line, bootIDComment); ok {
			f.bootID = id
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
