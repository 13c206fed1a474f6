package pci

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"gdr-features/host"
	"gdr-features/source/family"
)

// RDMAClassDir is where the kernel lists every RDMA device.
const RDMAClassDir = "sys/class/infiniband"

// Owner is whose an RDMA device is.
type Owner struct {
	// Function is the PCI function, nil for none. Known is false when that could not be found out.
	Function *Address
	Known    bool
	// Below is the path from the function to the device: "infiniband/mlx5_0", or with an auxiliary
	// device in between "mlx5_core.sf.2/infiniband/mlx5_2".
	Below string
}

// OwnerOf finds the PCI function in the path of an RDMA device: its class entry is a link into the
// device tree, .../0000:1a:00.0/infiniband/mlx5_0. An entry that is neither a link nor a directory
// is not a device.
func OwnerOf(fs *host.FS, link host.Link) (o Owner, device bool) {
	entry := RDMAClassDir + "/" + link.Name
	if link.Err == nil {
		if o = ownerIn(link.Target); o.Known {
			return o, true
		}
	} else {
		dir, err := fs.Open(entry + "/")
		if err != nil {
			return o, !errors.Is(err, unix.ENOTDIR)
		}
		_ = dir.Close() // opened for reading only
	}
	for _, follow := range [...]func(string) (string, error){fs.Link, fs.Resolve} {
		if path, err := follow(entry + "/device"); err == nil {
			if o = ownerIn(path); o.Known {
				return o, true
			}
		}
	}
	return o, true
}

// ownerIn takes the function from a path: the last address in it. A path that ends at a virtual
// device shows that there is none.
func ownerIn(path string) Owner {
	a, below := LastAddress(path)
	return Owner{Function: a, Known: a != nil || strings.Contains(path, "devices/virtual/"), Below: below}
}

// software reports whether an RDMA device is one of rxe or siw, which the kernel makes upon any
// Ethernet card: it says nothing about the card, but in older kernels its path leads to the card's
// function (rxe_dma_device, removed by b2d2440430c0; drivers/infiniband/sw/siw/siw_main.c,
// siw_device_create). Only rxe has the file parent (rxe_verbs.c, parent_show), and siw has this
// description (include/uapi/rdma/siw-abi.h, SIW_NODE_DESC_COMMON).
func (s *scanner) software(name string) bool {
	there, err := s.fs.Exists(RDMAClassDir + "/" + name + "/parent")
	if err == nil && there {
		return true
	}
	text, err := s.fs.Line(RDMAClassDir + "/" + name + "/node_desc")
	return err == nil && strings.HasPrefix(text, "Software iWARP stack")
}

// unlisted marks the NICs that no table has: functions with an RDMA device, or of a class that only
// NICs with RDMA have. A virtual function is what its physical one is.
func (s *scanner) unlisted() {
	for f := range s.inv.All() {
		if family.Fabric(f.IDs()) {
			s.asUnlisted(f)
		}
	}
	links, err := s.fs.Links(RDMAClassDir)
	if err != nil && !host.Absent(err) {
		s.inv.Unplaced = true // the error is reported with the RDMA devices
	}
	for _, link := range links {
		o, device := OwnerOf(s.fs, link)
		switch {
		case !device:
		case !o.Known:
			s.inv.Unplaced = true
		case o.Function != nil:
			if f := s.inv.Find(*o.Function); f != nil && !f.classified() && !s.software(link.Name) {
				s.asUnlisted(f)
			}
		}
	}
}

func (s *scanner) asUnlisted(f *Function) {
	if f.classified() || f.Bridge() {
		return
	}
	if !s.what.Details { // with details, those of every function are read
		s.attributes(f)
	}
	if physical := s.inv.Physical(f); physical == nil || physical.KnownNIC() == nil {
		f.Other = family.Unlisted()
	}
}
