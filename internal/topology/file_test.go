package topology

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source/pci"
)

// azure is the beginning of a file as Azure ships it: the switches are invented
// (bus ffff:ff), the functions each have a domain of their own.
const azure = `<?xml version="1.0"?>
<!-- a comment -->
<system version="1">
  <cpu numaid="0" affinity="ffffffff,ffffffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16" vendor="0x0000" device="0x0000" subsystem_vendor="0x0000" subsystem_device="0x0000">
      <pci busid="0001:00:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"/>
      <pci busid="0101:00:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16"/>
    </pci>
    <pci busid="ffff:ff:02.0" class="0x060400">
      <pci busid="0002:00:00.0" class="0x030200"/>
      <pci busid="0102:00:00.0" class="0x020700"/>
    </pci>
  </cpu>
  <cpu numaid="1">
    <pci busid="FFFF:FF:03.0" class="0x060400">
      <pci busid="000A:00:00.0" class="0x030200"/>
      <pci busid="010A:00:00.0" class="0x020700"/>
    </pci>
    <pci busid="000b:00:00.0" class="0x030200"/>
  </cpu>
</system>
`

func parse(t *testing.T, text string) *File {
	t.Helper()
	f, err := ParseFile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func at(t *testing.T, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func gpu(t *testing.T, address string) *pci.Function {
	t.Helper()
	return &pci.Function{Address: at(t, address), Vendor: pci.VendorNVIDIA, Device: 0x2330, Class: 0x030200}
}

func nic(t *testing.T, address string) *pci.Function {
	t.Helper()
	return &pci.Function{Address: at(t, address), Vendor: pci.VendorMellanox, Device: 0x101e, Class: 0x020700}
}

// inBoth is a level of nvidia-smi's and one of NCCL's.
type inBoth struct{ Level, NCCL Level }

// rated gives the levels of two functions the file must know.
func rated(t *testing.T, f *File, a, b *pci.Function) inBoth {
	t.Helper()
	p, ok := f.find(a)
	q, ok2 := f.find(b)
	if !ok || !ok2 {
		t.Fatalf("%v found: %v, %v found: %v", a.Address, ok, b.Address, ok2)
	}
	level, nccl := p.levels(q)
	if l, n := q.levels(p); l != level || n != nccl {
		t.Errorf("%v and %v: %v, %v, and %v, %v the other way round", a.Address, b.Address, level, nccl, l, n)
	}
	return inBoth{level, nccl}
}

func TestParseFile(t *testing.T) {
	nested := func(upper, lower string) string {
		return `<system version="1"><cpu numaid="0" host_hash="0x1"><pci busid="0000:01:00.0" class="0x060400" ` + upper + `>
			<pci busid="0000:02:00.0" class="0x060400" ` + lower + `><pci busid="0000:03:00.0" class="0x030200"/></pci>
			<pci busid="0000:04:00.0" class="0x020000"/></pci></cpu></system>`
	}
	const (
		plx  = `vendor="0x10b5" device="0x8796"`
		gen5 = `vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x0001"`
		sub5 = `vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x1001"`
		// The ids in decimal, as nobody writes them, mean the same.
		sub5dec = `vendor="4096" device="49200" subsystem_vendor="4096" subsystem_device="4097"`
	)
	tests := []struct {
		name     string
		text     string
		gpu, nic string
		want     inBoth
	}{
		{"one invented switch", azure, "0001:00:00.0", "0101:00:00.0", inBoth{PIX, PIX}},
		{"two switches of one CPU", azure, "0001:00:00.0", "0102:00:00.0", inBoth{PHB, PHB}},
		{"two CPUs", azure, "0001:00:00.0", "010a:00:00.0", inBoth{SYS, SYS}},
		{"bus ids in upper case", azure, "000a:00:00.0", "010a:00:00.0", inBoth{PIX, PIX}},
		{"no switch above one of them", azure, "000b:00:00.0", "010a:00:00.0", inBoth{PHB, PHB}},
		{"a switch below a switch", nested("", ""), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PXB}},
		{"a switch below one of another kind", nested(gen5, plx), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PXB}},
		{"a switch of two levels, which NCCL takes for one", nested(gen5, sub5), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PIX}},
		{"its ids in decimal", nested(gen5, sub5dec), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PIX}},
		{"an id of more than 16 bits is none", nested(`vendor="0x11000" device="0xc030" subsystem_vendor="0x1000"`, sub5), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PXB}},
		{"an id of more than 16 bits adds nothing", nested(`vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x10001"`, sub5), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PIX}},
		{"garbage for ids", nested(`vendor="4096x" device="0xc030"`, sub5), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PXB}},
		{
			"no NUMA nodes: one CPU",
			`<system><cpu><pci busid="0000:01:00.0"/></cpu><cpu><pci busid="0000:02:00.0"/></cpu></system>`,
			"0000:01:00.0", "0000:02:00.0",
			inBoth{PHB, PHB},
		},
		{
			"no CPUs: one CPU",
			`<system><pci busid="0000:01:00.0"/><pci busid="0000:02:00.0"/></system>`,
			"0000:01:00.0", "0000:02:00.0",
			inBoth{PHB, PHB},
		},
		{
			"one NUMA node of two machines",
			`<system><cpu numaid="0" host_hash="0x1"><pci busid="0000:01:00.0"/></cpu><cpu numaid="0" host_hash="0x2"><pci busid="0000:02:00.0"/></cpu></system>`,
			"0000:01:00.0", "0000:02:00.0",
			inBoth{SYS, SYS},
		},
		{
			"other elements are passed over",
			`<root><other busid="x"/><cpu numaid="0"><group><pci busid="0000:01:00.0"><gpu dev="0"/></pci></group><pci busid="0000:02:00.0"><nic><net name="mlx5_0"/></nic></pci></cpu></root>`,
			"0000:01:00.0", "0000:02:00.0",
			inBoth{PHB, PHB},
		},
		{
			"the last of two elements of one function",
			`<system><cpu numaid="0"><pci busid="0000:01:00.0"/></cpu><cpu numaid="1"><pci busid="0000:01:00.0"/><pci busid="0000:02:00.0"/></cpu></system>`,
			"0000:01:00.0", "0000:02:00.0",
			inBoth{PHB, PHB},
		},
		{
			"the same numbers on another switch",
			`<system><cpu numaid="0"><pci busid="0000:01:00.0"><pci busid="0000:02:00.0"><pci busid="0000:03:00.0"/></pci></pci>
				<pci busid="0000:0a:00.0"><pci busid="0000:0b:00.0"><pci busid="0000:0c:00.0"/></pci></pci></cpu></system>`,
			"0000:03:00.0", "0000:0c:00.0",
			inBoth{PHB, PHB},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := rated(t, parse(t, tt.text), gpu(t, tt.gpu), nic(t, tt.nic)); got != tt.want {
				t.Errorf("%v, %v; want %v, %v", got.Level, got.NCCL, tt.want.Level, tt.want.NCCL)
			}
		})
	}
}

