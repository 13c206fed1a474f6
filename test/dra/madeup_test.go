package dra_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gdr-features/test/machine"
)

// madeUp is how many machines are made up beside the described ones.
const madeUp = 40

// makeUp makes up a machine: GPUs and NICs of several families, eligible or not, and virtual
// functions, on up to four root buses, each with and without a NUMA node, behind VMBus or VMD,
// in domains of four and five digits. The same seed gives the same machine.
func makeUp(t *testing.T, seed uint64) *machine.Machine {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0)) // the same each time
	oneOf := func(all ...string) string { return all[r.IntN(len(all))] }
	gpus := []string{"gpu 10de:2330", "gpu 10de:20b2", "vga 10de:2684"}
	if r.IntN(4) == 0 {
		gpus = []string{"accel 1002:74a1", "accel 1002:74a1", "vga 1002:744c"}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "nodes %d\n", 1+r.IntN(2))
	names := 0
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	rdma := func() string {
		names++
		return fmt.Sprintf("rdma=dev_%d", names)
	}
	for root := range 1 + r.IntN(4) {
		domain, bus := oneOf("0000", "0000", "0001", "10000"), 0x10*(root+1)
		line("pci%s:%02x numa=%d %s", domain, bus, r.IntN(3)-1,
			oneOf("", "", fmt.Sprintf("path=ACPI0004:00/MSFT1000:00/00000000-%04x", root), "path=pci0000:f0/0000:f0:05.5"))
		line("  %s:%02x:01.0 port 8086:352a", domain, bus)
		for slot := range r.IntN(5) {
			at, numa := fmt.Sprintf("%s:%02x:%02x", domain, bus+1, slot), oneOf("", "", "", fmt.Sprintf("numa=%d", r.IntN(3)-1))
			if r.IntN(2) == 0 {
				names++
				line("    %s.0 %s name=GPU%d %s", at, oneOf(gpus...), names, numa)
				continue
			}
			nic := oneOf("ib 15b3:1021", "eth 15b3:1021", "eth 8086:1593", "eth 1d0f:efa1", "eth 14e4:1760")
			line("    %s.0 %s %s %s", at, nic, rdma(), numa)
			if nic == "eth 15b3:1021" && r.IntN(2) == 0 {
				line("    %s.1 eth 15b3:101e physfn=%s.0 %s %s", at, at, rdma(), numa)
			}
		}
	}
	m, err := machine.Parse(text.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	m.Name = fmt.Sprintf("made-up-%d", seed)
	return m
}
