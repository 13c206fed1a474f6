package pci

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// crossOut stands in for a replacement of the same length.
func crossOut(text string) string { return strings.Repeat("x", len(text)) }

func TestScrubVPD(t *testing.T) {
	const read = "\x90\x2a\x00PN\x04P-12SN\x04S-34V3\x02idVA\x0eSMDL=SW_MNG:S4RV\x03\xff\xff\xff"
	const write = "\x91\x0b\x00RW\x05S-34\x00XX\xff"
	data := "\x82\x04\x00Name" + read + write + "\x03S-3\x78S-34"
	got := ScrubVPD([]byte(data), crossOut, func(text []byte) {
		if i := bytes.IndexAny(text, "N1"); i >= 0 {
			text[i] = '_'
		}
	})
	vpd, err := ParseVPD(got)
	if err != nil {
		t.Fatal(err)
	}
	want := &VPD{Product: "_ame", Fields: map[string]string{"PN": "P-_2", "SN": "xxxx", "V3": "xx", "VA": "SW_MNG"}}
	if diff := cmp.Diff(want, vpd); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(string(got), "34") || got[len(got)-1] != vpdEnd {
		t.Errorf("left: %q", got)
	}
	end := bytes.Index(got, []byte("RV\x03")) + len("RV\x03") + 1
	sum := byte(0)
	for _, b := range got[:end] {
		sum += b
	}
	if sum != 0 {
		t.Errorf("checksum is off by %d", sum)
	}
}

// FuzzScrubVPD: what can be read, and what cannot, stays so, with the same keywords
// and texts as long.
func FuzzScrubVPD(f *testing.F) {
	f.Add("\x82\x04\x00Name\x90\x08\x00SN\x01xRV\x01\x00\x78")
	f.Add("\x90\x05\x00VU\x02id")
	f.Add("\x82\x01")
	f.Add("\x90\x03\x00SN\x05\x0a\x0b")
	f.Fuzz(func(t *testing.T, data string) {
		vpd, err := ParseVPD([]byte(data))
		scrubbed := ScrubVPD([]byte(data), crossOut, func([]byte) {})
		got, gotErr := ParseVPD(scrubbed)
		if (err == nil) != (gotErr == nil) {
			t.Fatalf("%v, and %v when scrubbed", err, gotErr)
		}
		if err != nil {
			return
		}
		for key, text := range vpd.Fields {
			switch key {
			case "PN", "EC", "MN":
			default:
				text = crossOut(text)
				if strings.Contains(vpd.Fields[key], managementMark) {
					text = managementMark
				}
			}
			vpd.Fields[key] = text
		}
		if diff := cmp.Diff(vpd, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestScrubConfig(t *testing.T) {
	config := slices.Repeat([]byte{0xee}, 4096)
	config[0x34] = 0x40
	copy(config[0x40:], "\x10\x50") // PCI Express
	copy(config[0x50:], "\x03\x60") // VPD
	copy(config[0x60:], "\x05\x00") // MSI
	binary.LittleEndian.PutUint32(config[0x100:], 0x0001|1<<16|0x140<<20)
	binary.LittleEndian.PutUint32(config[0x140:], 0x0003|1<<16|0x150<<20)
	binary.LittleEndian.PutUint32(config[0x150:], 0x000d|1<<16)
	want := slices.Clone(config)
	clear(want[0x52:0x58])
	clear(want[0x144:0x14c])
	ScrubConfig(func(offset int64) []byte { return config[min(offset, 4096):] })
	if diff := cmp.Diff(want, config); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzScrubConfig: any configuration space, whole or not, comes to an end, and tells
// the same of ACS.
func FuzzScrubConfig(f *testing.F) {
	f.Add(make([]byte, 256))
	overlap := make([]byte, 4096)
	overlap[0x06], overlap[0x34] = 1<<4, 0xfc
	copy(overlap[0xfc:], "\x03\x00") // VPD, up to the end
	binary.LittleEndian.PutUint32(overlap[0x100:], 0x0003|1<<16|0x104<<20)
	binary.LittleEndian.PutUint32(overlap[0x104:], 0x000d|1<<16)
	overlap[0x10a] = 0x1d
	f.Add(overlap)
	f.Add(overlap[:0x102])
	f.Fuzz(func(t *testing.T, config []byte) {
		config = slices.Clone(config)
		read := func(buf []byte, offset int64) (int, error) {
			return copy(buf, config[min(int(offset), len(config)):]), nil
		}
		before := walkACS(read)
		ScrubConfig(func(offset int64) []byte { return config[min(int(offset), len(config)):] })
		if diff := cmp.Diff(before, walkACS(read)); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
	})
}