func TestParseFileRefuses(t *testing.T) {
	deep := func(n int) string {
		return strings.Repeat("<group>", n) + `<pci busid="0000:01:00.0"/>` + strings.Repeat("</group>", n)
	}
	many := func(n int) string {
		return "<system>" + strings.Repeat(`<pci busid="0000:01:00.0"/>`, n) + "</system>"
	}
	tests := []struct {
		name, text string
		want       string // how the error begins, "" for none
	}{
		{"as deep as can be", deep(63), ""},
		{"deeper", deep(64), "more elements than a machine has"},
		{"as many as can be", many(65535), ""},
		{"more", many(65536), "more elements than a machine has"},
		{"empty", "", "no pci element"},
		{"no pci element", `<system><cpu numaid="0"/></system>`, "no pci element"},
		{"text", "not XML at all", "no pci element"},
		{"broken", strings.Replace(azure, "</cpu>", "<cpu>", 1), "XML syntax error"},
		{"cut off", azure[:len(azure)/2], "XML syntax error"},
		{"cut off before the end", strings.TrimSuffix(azure, "</system>\n"), "XML syntax error on line 21: unexpected EOF"},
		{"an end too many", azure + "</system>", "XML syntax error on line 22: unexpected end element"},
		{"no bus id", `<system><pci class="0x030200"/></system>`, `pci element: busid: "" is not a PCI address`},
		{"garbage for a bus id", `<system><pci busid="GPU0"/></system>`, `pci element: busid: "GPU0" is not a PCI address`},
		{"spaces in a bus id", `<system><pci busid=" 0000:01:00.0"/></system>`, `pci element: busid: " 0000:01:00.0" is not a PCI address`},
		{"binary", "\x7fELF\x02\x01\x01\x00", "XML syntax error on line 1: illegal character"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := ParseFile([]byte(tt.text))
			if tt.want == "" {
				if f == nil || err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if f != nil || err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%v, %v; want an error that begins with %q", f, err, tt.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	f := parse(t, `<system>
		<cpu numaid="0"><pci busid="0000:10:00.0"><nic><net name="mlx5_0"/><net name="mlx5_7"/></nic></pci></cpu>
		<cpu numaid="1"><pci busid="0000:11:00.0"/></cpu>
		<cpu numaid="2"><pci busid="0000:12:03.0"/></cpu>
		<cpu numaid="3"><pci busid="0000:12:00.0"/></cpu>
		<cpu numaid="4"><pci busid="0000:13:00.1"/></cpu>
	</system>`)
	tests := []struct {
		name string
		fn   *pci.Function
		cpu  string // "" where it is not found
	}{
		{"by address", nic(t, "0000:11:00.0"), "/1"},
		{"the second port of an adapter", nic(t, "0000:11:00.1"), "/1"},
		{"a virtual function: the same device first", nic(t, "0000:12:03.5"), "/2"},
		{"a virtual function: then the first of the bus", nic(t, "0000:12:04.5"), "/3"},
		{"a virtual function: then the first of the bus, whatever its number", nic(t, "0000:12:04.0"), "/3"},
		{"another function of the same device does not do", nic(t, "0000:13:00.2"), ""},
		{"another bus does not do", nic(t, "0000:16:00.1"), ""},
		{"another domain does not do", nic(t, "0001:11:00.0"), ""},
		{"a GPU by address", gpu(t, "0000:11:00.0"), "/1"},
		{"a GPU is not merged", gpu(t, "0000:11:00.1"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, ok := f.find(tt.fn)
			if p.cpu != tt.cpu || ok != (tt.cpu != "") {
				t.Errorf("CPU %q, %v; want %q", p.cpu, ok, tt.cpu)
			}
		})
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(azure))
	f.Add([]byte(azure[:len(azure)/2]))
	f.Add([]byte(`<system><cpu numaid="0" host_hash="0x1"><pci busid="0000:01:00.0" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x0001">
		<pci busid="0000:02:00.0" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x1001"><pci busid="0000:03:00.0"/></pci>
		<pci busid="0000:04:00.0"><nic><net name="mlx5_0"/></nic></pci></pci></cpu></system>`))
	f.Add([]byte(`<pci busid="10000:e1:00.0"/>`))
	f.Add([]byte(strings.Repeat("<a>", 70)))
	f.Add([]byte(`<pci busid="0000:00:00.0"><net name=""/></pci><net/>`))
	f.Add([]byte(""))
	f.Add([]byte("&#A"))
	f.Add([]byte(named))
	f.Add([]byte(`<!DOCTYPE x [<!ENTITY a "b">]><?p q?><a b:busid='1&amp;2'>&lt;<![CDATA[x]]></a><b>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := ParseFile(data)
		if (file == nil) != (err != nil) {
			t.Fatalf("%v, %v: neither or both", file, err)
		}
		if same, sameErr := ParseFile(DecidingText(data)); !reflect.DeepEqual(file, same) || fmt.Sprint(err) != fmt.Sprint(sameErr) {
			t.Fatalf("%v, %v; with the text that decides %v, %v", file, err, same, sameErr)
		}
		if err != nil {
			return
		}
		if len(file.byAddress) == 0 {
			t.Fatal("accepted without functions")
		}
		text := strings.ToLower(string(data))
		var places []filePlace
		for address, place := range file.byAddress {
			if !strings.Contains(text, strings.TrimLeft(address.String(), "0")) && !strings.Contains(text, "&") {
				t.Errorf("%v is not in the data", address)
			}
			if got, ok := file.find(&pci.Function{Address: address}); !ok || got.cpu != place.cpu || !slices.Equal(got.switches, place.switches) {
				t.Errorf("%v is not found where it stands", address)
			}
			if len(place.switches) >= 64 {
				t.Errorf("%v stands below %d switches", address, len(place.switches))
			}
			places = append(places, place)
		}
		places = places[:min(len(places), 10)]
		for _, p := range places {
			if level, nccl := p.levels(p); level > PHB || nccl > PHB || level == Unknown || (level == PIX) != (len(p.switches) > 0) {
				t.Errorf("%v to itself: %v, %v", p, level, nccl)
			}
			for _, q := range places {
				level, nccl := p.levels(q)
				if l, n := q.levels(p); l != level || n != nccl {
					t.Errorf("%v and %v: %v, %v, and %v, %v the other way round", p, q, level, nccl, l, n)
				}
				for _, l := range []Level{level, nccl} {
					if l != PIX && l != PXB && l != PHB && l != SYS {
						t.Errorf("%v and %v: %v, NCCL's %v", p, q, level, nccl)
					}
				}
			}
		}
	})
}

// named is a file that tells whose it is.
const named = `<?xml version="1.0"?>
<!-- hostname: gpu-node-7.example.com -->
<system version="1" x:hostname = "gpu-node-7.example.com"
  serial='MT2310XZ0ABC &amp; 2'>
  <cpu numaid="0" arch="x86_64"><pci busid="0001:00:00.0" link_speed="32.0 GT/s PCIe"/>node 7</cpu>
</system>
behind it: node-7
`

func TestDecidingText(t *testing.T) {
	const want = `<?xml version="1.0"?>
<!-- xxxxxxxx: xxx-xxxx-x.xxxxxxx.xxx -->
<system version="1" x:hostname = "xxx-xxxx-x.xxxxxxx.xxx"
  serial='xxxxxxxxxxxx &amp; x'>
  <cpu numaid="0" arch="x86_64"><pci busid="0001:00:00.0" link_speed="32.0 GT/s PCIe"/>xxxx x</cpu>
</system>
xxxxxx xx: xxxx-x
`
	if diff := cmp.Diff(want, string(DecidingText([]byte(named)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const broken, hidden = "<a host='x'><b></a> node-7", "<a host='x'><b></a> xxxx-x"
	if got := string(DecidingText([]byte(broken))); got != hidden {
		t.Errorf("%q, want %q", got, hidden)
	}
}
