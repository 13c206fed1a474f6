package pci_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gdr-features/host"
	"gdr-features/source"
	"gdr-features/source/family"
	"gdr-features/source/pci"
)

const switchLinks = "sys/kernel/pci_switch_link/virtual_switch_links"

// linksUnread is a machine on which one directory of the links in switches gives an error.
type linksUnread struct {
	host.Source
	dir string
	err error
}

func (l linksUnread) Names(name string) ([]string, error) {
	if name == l.dir {
		return nil, host.PathError("open", name, l.err)
	}
	return l.Source.Names(name)
}

// TestScanSwitchLinksUnread: an unreadable directory costs the links, and is a problem; one that
// is not there is none.
func TestScanSwitchLinksUnread(t *testing.T) {
	t.Parallel()
	const from, to = "0000:8b:00.0", "0000:ad:00.0"
	const partitions = `
pci0000:8a numa=0
  0000:8a:01.0 port 8086:352a
    ` + from + ` switch 1000:c030 link=` + to + `
pci0000:ac numa=0
  0000:ac:01.0 port 8086:352a
    ` + to + ` switch 1000:c030 link=` + from + `
`
	for _, tt := range []struct {
		name, dir      string
		err            error
		there, andBack int // links of each switch
		unread         bool
	}{
		{"both", "", nil, 1, 1, false},
		{"no permission for the directory", switchLinks, unix.EACCES, 0, 0, true},
		{"no permission for one switch", switchLinks + "/" + from, unix.EACCES, 0, 1, true},
		{"an error of the driver", switchLinks, unix.EIO, 0, 0, true},
		{"no such driver", switchLinks, unix.ENOENT, 0, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := host.New(linksUnread{open(t, write(t, partitions)), tt.dir, tt.err}, "/")
			inv, err := pci.Scan(fs, family.Known(), source.What{})
			if err != nil {
				t.Fatal(err)
			}
			there, andBack := find(t, &inv, from).SwitchLinks, find(t, &inv, to).SwitchLinks
			if len(there) != tt.there || len(andBack) != tt.andBack || inv.SwitchLinksUnread != tt.unread {
				t.Errorf("links %v and %v, unread %t; want %d and %d, %t", there, andBack, inv.SwitchLinksUnread, tt.there, tt.andBack, tt.unread)
			}
			var problems []string
			if errors.Is(tt.err, unix.EACCES) || errors.Is(tt.err, unix.EIO) {
				problems = []string{"open /" + tt.dir}
			}
			wantProblems(t, inv.Problems, problems...)
		})
	}
}

// lineUnread is a machine on which one file gives an error.
type lineUnread struct {
	host.Source
	file string
	err  error
}

func (l lineUnread) Open(name string) (host.File, error) {
	if name == l.file {
		return nil, host.PathError("open", name, l.err)
	}
	return l.Source.Open(name)
}

// TestScanLinksUnread: where a GPU shares memory with its CPU, NCCL goes by the links of GPUs, NICs
// and the bridges above them. Elsewhere one that cannot be read is a problem and nothing more.
func TestScanLinksUnread(t *testing.T) {
	t.Parallel()
	const machineText = `
arm
pci0009:00 numa=0
  0009:00:00.0 port 10de:22b1
    0009:01:00.0 gpu 10de:2941
pci0000:00 numa=0
  0000:00:00.0 port 10de:22b1
    0000:03:00.0 ib 15b3:1021 rdma=mlx5_0
`
	const nic, bridge = "0000:03:00.0", "0000:00:00.0"
	for _, tt := range []struct {
		name, text, file string
		err              error
		unread           bool
	}{
		{"all are read", machineText, "", nil, false},
		{"the speed of a NIC", machineText, devices + nic + "/max_link_speed", unix.EACCES, true},
		{"the width of a bridge", machineText, devices + bridge + "/max_link_width", unix.EIO, true},
		{"a file that is not there", machineText, devices + nic + "/max_link_speed", unix.ENOENT, false},
		{"a GPU with memory of its own", strings.Replace(machineText, "10de:2941", "10de:2330", 1), devices + nic + "/max_link_speed", unix.EACCES, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fs := host.New(lineUnread{open(t, write(t, tt.text)), tt.file, tt.err}, "/")
			inv, err := pci.Scan(fs, family.Known(), source.What{})
			if err != nil {
				t.Fatal(err)
			}
			if inv.LinksUnread != tt.unread {
				t.Errorf("unread %t, want %t", inv.LinksUnread, tt.unread)
			}
			var problems []string
			if errors.Is(tt.err, unix.EACCES) || errors.Is(tt.err, unix.EIO) {
				problems = []string{"open /" + tt.file}
			}
			wantProblems(t, inv.Problems, problems...)
		})
	}
}
