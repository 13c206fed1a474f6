package monitor_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPages: the table in docs/administrator.md has the metrics that are served, with their labels,
// and no others; deploy/monitoring tells the limit that TestSeries holds.
func TestPages(t *testing.T) {
	served := map[string]bool{"gdr_pair_level{gpu,nic,rdma,level}": true} // only with --metrics-pairs
	kept, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	value := regexp.MustCompile(`="[^"]*"`)
	for line := range strings.Lines(string(kept)) {
		name := value.ReplaceAllString(line[:strings.LastIndexByte(line, ' ')], "")
		served[strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")] = true // those of a histogram
	}
	page, err := os.ReadFile("../../docs/administrator.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	_, table, _ := strings.Cut(string(page), "| metric | value |")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			listed[name[1]] = true
		}
	}
	for name := range served {
		if !listed[name] {
			t.Errorf("docs/administrator.md, What the agent watches: no row for %s", name)
		}
	}
	for name := range listed {
		if !served[name] {
			t.Errorf("docs/administrator.md: %s is not served, or testdata/metrics.txt has no example of it", name)
		}
	}
	monitoring, err := os.ReadFile("../../deploy/monitoring/README.md")
	if says := fmt.Sprintf("at most %d series", maxSeries); err != nil || !strings.Contains(string(monitoring), says) {
		t.Errorf("deploy/monitoring/README.md does not say %q, error %v", says, err)
	}
}
