package report_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gdr-features/host"
	"gdr-features/internal/expect"
	"gdr-features/internal/report"
	"gdr-features/source"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/tristate"
)

const fullLinks = `
types:
- name: any
  match:
    product: "*"
  expect:
    gpus:
      count: 1
      pcie: full
    nics:
      count: 1
      pcie: full
`

// degradedLinks reads a machine and gives the links of cards that check reports as
// degraded, and the result of expecting full links.
func degradedLinks(t *testing.T, dir string) (found, unexpected []string, expected tristate.State) {
	t.Helper()
	file, err := expect.Parse([]byte(fullLinks))
	if err != nil {
		t.Fatal(err)
	}
	fs, err := host.Open(host.Options{Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	r := report.Collect(t.Context(), fs, report.Options{What: report.ForCheck.What, Expect: func() (*expect.File, error) { return file, nil }})
	for _, f := range r.Findings {
		if f.Code == "LinkDegraded" && !strings.HasPrefix(f.Detail, "the link between ") { // links of cards come first
			found = append(found, f.Detail)
		}
	}
	expected = tristate.True
	for _, c := range r.Expected.Checks {
		if !strings.HasSuffix(c.Name, ".pcie") {
			continue
		}
		expected = tristate.And(expected, c.State)
		if c.State == tristate.False {
			unexpected = append(unexpected, c.Found)
		}
	}
	return found, unexpected, expected
}

// The card's own switch is between a BlueField and its slot: the link of the slot
// is judged.
func TestLinkOfCardWithSwitch(t *testing.T) {
	m, err := machine.Load(filepath.Join(machinesDir, "bluefield3-l40s.txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := m.Tree(t, state(t, "ready"))
	found, unexpected, _ := degradedLinks(t, dir)
	if found != nil || unexpected != nil {
		t.Errorf("full links: found %q, unexpected %q", found, unexpected)
	}
	link(t, dir, "0000:19:00.0", "current_link_width", "4")
	found, unexpected, _ = degradedLinks(t, dir)
	if got := fmt.Sprint(found); got != "[rocep27s0f0 0000:1b:00.0 runs at x4 of x16, which leaves 126 of 504 Gbit/s]" {
		t.Errorf("found %s", got)
	}
	if got := fmt.Sprint(unexpected); got != "[0000:1b:00.0 x4 of x16 at 0000:19:00.0, 0000:1b:00.1 x4 of x16 at 0000:19:00.0]" {
		t.Errorf("unexpected %s", got)
	}
}

// A link that check reports as degraded violates the expectation of full links, and
// a proven violation is reported by check, whatever the links show.
func TestLinksAreJudgedAlike(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 1))
	degraded := 0
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		dir := m.Tree(t, state(t, "ready"))
		if r := collect(t, dir, source.What{}); r.Verdict.Capable != tristate.True {
			continue // its links are no finding
		}
		for range 8 {
			for i := range m.Functions {
				for file, values := range map[string][]string{
					"current_link_width": {"4", "16", "16", "16"}, "max_link_width": {"8", "16", "16", "0"},
					"current_link_speed": {"16.0 GT/s PCIe", "32.0 GT/s PCIe", "32.0 GT/s PCIe"}, "max_link_speed": {"32.0 GT/s PCIe", "32.0 GT/s PCIe", "Unknown"},
				} {
					link(t, dir, m.Functions[i].Address, file, values[random.IntN(len(values))])
				}
			}
			found, unexpected, expected := degradedLinks(t, dir)
			if found != nil && expected == tristate.True || found == nil && unexpected != nil {
				t.Errorf("%s: found %q, unexpected %q, as expected: %v", m.Name, found, unexpected, expected)
			}
			degraded += len(found)
		}
	}
	if degraded < 20 && !testsize.Partial() {
		t.Errorf("only %d machines with degraded links", degraded)
	}
}

// link writes a file of a function's link.
func link(t *testing.T, dir, address, file, value string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "sys/bus/pci/devices", address, file), []byte(value+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
