package verbs

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"gdr-features/source/family"
	"gdr-features/tristate"
)

// fake is a kernel with one device. It is as strict as the real one; what each
// step ends with may be set.
type fake struct {
	driver uint32
	pd     uint32
	// control and method are 0 for what they are on a kernel that knows
	// REG_DMABUF_MR.
	control, method           unix.Errno
	context, domain, register unix.Errno
	seen                      func(*request)

	calls            int
	inContext, hasPD bool
}

func (f *fake) ioctl(r *request) unix.Errno {
	f.calls++
	if f.seen != nil {
		f.seen(r)
	}
	h := r.header
	switch {
	case int(h.length) != 24+16*int(h.attributes):
		return unix.EINVAL
	case h.reserved1 != 0 || h.reserved2 != 0:
		return unix.EPROTONOSUPPORT
	case h.driver != f.driver:
		return unix.EINVAL
	}
	for _, a := range r.attributes[:h.attributes] {
		if a.reserved != 0 || a.flags != 1 {
			return unix.EINVAL
		}
	}
	switch [2]uint16{h.object, h.method} {
	case [2]uint16{objectDevice, methodGetContext}:
		return f.getContext(r)
	case [2]uint16{objectDevice, methodInvokeWrite}:
		return f.invokeWrite(r)
	case [2]uint16{objectMR, methodRegDMABufMR}:
		return f.regDMABuf(r)
	}
	return or(f.control, unix.EPROTONOSUPPORT)
}

func or(err, otherwise unix.Errno) unix.Errno {
	if err == 0 {
		return otherwise
	}
	return err
}

// attribute returns the attribute of a number and a length.
func (r *request) attribute(id uint16, length uintptr) (attribute, bool) {
	for _, a := range r.attributes[:r.header.attributes] {
		if a.id == id {
			return a, uintptr(a.length) == length
		}
	}
	return attribute{}, false
}

func (f *fake) getContext(r *request) unix.Errno {
	out, ok := r.attribute(attrUHWOut, 256)
	switch {
	case f.inContext, !ok, !r.inside(out.data):
		return unix.EINVAL
	case f.driver == mlx5.Driver:
		in, ok := r.attribute(attrUHWIn, 32)
		if !ok || in.data != uint64(uintptr(unsafe.Pointer(&r.context))) || r.context[1] >= r.context[0] {
			return unix.EINVAL
		}
		if !slices.Equal(r.context[2:6], make([]uint32, 4)) { // flags and what is reserved
			return unix.EOPNOTSUPP
		}
	}
	f.inContext = f.context == 0
	r.uhw[0] = 1 << 40
	return f.context
}

func (f *fake) invokeWrite(r *request) unix.Errno {
	cmd, ok := r.attribute(attrWriteCmd, 8)
	if !ok || cmd.data != cmdAllocPD || !f.inContext {
		return unix.EINVAL
	}
	_, in := r.attribute(attrCoreIn, 8)
	out, ok := r.attribute(attrCoreOut, 4)
	if !in || !ok || out.data != uint64(uintptr(unsafe.Pointer(&r.pd))) {
		return unix.ENOSPC
	}
	if _, ok := r.attribute(attrUHWOut, 256); !ok {
		return unix.EFAULT
	}
	f.hasPD = f.domain == 0
	if f.hasPD {
		r.pd = f.pd
	}
	return f.domain
}

func (f *fake) regDMABuf(r *request) unix.Errno {
	if f.method != 0 {
		return f.method
	}
	for id, length := range map[uint16]uintptr{
		attrHandle: 0, attrPDHandle: 0, attrOffset: 8, attrLength: 8, attrIOVA: 8, attrFD: 4, attrAccess: 4, attrLKey: 4, attrRKey: 4,
	} {
		if _, ok := r.attribute(id, length); !ok {
			return unix.EINVAL
		}
	}
	pd, _ := r.attribute(attrPDHandle, 0)
	if !f.hasPD || pd.data != uint64(f.pd) {
		return unix.ENOENT
	}
	fd, _ := r.attribute(attrFD, 4)
	if *(*int32)(unsafe.Pointer(&fd.data)) != -1 {
		return unix.EINVAL
	}
	return f.register
}

