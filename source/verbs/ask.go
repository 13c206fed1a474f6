package verbs

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"gdr-features/source/family"
	"gdr-features/tristate"
)

// kernel is the other side of an open uverbs device.
type kernel interface {
	// ioctl returns 0 when there is no error.
	ioctl(r *request) unix.Errno
	close()
}

// Answers that stay the same until the driver is loaded again.
var (
	errDriver = errors.New("its driver is not one that can be asked")
	// errRefused: mlx5 says so of firmware that cannot (umr_modify_entity_size_disabled),
	// and of requests that it does not like.
	errRefused = errors.New("it refuses the registration of DMA-BUF as invalid, so that its answer is not clear")
)

// asker asks these questions, each through an ioctl of its own, and then for the active MTU
// of ports. What they make lasts until the device is closed.
//
//   - Which driver is it? A request with another driver's number is refused with
//     EINVAL before the kernel looks for the method; of the right driver, a method
//     that does not exist is EPROTONOSUPPORT.
//   - Does the kernel know REG_DMABUF_MR? Without any attribute it is EINVAL; where
//     there is no such method it is EPROTONOSUPPORT.
//   - A context, and in it a protection domain, since it takes one to be asked.
//   - Can the device register? The file handle -1 is no DMA-BUF: EBADF comes from the
//     lookup of the handle, which is after every check of the device. A driver that
//     registers no DMA-BUF is EOPNOTSUPP.
//
// (drivers/infiniband/core/uverbs_ioctl.c, uverbs_std_types_mr.c, umem_dmabuf.c;
// hw/mlx5/mr.c, efa/efa_verbs.c, bnxt_re/ib_verbs.c, irdma/verbs.c. UCX asks in the
// same way, uct/ib/base/ib_md.c.)
type asker struct {
	kernel
	request
	drivers   []family.Uverbs // that it may be
	driver    family.Uverbs   // that it is
	inContext bool            // a context was made
}

// drivers are those that are asked: of a table's NICs, and rxe.
func drivers(t family.Table) []family.Uverbs {
	var all []family.Uverbs
	for _, n := range t.NICs {
		if n.Uverbs.Driver != 0 {
			all = append(all, n.Uverbs)
		}
	}
	return append(all, family.Uverbs{Driver: driverRXE})
}

// ask finds out whether a device of one of some drivers registers DMA-BUF, and the active
// MTU of its ports. The first is true or false only where the kernel's code leaves no doubt.
func ask(k kernel, drivers []family.Uverbs, ports []Port) (answer Answer) {
	a := &asker{kernel: k, drivers: drivers}
	var pin runtime.Pinner // requests hold addresses of their own parts
	pin.Pin(a)
	defer pin.Unpin()
	if err := a.findDriver(); err != nil {
		return Answer{Err: err}
	}
	answer.DMABuf, answer.Err = a.dmabuf()
	if len(ports) > 0 && (a.inContext || a.context() == 0) {
		answer.MTUs = a.mtus(ports)
	}
	return answer
}

// mtus asks for the active MTU of ports. One that does not tell is left out, as on kernels
// before 5.0, which do not know the request (drivers/infiniband/core/
// uverbs_std_types_device.c, UVERBS_METHOD_QUERY_PORT).
func (a *asker) mtus(ports []Port) map[int]int {
	all := make(map[int]int, len(ports))
	for _, p := range ports {
		a.begin(a.driver.Driver, objectDevice, methodQueryPort)
		a.add(attrPortNumber, 8, uint64(p.Number))                     //nolint:gosec // of a directory's name, up to 255
		a.to(attrPort, unsafe.Pointer(&a.port), unsafe.Sizeof(a.port)) //nolint:gosec // pinned by ask
		if errno := a.do(); errno != 0 {
			continue
		}
		if mtu := a.port[activeMTU]; mtu >= 1 && mtu <= 5 {
			all[p.Number] = 128 << mtu
		}
	}
	return all
}

