package pci_test

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jaypipes/ghw"

	"gdr-features/source/pci"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
)

// seen is what both readers tell of a function.
type seen struct {
	IDs, Class, Driver, Parent string
	NUMA, IOMMUGroup           int
}

// ghw reads the same directory in a way of its own. Where the two differ, one of
// them is wrong.
func TestAgainstGHW(t *testing.T) {
	t.Setenv("PCIDB_PATH", os.DevNull) // names do not matter here
	for _, m := range testsize.Share(machine.All(t, "../../testdata/machines")) {
		t.Run(m.Name, func(t *testing.T) {
			dir := m.Tree(t, m.Ready())
			want := byGHW(t, dir)
			inv := scan(t, dir, everything)
			wantProblems(t, inv.Problems)
			got := map[string]seen{}
			for i := range inv.Functions {
				f := &inv.Functions[i]
				s := seen{
					IDs:    fmt.Sprintf("%04x:%04x", f.Vendor, f.Device),
					Class:  fmt.Sprintf("%02x:%02x", f.Class>>16, f.Class>>8&0xff),
					Driver: f.Driver, NUMA: f.NUMA, IOMMUGroup: f.IOMMUGroup,
				}
				if n := len(f.Bridges); n > 0 {
					s.Parent = f.Bridges[n-1].String()
				}
				got[f.Address.String()] = s
			}
			if len(got) != len(m.Functions) {
				t.Errorf("%d functions, %d in the description", len(got), len(m.Functions))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("functions (-ghw +scan):\n%s", diff)
			}
		})
	}
}

func byGHW(t *testing.T, dir string) map[string]seen {
	t.Helper()
	// Without topology ghw takes every machine for one without NUMA.
	info, err := ghw.PCI(ghw.WithChroot(dir), ghw.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]seen{}
	for _, d := range info.Devices {
		s := seen{
			IDs: d.Vendor.ID + ":" + d.Product.ID, Class: d.Class.ID + ":" + d.Subclass.ID,
			Driver: d.Driver, Parent: d.ParentAddress, NUMA: pci.None, IOMMUGroup: pci.None,
		}
		if d.Node != nil {
			s.NUMA = d.Node.ID
		}
		if d.IOMMUGroup != "" {
			if s.IOMMUGroup, err = strconv.Atoi(d.IOMMUGroup); err != nil {
				t.Fatal(err)
			}
		}
		functions[d.Address] = s
	}
	return functions
}
