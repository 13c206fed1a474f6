package pci

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// space is configuration space under construction.
type space []byte

func newSpace(size int) space { return make(space, size) }

// with puts the header of an extended capability at an offset.
func (s space) with(offset int, id, next uint32) space {
	binary.LittleEndian.PutUint32(s[offset:], id|1<<16|next<<20)
	return s
}

// control sets the ACS control register of the capability at an offset.
func (s space) control(offset int, bits uint16) space {
	binary.LittleEndian.PutUint16(s[offset+4:], 0x005f) // what the port can do
	binary.LittleEndian.PutUint16(s[offset+6:], bits)
	return s
}

// fill sets every byte from an offset on.
func (s space) fill(offset int, value byte) space {
	for i := offset; i < len(s); i++ {
		s[i] = value
	}
	return s
}

// put sets one byte.
func (s space) put(offset int, value byte) space {
	s[offset] = value
	return s
}

// readAt reads like a file that ends where the space does.
func (s space) readAt(buf []byte, offset int64) (int, error) {
	return bytes.NewReader(s).ReadAt(buf, offset)
}

func TestWalkACS(t *testing.T) {
	none := &ACS{}
	circle := newSpace(4096)
	circle.with(0x100, 1, 0x140).with(0x140, 3, 0x180).with(0x180, 4, 0x140)
	longest := newSpace(4096)
	for offset := 0x100; offset < 0xff8; offset += 8 {
		longest.with(offset, 0x0b, uint32(offset+8))
	}
	longest.with(0xff8, 0x0d, 0).control(0xff8, 0x001d)
	tests := []struct {
		name  string
		space space
		want  *ACS
	}{
		{"first capability", newSpace(4096).with(0x100, 0x0d, 0x148).control(0x100, 0x001d), &ACS{true, 0x001d}},
		{"behind another", newSpace(4096).with(0x100, 1, 0x148).with(0x148, 0x0d, 0).control(0x148, 0x005c), &ACS{true, 0x005c}},
		{"behind one that stands higher", newSpace(4096).with(0x100, 1, 0x300).with(0x300, 3, 0x180).with(0x180, 0x0d, 0x400).control(0x180, 1), &ACS{true, 1}},
		{"behind all there is room for", longest, &ACS{true, 0x001d}},
		{"nothing enabled", newSpace(4096).with(0x100, 0x0d, 0).control(0x100, 0), &ACS{true, 0}},
		{"the whole register", newSpace(4096).with(0x100, 0x0d, 0).control(0x100, 0xa55a), &ACS{true, 0xa55a}},
		{"the low bits of the pointer are reserved", newSpace(4096).with(0x100, 1, 0x14b).with(0x148, 0x0d, 0).control(0x148, 2), &ACS{true, 2}},
		{"at the very end", newSpace(4096).with(0x100, 1, 0xff8).with(0xff8, 0x0d, 0).control(0xff8, 4), &ACS{true, 4}},

		{"absent, with the last capability at the very end", newSpace(4096).with(0x100, 1, 0xffc).with(0xffc, 3, 0), none},
		{"a header at the very end, with no room for the register", newSpace(4096).with(0x100, 1, 0xffc).with(0xffc, 0x0d, 0), nil},
		{"absent", newSpace(4096).with(0x100, 1, 0x148).with(0x148, 3, 0), none},
		{"no extended capability", newSpace(4096), none},
		{"a null capability that leads on", newSpace(4096).with(0x100, 0, 0x148).with(0x148, 0x0d, 0).control(0x148, 8), &ACS{true, 8}},
		{"256 bytes of conventional PCI, read in full", newSpace(256), none},
		{"256 bytes, capabilities but not PCI Express", newSpace(256).put(0x06, 0x10).put(0x34, 0x50).put(0x50, 0x01).put(0x51, 0x00), none},

		{"256 bytes of PCI Express", newSpace(256).put(0x06, 0x10).put(0x34, 0x50).put(0x50, 0x01).put(0x51, 0x60).put(0x60, 0x10), nil},
		{"256 bytes, capabilities in a circle", newSpace(256).put(0x06, 0x10).put(0x34, 0x50).put(0x50, 0x01).put(0x51, 0x50), nil},
		{"256 bytes and the beginning of a header", newSpace(258), nil},
		{"no answer from the extended space", newSpace(4096).fill(0x100, 0xff), nil},
		{"no answer from the next header", newSpace(4096).with(0x100, 1, 0x148).fill(0x148, 0xff), nil},

		{"64 bytes, as everybody may read", newSpace(64), nil},
		{"nothing", newSpace(0), nil},
		{"cut off before 256 bytes", newSpace(254), nil},
		{"cut off in the control register", newSpace(0x106).with(0x100, 0x0d, 0), nil},
		{"cut off before the next capability", newSpace(0x148).with(0x100, 1, 0x148), nil},
		{"cut off in the next header", newSpace(0x14a).with(0x100, 1, 0x148), nil},
		{"circle", circle, nil},
		{"circle of one", newSpace(4096).with(0x100, 1, 0x100), nil},
		{"a pointer into the header", newSpace(4096).with(0x100, 1, 0x040), nil},
		{"a pointer right before the extended space", newSpace(4096).with(0x100, 1, 0x0fc), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, walkACS(tt.space.readAt)); diff != "" {
				t.Errorf("ACS (-want +got):\n%s", diff)
			}
		})
	}
}

// A read error at any step leaves it open whether there is ACS.
func TestWalkACSReadErrors(t *testing.T) {
	full := newSpace(4096).with(0x100, 1, 0x148).with(0x148, 0x0d, 0).control(0x148, 0x1d)
	for _, tt := range []struct {
		name  string
		space space
		fails int // the number of the read that fails
	}{
		{"first header", full, 1},
		{"second header", full, 2},
		{"the last bytes without extended space", newSpace(256), 2},
	} {
		reads := 0
		got := walkACS(func(buf []byte, offset int64) (int, error) {
			if reads++; reads == tt.fails {
				return 0, io.ErrUnexpectedEOF
			}
			return tt.space.readAt(buf, offset)
		})
		if got != nil || reads != tt.fails {
			t.Errorf("%s: %+v after %d reads, want nil after %d", tt.name, got, reads, tt.fails)
		}
	}
}

func TestRedirect(t *testing.T) {
	for bit := range 16 {
		a := ACS{Present: true, Control: 1 << bit}
		want := bit == 2 || bit == 3 || bit == 5 // request and completion redirect, egress control
		if got := a.Redirect(); got != want {
			t.Errorf("control %#04x: %v, want %v", a.Control, got, want)
		}
	}
	all := &ACS{Present: true, Control: 0xffff}
	if diff := cmp.Diff([]string{"ReqRedir", "CmpltRedir", "EgressCtrl"}, all.Redirects()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if (&ACS{}).Redirect() || (&ACS{Control: 0xffd3}).Redirects() != nil {
		t.Error("redirects without the capability")
	}
}
