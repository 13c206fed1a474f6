package snapshot

import (
	"strings"
	"testing"
)

// TestScrubNumbers: garbage where a number belongs stays garbage.
func TestScrubNumbers(t *testing.T) {
	const garbage = "99999999999999999999"
	for name, scrubbed := range map[string]bool{
		"sys/bus/pci/devices/0000:21:00.0/numa_node":      false,
		"sys/bus/pci/devices/0000:21:00.0/max_link_width": false,
		"sys/class/dmi/id/product_name":                   true,
	} {
		tape := &Tape{nodes: map[string]*node{name: {}}}
		c := &tape.nodes[name].content
		c.store([]byte(garbage+"\n"), 0)
		c.finish(c.last())
		tape.Scrub()
		if got := string(tape.nodes[name].content.parts[0].data); (got != garbage+"\n") != scrubbed {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestScrubCommandLine: a command line that is too long is read in vain, and kept for
// its length only.
func TestScrubCommandLine(t *testing.T) {
	const name = "proc/cmdline"
	tape := &Tape{nodes: map[string]*node{name: {}}}
	tape.nodes[name].content.store([]byte(strings.Repeat("password=secret iommu=pt ", 200)[:4097]), 0)
	tape.Scrub()
	if got := string(tape.nodes[name].content.parts[0].data); got != strings.Repeat("x", 4097) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
