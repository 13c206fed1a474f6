package nccl

import (
	"slices"
	"strings"
	"testing"

	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/test/testsize"
)

// azure is the beginning of a file as Azure ships it: the switches are invented
// (bus ffff:ff), the functions each have a domain of their own.
const azure = `<!-- a comment -->
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
    <pci busid="ffff:ff:03.0" class="0x060400">
      <pci busid="000a:00:00.0" class="0x030200"/>
      <pci busid="010a:00:00.0" class="0x020700"/>
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
	f := pci.Function{Address: at(t, address), Vendor: 0x10de, Device: 0x2330, Class: 0x030200}
	f.Classify(family.Known())
	return &f
}

func nic(t *testing.T, address string) *pci.Function {
	t.Helper()
	f := pci.Function{Address: at(t, address), Vendor: 0x15b3, Device: 0x101e, Class: 0x020700}
	f.Classify(family.Known())
	return &f
}

// rated returns the level of two functions that the file must know.
func rated(t *testing.T, f *File, a, b *pci.Function) Path {
	t.Helper()
	p, q := f.Find(a), f.Find(b)
	if p == nil || q == nil {
		t.Fatalf("%v found: %v, %v found: %v", a.Address, p != nil, b.Address, q != nil)
	}
	level := p.Path(q)
	if l := q.Path(p); l != level {
		t.Errorf("%v and %v: %v, and %v the other way round", a.Address, b.Address, level, l)
	}
	return level
}

// inNCCLFile returns NCCL's level of two functions that are below no bridge of their
// own on NUMA node 0, with the file.
func inNCCLFile(f *File, a, b *pci.Function) Path {
	for _, fn := range []*pci.Function{a, b} {
		fn.RootBus = "pci0000:00"
	}
	inv := &pci.Inventory{Functions: []pci.Function{*a, *b}}
	slices.SortFunc(inv.Functions, func(x, y pci.Function) int { return x.Address.Compare(y.Address) })
	m := Machine{PCI: inv, File: f, GPUs: []*pci.Function{a}}
	at := GetPCIPath(inv, b)
	return m.Rate([]NIC{{Function: b, At: at}}).Path(a, at)
}

// inBoth is a path by the file alone and one as NCCL rates it.
type inBoth struct{ Path, NCCL Path }

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
		// Ids in decimal mean the same.
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
		{"no switch above one of them", azure, "000b:00:00.0", "010a:00:00.0", inBoth{PHB, PHB}},
		{"a switch below a switch", nested("", ""), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PXB}},
		{"a switch below one of another kind", nested(gen5, plx), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PXB}},
		{"a switch of two levels, which NCCL takes for one", nested(gen5, sub5), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PIX}},
		{"its ids in decimal", nested(gen5, sub5dec), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PIX}},
		{"an id of more than 16 bits, of which NCCL drops those above", nested(`vendor="0x11000" device="0xc030" subsystem_vendor="0x1000"`, sub5), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PIX}},
		{"one that runs over into the id beside it", nested(`vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x10001"`, sub5), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PXB}},
		{"garbage behind an id", nested(`vendor="4096x" device="0xc030" subsystem_vendor="0x1000"`, sub5), "0000:03:00.0", "0000:04:00.0", inBoth{PXB, PIX}},
		{
			"two CPUs of one number",
			`<system version="1"><cpu numaid="0" host_hash="0x1"><pci busid="0000:01:00.0"/></cpu><cpu numaid="0" host_hash="0x2"><pci busid="0000:02:00.0"/></cpu></system>`,
			"0000:01:00.0", "0000:02:00.0",
			inBoth{SYS, SYS},
		},
		{
			"two switches of one bus id, below two CPUs",
			`<system version="1"><cpu numaid="0"><pci busid="ffff:ff:01.0" class="0x060400"><pci busid="0000:01:00.0"/></pci></cpu>
				<cpu numaid="1"><pci busid="ffff:ff:01.0" class="0x060400"><pci busid="0000:02:00.0"/></pci></cpu></system>`,
			"0000:01:00.0", "0000:02:00.0",
			inBoth{SYS, SYS},
		},
		{
			"two switches of one bus id, one below the other",
			`<system version="1"><cpu numaid="0"><pci busid="ffff:ff:01.0" class="0x060400"><pci busid="0000:01:00.0"/>
				<pci busid="ffff:ff:01.0" class="0x060400"><pci busid="0000:02:00.0"/></pci></pci></cpu></system>`,
			"0000:01:00.0", "0000:02:00.0",
			inBoth{PXB, PXB},
		},
		{
			"other elements are passed over",
			`<system version="1"><other busid="x"/><cpu numaid="0"><pci busid="0000:01:00.0"><gpu dev="0"/></pci><group><pci busid="0000:02:00.0"/></group></cpu>
				<cpu numaid="1"><pci busid="0000:02:00.0"><nic><net name="mlx5_0"/></nic></pci></cpu></system>`,
			"0000:01:00.0", "0000:02:00.0",
			inBoth{SYS, SYS},
		},
		{
			"two hyphens within a comment",
			`<system version="1"><!-- a -- b --><cpu numaid="0"><pci busid="0000:01:00.0"/><!----><pci busid="0000:02:00.0"/></cpu></system>`,
			"0000:01:00.0", "0000:02:00.0",
			inBoth{PHB, PHB},
		},
		{
			"the first of two elements of one function",
			`<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0"/></cpu><cpu numaid="1"><pci busid="0000:01:00.0"/><pci busid="0000:02:00.0"/></cpu></system>`,
			"0000:01:00.0", "0000:02:00.0",
			inBoth{SYS, SYS},
		},
		{
			"the same numbers on another switch",
			`<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0" class="0x060400"><pci busid="0000:02:00.0" class="0x060400"><pci busid="0000:03:00.0"/></pci></pci>
				<pci busid="0000:0a:00.0" class="0x060400"><pci busid="0000:0b:00.0" class="0x060400"><pci busid="0000:0c:00.0"/></pci></pci></cpu></system>`,
			"0000:03:00.0", "0000:0c:00.0",
			inBoth{PHB, PHB},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, a, b := parse(t, strings.ReplaceAll(tt.text, "\t", "")), gpu(t, tt.gpu), nic(t, tt.nic)
			if got := (inBoth{rated(t, f, a, b), inNCCLFile(f, a, b)}); got != tt.want {
				t.Errorf("%v, %v; want %v, %v", got.Path, got.NCCL, tt.want.Path, tt.want.NCCL)
			}
		})
	}
}

