package mpqemu_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gdr-features/test/vm/mpqemu"
)

var gpu = mpqemu.Function{Vendor: 0x10de, Device: 0x2330, SubVendor: 0x10de, SubDevice: 0x16c1, Class: 0x030200}

// message spells a message out: a header of command, padding and size, then the
// payload.
func message(t *testing.T, text string) []byte {
	t.Helper()
	out, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// answered returns what a function answers to messages.
func answered(t *testing.T, space *mpqemu.Space, messages ...string) (string, error) {
	t.Helper()
	var in []byte
	for _, m := range messages {
		in = append(in, message(t, m)...)
	}
	var out bytes.Buffer
	err := mpqemu.Serve(struct {
		io.Reader
		io.Writer
	}{bytes.NewReader(in), &out}, space)
	return hex.EncodeToString(out.Bytes()), err
}

const (
	answerHead = "01000000 00000000 0800000000000000"
	readVendor = "03000000 00000000 0c00000000000000 00000000 00000000 02000000"
	irqfd      = "06000000 00000000 0000000000000000"
)

// The bytes are those that QEMU 7.2 sends and reads on x86.
func TestBytes(t *testing.T) {
	memory := "00000000 00000000 c000000000000000" + strings.Repeat("00", 192)
	for _, tt := range []struct {
		name, question, answer string
	}{
		{"vendor", readVendor, answerHead + "de10000000000000"},
		{"vendor and device", "03000000 00000000 0c00000000000000 00000000 00000000 04000000", answerHead + "de10302300000000"},
		{"with rubbish in the padding", "03000000 ffffffff 0c00000000000000 00000000 00000000 02000000", answerHead + "de10000000000000"},
		{"class and revision", "03000000 00000000 0c00000000000000 08000000 00000000 04000000", answerHead + "0000020300000000"},
		{"subsystem", "03000000 00000000 0c00000000000000 2c000000 00000000 04000000", answerHead + "de10c11600000000"},
		{"last byte", "03000000 00000000 0c00000000000000 ff000000 00000000 01000000", answerHead + "0000000000000000"},
		{"write", "02000000 00000000 0c00000000000000 04000000 07000000 02000000", answerHead + "0000000000000000"},
		{"reset", "07000000 00000000 0000000000000000", answerHead + "0000000000000000"},
		{"memory behind it", "05000000 00000000 1800000000000000" + strings.Repeat("00", 24), answerHead + "ffffffffffffffff"},
		{"memory of the guest", memory, ""},
		{"interrupts", irqfd, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := answered(t, mpqemu.NewSpace(gpu), tt.question)
			if want := strings.ReplaceAll(tt.answer, " ", ""); err != nil || got != want {
				t.Errorf("got  %s, error %v\nwant %s", got, err, want)
			}
		})
	}
}

func TestBroken(t *testing.T) {
	for name, m := range map[string]string{
		"half a header":            "03000000 00000000",
		"no payload":               "03000000 00000000 0c00000000000000",
		"half a payload":           "03000000 00000000 0c00000000000000 00000000",
		"an access of five bytes":  "03000000 00000000 0c00000000000000 00000000 00000000 05000000",
		"an access of minus one":   "03000000 00000000 0c00000000000000 00000000 00000000 ffffffff",
		"an access at the end":     "03000000 00000000 0c00000000000000 fd000000 00000000 04000000",
		"an access far behind":     "02000000 00000000 0c00000000000000 ffffffff 00000000 04000000",
		"an access of eight bytes": "03000000 00000000 0800000000000000 00000000 00000000",
		"a payload without end":    "03000000 00000000 ffffffffffffff7f",
		"an answer":                "01000000 00000000 0800000000000000 0000000000000000",
		"a command that is none":   "08000000 00000000 0000000000000000",
		"a negative command":       "ffffffff 00000000 0000000000000000",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := answered(t, mpqemu.NewSpace(gpu), m); err == nil || got != "" {
				t.Errorf("got %s, error %v", got, err)
			}
		})
	}
	if _, err := answered(t, mpqemu.NewSpace(gpu), readVendor, "03000000 0000"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an end in the midst: %v", err)
	}
}

// Only what the specification lets software change does change; there is no
// memory behind the function, so its base addresses stay zero.
func TestSpace(t *testing.T) {
	s := mpqemu.NewSpace(mpqemu.Function{Vendor: 0x15b3, Device: 0x1021, Class: 0x020700, Several: true})
	want := map[uint32]uint32{0x04: 0x0507, 0x0c: 0x8000ff, 0x3c: 0xff}
	for address := uint32(0); address < 256; address += 4 {
		before := s.Read(address, 4)
		s.Write(address, 0xffffffff, 4)
		after := s.Read(address, 4)
		if w, ok := want[address]; ok && after != w || !ok && after != before {
			t.Errorf("%#x: %#x became %#x", address, before, after)
		}
		s.Write(address, 0, 4)
	}
	s.Write(0x04, 0x06, 1)
	s.Write(0x05, 0x04, 1)
	if got := s.Read(0x04, 2); got != 0x0406 {
		t.Errorf("command %#x, written as two bytes", got)
	}
	s.Reset()
	if got := s.Read(0x04, 2); got != 0 {
		t.Errorf("command %#x after a reset", got)
	}
	if got := s.Read(0x0e, 1); got != 0x80 {
		t.Errorf("header type %#x of function 0 of several", got)
	}
}

// File handles that QEMU sends are not kept open.
func TestHandles(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	near, far := conn(t, pair[0]), conn(t, pair[1])
	served := make(chan error, 1)
	go func() { served <- mpqemu.Serve(far, mpqemu.NewSpace(gpu)) }()

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, _, err := near.(*net.UnixConn).WriteMsgUnix(message(t, irqfd), unix.UnixRights(int(w.Fd())), nil); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := near.Write(message(t, readVendor)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(near, make([]byte, 24)); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("read %d, %v: somebody keeps the other end open", n, err)
	}
	near.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func conn(t *testing.T, fd int) net.Conn {
	t.Helper()
	file := os.NewFile(uintptr(fd), "socket")
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