// TestAsk checks what every outcome means.
func TestAsk(t *testing.T) {
	for _, tc := range []struct {
		name string
		fake fake
		want tristate.State
		err  error
	}{
		{"it can", fake{register: unix.EBADF}, tristate.True, nil},
		{"it can, handle of the domain is zero", fake{pd: 0, register: unix.EBADF}, tristate.True, nil},
		{"it did", fake{}, tristate.True, nil},
		{"driver without", fake{register: unix.EOPNOTSUPP}, tristate.False, nil},
		{"kernel says so late", fake{register: unix.EPROTONOSUPPORT}, tristate.False, nil},
		{"kernel before 5.12", fake{method: unix.EPROTONOSUPPORT}, tristate.False, nil},
		{"rxe", fake{driver: driverRXE, register: unix.EOPNOTSUPP}, tristate.False, nil},

		{"another driver", fake{driver: 9, register: unix.EBADF}, tristate.Unknown, errDriver},
		{"refused", fake{register: unix.EINVAL}, tristate.Unknown, errRefused},
		{"no memory", fake{register: unix.ENOMEM}, tristate.Unknown, unix.ENOMEM},
		{"no such domain", fake{register: unix.ENOENT}, tristate.Unknown, unix.ENOENT},
		{"not allowed", fake{register: unix.EPERM}, tristate.Unknown, unix.EPERM},
		{"gone while asked", fake{register: unix.EIO}, tristate.Unknown, unix.EIO},
		{"gone", fake{method: unix.EIO}, tristate.Unknown, unix.EIO},
		{"kernel without ioctls", fake{control: unix.ENOTTY}, tristate.Unknown, unix.ENOTTY},
		{"device resets", fake{context: unix.EAGAIN, register: unix.EBADF}, tristate.Unknown, unix.EAGAIN},
		{"kernel does not like the context", fake{context: unix.EOPNOTSUPP}, tristate.Unknown, unix.EOPNOTSUPP},
		{"EBADF from elsewhere", fake{context: unix.EBADF}, tristate.Unknown, unix.EBADF},
		{"no domain", fake{domain: unix.ENOMEM, register: unix.EBADF}, tristate.Unknown, unix.ENOMEM},
		{"no commands through ioctl", fake{domain: unix.EPROTONOSUPPORT}, tristate.Unknown, unix.EPROTONOSUPPORT},
		{"EBADF instead of a domain", fake{domain: unix.EBADF}, tristate.Unknown, unix.EBADF},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := tc.fake
			if f.driver == 0 {
				f.driver = mlx5.Driver
			}
			got, err := ask(&f, drivers(family.Known()))
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%v, %v; want %v, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

// scripted answers the calls in turn with errors and leaves any memory behind.
type scripted struct {
	errs  []byte
	fill  byte
	last  unix.Errno
	calls int
}

func (s *scripted) ioctl(r *request) unix.Errno {
	if int(r.header.length) != 24+16*int(r.header.attributes) || int(r.header.attributes) > len(r.attributes) {
		panic(fmt.Sprintf("malformed: %+v", r.header))
	}
	for _, a := range r.attributes[:r.header.attributes] {
		if a.length > 8 && !r.inside(a.data) {
			panic(fmt.Sprintf("address of others: %+v", a))
		}
	}
	s.last = 0
	if s.calls < len(s.errs) && s.errs[s.calls] != 0 {
		s.last = unix.Errno(s.errs[s.calls])
	}
	s.calls++
	for i := range r.uhw {
		r.uhw[i] = uint64(s.fill) * 0x0101010101010101
	}
	r.pd, r.keys = uint32(s.fill)*0x01010101, [2]uint32{uint32(s.fill), 1}
	return s.last
}

// FuzzAsk answers with anything: asking ends, and only the last answer can make it
// true or false.
func FuzzAsk(f *testing.F) {
	const none, noMethod, bad = byte(unix.EINVAL), byte(unix.EPROTONOSUPPORT), byte(unix.EBADF)
	f.Add([]byte{noMethod, none, 0, 0, bad}, byte(0))
	f.Add([]byte{none, noMethod, none, 0, 0, byte(unix.EOPNOTSUPP)}, byte(0xff))
	f.Add([]byte{noMethod, noMethod}, byte(1))
	f.Fuzz(func(t *testing.T, errs []byte, fill byte) {
		s := &scripted{errs: errs, fill: fill}
		state, err := ask(s, drivers(family.Known()))
		if s.calls > 6 {
			t.Errorf("%d calls", s.calls)
		}
		if (state == tristate.Unknown) != (err != nil) {
			t.Errorf("%v, %v", state, err)
		}
		switch state {
		case tristate.True:
			if s.calls < 5 || s.last != 0 && s.last != unix.EBADF {
				t.Errorf("true after %d calls, the last with %v", s.calls, s.last)
			}
		case tristate.False:
			if s.last != unix.EOPNOTSUPP && s.last != unix.EPROTONOSUPPORT {
				t.Errorf("false with %v", s.last)
			}
		case tristate.Unknown:
		}
	})
}