func (a *asker) dmabuf() (tristate.State, error) {
	a.begin(a.driver.Driver, objectMR, methodRegDMABufMR)
	switch errno := a.do(); errno {
	case unix.EINVAL:
	case unix.EPROTONOSUPPORT:
		return tristate.False, nil // before Linux 5.12
	default:
		return tristate.Unknown, failed("looking for REG_DMABUF_MR", errno)
	}
	if errno := a.context(); errno != 0 {
		return tristate.Unknown, failed("opening a context", errno)
	}
	if errno := a.protectionDomain(); errno != 0 {
		return tristate.Unknown, failed("making a protection domain", errno)
	}
	switch errno := a.register(); errno {
	case 0, unix.EBADF:
		return tristate.True, nil
	case unix.EOPNOTSUPP, unix.EPROTONOSUPPORT:
		return tristate.False, nil
	case unix.EINVAL:
		return tristate.Unknown, errRefused
	default:
		return tristate.Unknown, failed("registering", errno)
	}
}

func failed(doing string, errno unix.Errno) error {
	if errno == 0 {
		return fmt.Errorf("%s: the kernel accepts what it must not", doing)
	}
	return fmt.Errorf("%s: %w", doing, errno)
}

func (a *asker) do() unix.Errno { return a.ioctl(&a.request) }

func (a *asker) findDriver() error {
	for _, driver := range a.drivers {
		a.begin(driver.Driver, objectMR, methodNone)
		switch errno := a.do(); errno {
		case unix.EPROTONOSUPPORT:
			a.driver = driver
			return nil
		case unix.EINVAL:
		default:
			return failed("looking for the driver", errno)
		}
	}
	return errDriver
}

func (a *asker) context() unix.Errno {
	a.begin(a.driver.Driver, objectDevice, methodGetContext)
	if n := copy(a.request.context[:], a.driver.Context); n > 0 {
		a.to(attrUHWIn, unsafe.Pointer(&a.request.context), uintptr(n)*unsafe.Sizeof(a.request.context[0])) //nolint:gosec // pinned by ask
	}
	a.toUHW()
	errno := a.do()
	a.inContext = errno == 0
	return errno
}

func (a *asker) protectionDomain() unix.Errno {
	a.begin(a.driver.Driver, objectDevice, methodInvokeWrite)
	a.add(attrWriteCmd, 8, cmdAllocPD)
	a.add(attrCoreIn, 8, 0)
	a.to(attrCoreOut, unsafe.Pointer(&a.pd), unsafe.Sizeof(a.pd)) //nolint:gosec // pinned by ask
	a.toUHW()
	return a.do()
}

// toUHW adds the place for a driver's answer, which it must have.
func (a *asker) toUHW() {
	a.to(attrUHWOut, unsafe.Pointer(&a.uhw), unsafe.Sizeof(a.uhw)) //nolint:gosec // pinned by ask
}

func (a *asker) register() unix.Errno {
	const noFile = 0xffffffff // -1 in the four bytes that a file handle has here
	pd := a.pd
	a.begin(a.driver.Driver, objectMR, methodRegDMABufMR)
	a.object(attrHandle, 0)
	a.to(attrLKey, unsafe.Pointer(&a.keys[0]), unsafe.Sizeof(a.keys[0])) //nolint:gosec // pinned by ask
	a.to(attrRKey, unsafe.Pointer(&a.keys[1]), unsafe.Sizeof(a.keys[1])) //nolint:gosec // pinned by ask
	a.object(attrPDHandle, pd)
	a.add(attrOffset, 8, 0)
	a.add(attrLength, 8, 0)
	a.add(attrIOVA, 8, 0)
	a.add(attrFD, 4, inline(noFile))
	a.add(attrAccess, 4, inline(0))
	return a.do()
}

// inline puts four bytes where the kernel looks for them, at the beginning of data.
func inline(value uint32) (data uint64) {
	*(*uint32)(unsafe.Pointer(&data)) = value //nolint:gosec // the first half of it
	return data
}
