package pci

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The forms once more, written independently of the parsers.
var (
	addressForm  = regexp.MustCompile(`^[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7]$`)
	rootBusForm  = regexp.MustCompile(`^pci[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}$`)
	modaliasForm = regexp.MustCompile(`^pci:v0000[0-9a-fA-F]{4}d0000[0-9a-fA-F]{4}sv0000[0-9a-fA-F]{4}sd0000[0-9a-fA-F]{4}` +
		`bc[0-9a-fA-F]{2}sc[0-9a-fA-F]{2}i[0-9a-fA-F]{2}$`)
)

func FuzzParseAddress(f *testing.F) {
	for _, seed := range []string{
		"0000:00:00.0", "0000:1a:1f.7", "10000:e1:00.0", "FFFFFFFF:FF:1F.7", "00010000:e1:00.0",
		"", ":", "0000:00:20.0", "0000:00:00.8", "0000:00:00.0\n", "pci0000:00", "000g:00:00.0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAddress(text)
		if form := addressForm.MatchString(text); form != (err == nil) {
			t.Fatalf("accepted: %v, has the form: %v", err == nil, form)
		}
		if err != nil {
			return
		}
		digits := strings.IndexByte(text, ':')
		if again := fmt.Sprintf("%0*x:%02x:%02x.%x", digits, a.Domain, a.Bus, a.Device, a.Function); !strings.EqualFold(again, text) {
			t.Errorf("is %q written again", again)
		}
		if b, err := ParseAddress(a.String()); err != nil || a != b || a.Compare(b) != 0 {
			t.Errorf("%v is read back as %v, %v", a, b, err)
		}
	})
}

func FuzzParseModalias(f *testing.F) {
	for _, seed := range []string{
		"pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00",
		"pci:v000015b3d00001021sv000015b3sd00000041bc02sc07i00",
		"pci:v000110DEd00002330sv000010DEsd000016C1bc03sc02i00",
		"pci:v*d*sv*sd*bc03sc02i*", "pci:", "", "usb:v1D6Bp0002",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var fn Function
		ok := parseModalias(text, &fn)
		if form := modaliasForm.MatchString(text); form != ok {
			t.Fatalf("accepted: %v, has the form: %v", ok, form)
		}
		if !ok {
			if diff := cmp.Diff(Function{}, fn); diff != "" {
				t.Errorf("refused, and changes the function:\n%s", diff)
			}
			return
		}
		again := fmt.Sprintf("pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X",
			fn.Vendor, fn.Device, fn.SubVendor, fn.SubDevice, fn.Class>>16, fn.Class>>8&0xff, fn.Class&0xff)
		if !strings.EqualFold(again, text) {
			t.Errorf("is %q written again", again)
		}
	})
}

func FuzzSplitPath(f *testing.F) {
	for _, seed := range []string{
		"../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0",
		"../../../devices/pci0000:d7/0000:d7:05.5/pci10000:e0/10000:e0:02.0/10000:e1:00.0",
		"../../../devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/47505500-0001-0000-3130-444532334544/pci0001:00",
		"", "/", "pci0000:00", "pci0000:00/", "0000:00:00.0/pci0000:00", "pci0000:00/pci0000:00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, dir string) {
		root, bridges, ok := splitPath(dir)
		parts := strings.Split(dir, "/")
		last := -1
		for i, part := range parts {
			if rootBusForm.MatchString(part) {
				last = i
			}
		}
		if ok != (last >= 0) || !ok && (root != "" || bridges != nil) || ok && root != parts[last] {
			t.Fatalf("root bus %q, %v, bridges %v; the last root bus is part %d", root, ok, bridges, last)
		}
		var want []string
		for _, part := range parts[last+1:] {
			if ok && addressForm.MatchString(part) {
				want = append(want, strings.ToLower(part))
			}
		}
		same := slices.EqualFunc(want, bridges, func(part string, a Address) bool {
			// A domain may be written with more zeros than it needs.
			return strings.HasSuffix(part, a.String()) && strings.Trim(strings.TrimSuffix(part, a.String()), "0") == ""
		})
		if !same {
			t.Errorf("bridges %v, want %v", bridges, want)
		}
	})
}

