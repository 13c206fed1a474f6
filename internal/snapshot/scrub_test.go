package snapshot

import "testing"

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
