package verbs

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
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
	// mtu has the active MTU of each port, as enum ib_mtu; nil on a kernel without
	// QUERY_PORT.
	mtu map[int]byte

	calls            int
	inContext, hasPD bool
	hangUp           func()
}

func (f *fake) close() { f.hangUp() }

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
	case [2]uint16{objectDevice, methodQueryPort}:
		if f.mtu != nil {
			return f.queryPort(r)
		}
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

// driverPart is what the kernel gives to a driver of a request: up to eight bytes are in
// the attribute itself.
func (r *request) driverPart() []uint32 {
	for _, a := range r.attributes[:r.header.attributes] {
		switch {
		case a.id != attrUHWIn:
		case a.length <= 8:
			return unsafe.Slice((*uint32)(unsafe.Pointer(&a.data)), a.length/4)
		case a.data == uint64(uintptr(unsafe.Pointer(&r.context))):
			return r.context[:a.length/4]
		}
	}
	return nil
}

// accepts are the checks of drivers, by their number (kernel: the alloc_ucontext of
// drivers/infiniband/hw).
var accepts = map[uint32]func(words []uint32) unix.Errno{
	1: func(words []uint32) unix.Errno { // mlx5
		switch {
		case len(words) != 8 || words[1] >= words[0]:
			return unix.EINVAL
		case !zeros(words[2:6]): // flags and what is reserved
			return unix.EOPNOTSUPP
		}
		return 0
	},
	17: func(words []uint32) unix.Errno { // efa: a device that has both capabilities
		if len(words) < 2 || words[0]&3 != 3 || !zeros(words[1:]) {
			return unix.EOPNOTSUPP
		}
		return 0
	},
	6: func(words []uint32) unix.Errno { // bnxt_re from Linux 7.0 on
		if len(words) > 0 && (len(words) < 2 || words[0]&^3 != 0 || !zeros(words[1:])) {
			return unix.EINVAL
		}
		return 0
	},
	9: func(words []uint32) unix.Errno { // irdma, GEN_3
		switch {
		case len(words) != 4 || words[1]&0xff < 4 || words[1]&0xff > 5 || words[2]&^9 != 0 || words[3] != 0:
			return unix.EINVAL
		case words[2]&8 == 0:
			return unix.EOPNOTSUPP
		}
		return 0
	},
	21: func(words []uint32) unix.Errno { // ionic
		if len(words) < 2 || !zeros(words[2:]) {
			return unix.EINVAL
		}
		return 0
	},
}

func zeros(words []uint32) bool {
	return !slices.ContainsFunc(words, func(w uint32) bool { return w != 0 })
}

func (f *fake) getContext(r *request) unix.Errno {
	out, ok := r.attribute(attrUHWOut, 256)
	switch {
	case f.inContext, !ok, !r.inside(out.data):
		return unix.EINVAL
	}
	if refuse := accepts[f.driver]; refuse != nil {
		if errno := refuse(r.driverPart()); errno != 0 {
			return errno
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

func (f *fake) queryPort(r *request) unix.Errno {
	number, ok := r.attribute(attrPortNumber, 8)
	out, sized := r.attribute(attrPort, 48)
	switch mtu, there := f.mtu[int(number.data)]; {
	case !ok, !sized, !there, !f.inContext, out.data != uint64(uintptr(unsafe.Pointer(&r.port))):
		return unix.EINVAL
	default:
		r.port[activeMTU] = mtu
		return 0
	}
}

// TestMTU: the active MTU of each port is asked for, whatever the answer about DMA-BUF.
func TestMTU(t *testing.T) {
	ports := []Port{{Number: 1}, {Number: 2}, {Number: 3}, {Number: 4}}
	mtus := map[int]byte{1: 3, 2: 5, 3: 9}
	all := map[int]int{1: 1024, 2: 4096}
	for name, tc := range map[string]struct {
		fake fake
		want map[int]int
	}{
		"with DMA-BUF":       {fake{mtu: mtus, register: unix.EBADF}, all},
		"without":            {fake{mtu: mtus, register: unix.EOPNOTSUPP}, all},
		"kernel before 5.12": {fake{mtu: mtus, method: unix.EPROTONOSUPPORT}, all},
		"kernel before 5.0":  {fake{method: unix.EPROTONOSUPPORT}, map[int]int{}},
		"no context":         {fake{mtu: mtus, context: unix.EAGAIN}, nil},
	} {
		f := tc.fake
		f.driver = mlx5.Driver
		got := ask(&f, drivers(family.Known()), ports)
		if diff := cmp.Diff(tc.want, got.MTUs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
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

		{"another driver", fake{driver: noDriver, register: unix.EBADF}, tristate.Unknown, errDriver},
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
			if got := ask(&f, drivers(family.Known()), nil); got.DMABuf != tc.want || !errors.Is(got.Err, tc.err) {
				t.Errorf("%v, %v; want %v, %v", got.DMABuf, got.Err, tc.want, tc.err)
			}
		})
	}
}

// TestAskFamilies: the same answers mean the same of every family's driver, which
// accepts its row's request for a context.
func TestAskFamilies(t *testing.T) {
	for _, n := range asked() {
		for errno, want := range map[unix.Errno]tristate.State{
			unix.EBADF: tristate.True, unix.EOPNOTSUPP: tristate.False, unix.EINVAL: tristate.Unknown, unix.ENOMEM: tristate.Unknown,
		} {
			f := fake{driver: n.Uverbs.Driver, register: errno, mtu: map[int]byte{1: 5}}
			if got := ask(&f, drivers(family.Every()), []Port{{Number: 1}}); got.DMABuf != want || got.MTUs[1] != 4096 {
				t.Errorf("%s, %v: %v, want %v", n.Name, errno, got, want)
			}
		}
	}
}

// scripted answers the calls in turn with errors and leaves any memory behind.
type scripted struct {
	errs  []byte
	fill  byte
	last  unix.Errno
	calls int
}

func (s *scripted) close() {}

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
		asked := drivers(family.Known())
		got := ask(s, asked, nil)
		state, err := got.DMABuf, got.Err
		if s.calls > len(asked)+4 {
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