func TestParseFileRefuses(t *testing.T) {
	deep := func(n int) string {
		return "<system><cpu>" + strings.Repeat(`<pci busid="0000:01:00.0">`, n) + strings.Repeat("</pci>", n) + "</cpu></system>"
	}
	many := func(n int) string {
		return "<system><cpu>" + strings.Repeat(`<pci busid="0000:01:00.0"/>`, n) + "</cpu></system>"
	}
	tests := []struct {
		name, text string
		want       string // how the error begins, "" for none
	}{
		{"as deep as can be", deep(62), ""},
		{"deeper", deep(63), "more elements than a machine has"},
		{"as many as can be", many(65534), ""},
		{"more", many(65535), "more elements than a machine has"},
		{"empty", "", "no pci element"},
		{"no pci element", `<system><cpu numaid="0"/></system>`, "no pci element"},
		{"no system", `<root><cpu numaid="0"><pci busid="0000:01:00.0"/></cpu></root>`, "no pci element"},
		{"a pci element outside of any cpu", `<system><pci busid="0000:01:00.0"/></system>`, "no pci element"},
		{"text", "not XML at all", "no pci element"},
		{"broken", strings.Replace(azure, "</cpu>", "<cpu>", 1), "XML syntax error"},
		{"cut off", azure[:len(azure)/2], "XML syntax error"},
		{"cut off before the end", strings.TrimSuffix(azure, "</system>\n"), "XML syntax error on line 20: unexpected EOF"},
		{"an end too many", azure + "</system>", "XML syntax error on line 21: unexpected end element"},
		{"binary", "\x7fELF\x02\x01\x01\x00", "XML syntax error on line 1: illegal character"},
	}
	for _, tt := range testsize.Share(tests) {
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
		<cpu numaid="4"><pci busid="0000:13:00.1"/><pci busid="000A:00:00.0"/></cpu>
	</system>`)
	tests := []struct {
		name string
		fn   *pci.Function
		cpu  string // "" where it is not found
	}{
		{"by address", nic(t, "0000:11:00.0"), "1"},
		{"the second port of a NIC", nic(t, "0000:11:00.1"), "1"},
		{"a virtual function: the same device first", nic(t, "0000:12:03.5"), "2"},
		{"a virtual function: then the first of the bus", nic(t, "0000:12:04.5"), "3"},
		{"a virtual function: then the first of the bus, whatever its number", nic(t, "0000:12:04.0"), "3"},
		{"another function of the same device does not do", nic(t, "0000:13:00.2"), ""},
		{"another bus does not do", nic(t, "0000:16:00.1"), ""},
		{"another domain does not do", nic(t, "0001:11:00.0"), ""},
		{"a GPU by address", gpu(t, "0000:11:00.0"), "1"},
		{"a GPU is not merged", gpu(t, "0000:11:00.1"), ""},
		{"a bus id in upper case, which NCCL does not find", gpu(t, "000a:00:00.0"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cpu := ""
			if e := f.Find(tt.fn); e != nil {
				cpu = e.parent.attr("numaid")
			}
			if cpu != tt.cpu {
				t.Errorf("CPU %q, want %q", cpu, tt.cpu)
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
	f.Add([]byte(`<!DOCTYPE x [<!ENTITY a "b">]><?p q?><a b:busid='1&amp;2'>&lt;<![CDATA[x]]></a><b>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := ParseFile(data)
		if (file == nil) != (err != nil) {
			t.Fatalf("%v, %v: neither or both", file, err)
		}
		if err != nil {
			return
		}
		if len(file.pci) == 0 {
			t.Fatal("accepted without functions")
		}
		if why := file.RefusedFor(nil); why != nil && !strings.HasPrefix(why.Error(), "line ") {
			t.Error(why)
		}
		var elements []*Element
		for _, e := range file.pci {
			if elements = append(elements, e); len(elements) == 10 {
				break
			}
		}
		for _, p := range elements {
			if level := p.Path(p); level != PIX {
				t.Errorf("%q to itself: %v", p.attr("busid"), level)
			}
			for _, q := range elements {
				level := p.Path(q)
				if back := q.Path(p); back != level || level != PIX && level != PXB && level != PHB && level != SYS {
					t.Errorf("%q and %q: %v, and %v the other way round", p.attr("busid"), q.attr("busid"), level, back)
				}
			}
		}
		inv := &pci.Inventory{Functions: []pci.Function{*gpu(t, "0000:01:00.0"), *nic(t, "0000:02:00.0")}}
		for i := range inv.Functions {
			inv.Functions[i].RootBus = "pci0000:00"
		}
		m := Machine{PCI: inv, File: file, GPUs: []*pci.Function{&inv.Functions[0]}}
		m.Rate([]NIC{{Function: &inv.Functions[1], At: GetPCIPath(inv, &inv.Functions[1])}})
	})
}
