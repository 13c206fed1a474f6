package pci_test

import (
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
)

// A virtual function whose link to its physical one is not there yet, or no longer, is none of
// the machine's NICs or GPUs. One without a physical function here is.
func TestScanUnlinked(t *testing.T) {
	const (
		nic, first, second = "0000:44:00.0", "0000:44:00.2", "0000:45:00.1"
		two                = `
pci0000:40
  0000:40:01.0 port 8086:347a
    0000:44:00.0 eth 15b3:101b
    0000:44:00.1 eth 15b3:101b
    0000:44:00.2 eth 15b3:101c physfn=0000:44:00.0
    0000:44:01.0 eth 15b3:101c physfn=0000:44:00.1
    0000:45:00.1 eth 15b3:101c physfn=0000:44:00.0
`
	)
	// without removes files of the physical function, which VMs and old kernels do not have.
	without := func(files ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, file := range files {
				remove(t, dir, devices+nic+"/sriov_"+file)
			}
		}
	}
	says := func(file, text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { put(t, dir, devices+nic+"/sriov_"+file, text+"\n") }
	}
	all := []func(*testing.T, string){without("totalvfs", "numvfs", "offset", "stride")}
	old := without("offset", "stride")
	tests := []struct {
		name        string
		description string
		unlink      []string
		change      []func(*testing.T, string)
		want        []string
	}{
		{"all linked", two, nil, nil, nil},
		{"the first removed", two, []string{first}, nil, []string{first}},
		{"both removed", two, []string{first, second}, nil, []string{first, second}},
		{"a number that is set last", two, []string{first}, []func(*testing.T, string){says("numvfs", "0")}, []string{first}},
		{"offset of others", two, []string{first}, []func(*testing.T, string){says("offset", "3")}, nil},
		{"stride of others", two, []string{second}, []func(*testing.T, string){says("stride", "2"), says("totalvfs", "512")}, nil},
		{"beyond the last", two, []string{second}, []func(*testing.T, string){says("totalvfs", "1")}, nil},
		{"an old kernel, one removed", two, []string{first}, []func(*testing.T, string){old}, []string{first}},
		{"an old kernel, all removed", two, []string{first, second}, []func(*testing.T, string){old, says("numvfs", "0")}, nil},
		{"no number", two, []string{first}, []func(*testing.T, string){old, says("numvfs", "many")}, []string{first}},
		{"garbage for the offset", two, []string{first}, []func(*testing.T, string){says("offset", "far")}, []string{first}},
		{"no SR-IOV, as in a virtual machine", two, []string{first, second}, all, nil},
		{"a physical function of its own", two, []string{first}, []func(*testing.T, string){
			func(t *testing.T, dir string) { put(t, dir, devices+first+"/sriov_totalvfs", "8\n") },
		}, nil},
		{"GPU", `
pci0000:40
  0000:40:01.0 port 8086:347a
    0000:41:00.0 gpu 10de:20b5
    0000:41:00.4 gpu 10de:20b5 physfn=0000:41:00.0
`, []string{"0000:41:00.4"}, nil, []string{"0000:41:00.4"}},
		{"another place, and another vendor", `
pci0000:40
  0000:40:01.0 port 8086:347a
    0000:44:00.0 eth 15b3:101b
    0000:44:00.3 eth 14e4:1750 physfn=0000:44:00.0
  0000:40:02.0 port 8086:347a
    0000:45:00.1 eth 15b3:101c physfn=0000:44:00.0
`, []string{"0000:44:00.3", second}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, tt.description)
			for _, f := range tt.unlink {
				remove(t, dir, devices+f+"/physfn")
			}
			for _, change := range tt.change {
				change(t, dir)
			}
			inv := scan(t, dir, source.What{})
			var got []string
			for f := range inv.All() {
				if f.Unidentified() {
					got = append(got, f.Address.String())
				}
				if f.Unidentified() == (f.Eligible == pci.Counts) && !f.Bridge() {
					t.Errorf("%v: unidentified %v, eligible %v", f.Address, f.Unidentified(), f.Eligible)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("unidentified (-want +got):\n%s", diff)
			}
			if len(inv.Problems) != len(tt.want) {
				t.Errorf("problems: %v", inv.Problems)
			}
		})
	}
}

// unreadable is a machine on which no link physfn can be read.
type unreadable struct{ host.Source }

func (u unreadable) Link(name string) (string, error) {
	if path.Base(name) == "physfn" {
		return "", host.PathError("readlink", name, unix.EIO)
	}
	return u.Source.Link(name)
}

// Where it is not known whether there is a link, a function alone at its place is a whole one.
func TestScanUnreadPhysFn(t *testing.T) {
	fs := host.New(unreadable{open(t, write(t, switched))}, "/")
	inv, err := pci.Scan(fs, family.Known(), source.What{})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{"0000:18:00.0": false, "0000:19:00.0": true, "0000:19:00.1": true} {
		if f := find(t, &inv, address); f.Unidentified() != want || (f.Eligible == pci.Counts) == want {
			t.Errorf("%s: unidentified %v, eligible %v; want %v", address, f.Unidentified(), f.Eligible, want)
		}
	}
	const physfn = "readlink /" + devices
	wantProblems(t, inv.Problems, physfn+"0000:18:00.0/physfn", physfn+"0000:19:00.0/physfn", physfn+"0000:19:00.1/physfn")
}