func FuzzParseVPD(f *testing.F) {
	const part = "PN\x0bMCX75310AAS"
	for _, seed := range []string{
		resource(vpdIdentifier, "NVIDIA ConnectX-7") + resource(vpdRead, part+"VU\x038-0RV\x01\x00") + resource(vpdWrite, "RW\x02  ") + "\x78",
		resource(vpdRead, part), "\x82\x20\x00short", "\x90\x05", "\x82", "\x82\x00\x00\x3aab\x00\x00", "\xff\xff\xff\xff", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		vpd := ParseVPD(data)
		if !bytes.Equal(before, data) {
			t.Error("changes the data")
		}
		if vpd == nil {
			return
		}
		if data[0] != vpdIdentifier && data[0] != vpdRead {
			t.Errorf("accepted though it begins with %#x", data[0])
		}
		// Every text is out of the data, less what cannot be printed.
		all := ascii(data)
		check := func(what, text string) {
			if !strings.Contains(all, text) || strings.TrimSpace(text) != text {
				t.Errorf("%s %q is not in the data", what, text)
			}
		}
		check("product", vpd.Product)
		for key, value := range vpd.Fields {
			if len(key) != 2 || !bytes.Contains(data, []byte(key)) {
				t.Errorf("keyword %q is not in the data", key)
			}
			check("value", value)
		}
		if got := vpd.UUID(); got != "" && got != vpd.Fields["VU"] && got != vpd.Fields["V3"] {
			t.Errorf("UUID %q is in neither keyword", got)
		}
	})
}

func FuzzWalkACS(f *testing.F) {
	f.Add([]byte(newSpace(4096).with(0x100, 1, 0x148).with(0x148, 0x0d, 0).control(0x148, 0x1d)))
	f.Add([]byte(newSpace(4096).with(0x100, 1, 0x140).with(0x140, 3, 0x180).with(0x180, 4, 0x140)))
	f.Add([]byte(newSpace(4096).fill(0x100, 0xff)))
	f.Add([]byte(newSpace(256)))
	f.Add([]byte(newSpace(64)))
	f.Add([]byte(newSpace(0x106).with(0x100, 0x0d, 0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		reads := 0
		acs := walkACS(func(buf []byte, offset int64) (int, error) {
			if reads++; reads > (extendedEnd-extendedStart)/4 {
				t.Fatalf("still reading after %d times", reads)
			}
			if offset < 0 || offset+int64(len(buf)) > extendedEnd {
				t.Fatalf("reads at %#x", offset)
			}
			return space(data).readAt(buf, offset)
		})
		switch {
		case acs == nil:
		case len(data) < 256:
			t.Errorf("%+v from %d bytes", acs, len(data))
		case !acs.Present && acs.Control != 0:
			t.Errorf("%+v: controls without capability", acs)
		case acs.Present:
			// Somewhere there is a header of the capability with these controls.
			control := []byte{byte(acs.Control), byte(acs.Control >> 8)}
			for offset := extendedStart; offset+8 <= len(data); offset += 4 {
				if data[offset] == acsCapability && data[offset+1] == 0 && bytes.Equal(data[offset+6:offset+8], control) {
					return
				}
			}
			t.Errorf("%+v is not in the data", acs)
		}
	})
}

func FuzzParseBARs(f *testing.F) {
	const none = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
	for _, seed := range []string{
		"0x0000020000000000 0x00000207ffffffff 0x000000000014220c\n" + strings.Repeat(none, 12), strings.Repeat(none, 6), strings.Repeat(none, 5),
		strings.Repeat("0x1 0xffffffffffffffff 0x200\n", 7), strings.Repeat("1 2 200\n", 6), "", "\n\n\n\n\n\n\n", strings.Repeat("0x 0x 0x\n", 6),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sizes, err := parseBARs(text)
		for i, line := range strings.SplitN(text, "\n", maxBARs+1) {
			if i == maxBARs || err != nil {
				break
			}
			var start, end, flags uint64
			if n, _ := fmt.Sscanf(strings.ReplaceAll(line, "0x", ""), "%x %x %x", &start, &end, &flags); n == 3 && sizes[i] > 0 && end-start+1 != sizes[i] {
				t.Errorf("BAR %d of %q has %d bytes", i, line, sizes[i])
			}
		}
		for nth := range maxBARs + 2 {
			if bar, size := memoryBAR(sizes, nth); size != 0 && (bar < nth || size != sizes[bar]) {
				t.Errorf("BAR %d: %d, %d bytes", nth, bar, size)
			}
		}
	})
}
