package main

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// join brings a network device up with an address, as `ip address add ADDRESS/24 dev DEVICE`
// and `ip link set DEVICE up` do.
func join(device, address string) error {
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, set := range []struct {
		request uint
		value   []byte
	}{{unix.SIOCSIFADDR, parsed.AsSlice()}, {unix.SIOCSIFNETMASK, []byte{255, 255, 255, 0}}} {
		q, err := unix.NewIfreq(device)
		if err != nil {
			return err
		}
		if err := q.SetInet4Addr(set.value); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, set.request, q); err != nil {
			return fmt.Errorf("%s, address %s: %w", device, address, err)
		}
	}
	return up(device)
}
