package main

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Numbers of include/uapi/rdma/rdma_netlink.h.
const (
	nldevNewLink   = 5<<10 | 3 // RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK)
	nldevSetSystem = 5<<10 | 7 // RDMA_NLDEV_CMD_SYS_SET
	attrDeviceName = 2         // RDMA_NLDEV_ATTR_DEV_NAME
	attrNetDevice  = 51        // RDMA_NLDEV_ATTR_NDEV_NAME
	attrLinkType   = 65        // RDMA_NLDEV_ATTR_LINK_TYPE
	attrNetnsMode  = 66        // RDMA_NLDEV_SYS_ATTR_NETNS_MODE
)

// addRXE brings a network device up and makes a software RDMA device on it, as
// `rdma link add NAME type rxe netdev DEVICE` does.
func addRXE(name, device string) error {
	if err := up(device); err != nil {
		return fmt.Errorf("%s: %w", device, err)
	}
	return ask(newLink(name, device))
}

// exclusive gives each RDMA device to one network namespace, as `rdma system set netns
// exclusive` does. The kernel refuses it while there is another namespace.
func exclusive() error { return ask(message(nldevSetSystem, attribute(attrNetnsMode, ""))) }

// ask sends a request and waits for the kernel's answer.
func ask(request []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_RDMA)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	return verdict(answer[:n])
}

// newLink encodes the request.
func newLink(name, device string) []byte {
	body := attribute(attrDeviceName, name)
	body = append(body, attribute(attrLinkType, "rxe")...)
	body = append(body, attribute(attrNetDevice, device)...)
	return message(nldevNewLink, body)
}

// message puts the header before a request.
func message(kind uint16, body []byte) []byte {
	head := make([]byte, unix.SizeofNlMsghdr)
	le := binary.LittleEndian
	le.PutUint32(head, uint32(len(head)+len(body))) //nolint:gosec // some dozens
	le.PutUint16(head[4:], kind)
	le.PutUint16(head[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	return append(head, body...)
}

// attribute encodes a string, ended by a zero byte and padded to four; "" is also the number
// 0 in one byte.
func attribute(kind uint16, text string) []byte {
	size := unix.SizeofNlAttr + len(text) + 1
	out := make([]byte, (size+3)&^3)
	binary.LittleEndian.PutUint16(out, uint16(size)) //nolint:gosec // a short name
	binary.LittleEndian.PutUint16(out[2:], kind)
	copy(out[unix.SizeofNlAttr:], text)
	return out
}

// verdict reads the kernel's answer: a header and an error number, 0 or less.
func verdict(answer []byte) error {
	le := binary.LittleEndian
	if len(answer) < unix.SizeofNlMsghdr+4 || le.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("no answer that is one")
	}
	if errno := -le.Uint32(answer[unix.SizeofNlMsghdr:]); errno != 0 {
		return unix.Errno(errno)
	}
	return nil
}

// up sets the flag that `ip link set DEVICE up` sets.
func up(device string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	q, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	q.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, q)
}
