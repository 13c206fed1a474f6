package pci

import (
	"gdr-features/host"
)

// switchLinksDir is where Broadcom's driver for partitioned PCIe switches shows which partitions
// have a link between them inside the switch: a directory for each upstream port, with an entry
// for each upstream port on the other end. NCCL reads it (NVIDIA/nccl src/os/linux.cc,
// ncclOsGetBcmLinks, in 2.30.7). No driver of the Linux kernel makes it; the patch of 2024
// is https://lkml.org/lkml/2024/6/12/551.
const switchLinksDir = "sys/kernel/pci_switch_link/virtual_switch_links"

// addressLength is that of "0000:00:00.0". NCCL passes over entries of any other length.
const addressLength = 12

// switchLinks reads Function.SwitchLinks. Without the directory there are none.
func (s *scanner) switchLinks() {
	ports, err := s.fs.Names(switchLinksDir)
	s.switchLinksRead(err)
	for _, name := range ports {
		a, err := ParseAddress(name)
		f := s.inv.Find(a)
		if err != nil || f == nil || len(name) != addressLength {
			continue
		}
		ends, err := s.fs.Names(switchLinksDir + "/" + name)
		s.switchLinksRead(err)
		for _, end := range ends {
			to, err := ParseAddress(end)
			if err == nil && len(end) == addressLength && s.inv.Find(to) != nil {
				f.SwitchLinks = append(f.SwitchLinks, to)
			}
		}
	}
}

// switchLinksRead notes an error, unless there is merely nothing.
func (s *scanner) switchLinksRead(err error) {
	if host.Unread(err) {
		s.inv.SwitchLinksUnread = true
		s.unread(err)
	}
}
