package dradriver

import (
	"strings"
	"testing"
)

// Every row has what claim needs: a name of its own, attributes with a domain, and
// for NICs the attribute by which those with an RDMA device are selected.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for d := range All() {
		if seen[d.Name] || Find(d.Name) != d {
			t.Errorf("%s: two rows", d.Name)
		}
		seen[d.Name] = true
		if len(d.Addresses) == 0 || (d.GPUs == "") != (d.RDMA != "") {
			t.Errorf("%s: addresses %q, family %q, RDMA %q", d.Name, d.Addresses, d.GPUs, d.RDMA)
		}
		if d.GPUs != "" && OfGPUs(d.GPUs) != d {
			t.Errorf("%s: another driver publishes GPUs of family %s", d.Name, d.GPUs)
		}
		for _, attribute := range append(d.Addresses, d.RDMA, d.RDMADevice) {
			if domain, name, _ := strings.Cut(attribute, "/"); attribute != "" && (domain == "" || name == "" || strings.Contains(name, "/")) {
				t.Errorf("%s: attribute %q", d.Name, attribute)
			}
		}
	}
	if len(seen) == 0 || Find("no.such.driver") != nil || OfGPUs("") != nil {
		t.Errorf("drivers: %v", seen)
	}
}
