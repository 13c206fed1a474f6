package dra

import (
	"strings"
	"testing"
)

// Every row has what claim needs: a name of its own, attributes with a domain, and
// for NICs the attribute by which those with an RDMA device are selected.
func TestDrivers(t *testing.T) {
	seen, families := map[string]bool{}, map[string]bool{}
	for _, d := range drivers {
		if seen[d.name] || *find(d.name) != d {
			t.Errorf("%s: two rows", d.name)
		}
		seen[d.name] = true
		if d.address == "" || (d.gpus == "") != (d.rdma != "") {
			t.Errorf("%s: address %q, family %q, RDMA %q", d.name, d.address, d.gpus, d.rdma)
		}
		if d.gpus != "" && families[d.gpus] {
			t.Errorf("%s: another driver publishes GPUs of family %s", d.name, d.gpus)
		}
		families[d.gpus] = true
		for _, attribute := range []string{d.address, d.rdma, d.virtual} {
			if domain, name, _ := strings.Cut(attribute, "/"); attribute != "" && (domain == "" || name == "" || strings.Contains(name, "/")) {
				t.Errorf("%s: attribute %q", d.name, attribute)
			}
		}
	}
	if len(seen) == 0 || find("no.such.driver") != nil {
		t.Errorf("drivers: %v", seen)
	}
}
