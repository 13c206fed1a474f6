package topology_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gdr-features/source/pci"
	"gdr-features/source/rdma"
	"gdr-features/test/machine"
	"gdr-features/test/testsize"
	"gdr-features/topology"
	"gdr-features/topology/nccl"
	"gdr-features/verdict"
)

// placed reports whether there is the function by which NCCL places a NIC: device 0,
// function 0 of its bus.
func placed(r *verdict.Node, nic *pci.Function) bool {
	return slices.ContainsFunc(r.PCI.Functions, func(f pci.Function) bool {
		return f.Address.Domain == nic.Address.Domain && f.Address.Bus == nic.Address.Bus && f.Address.Device == 0 && f.Address.Function == 0
	})
}

// TestWriteFileRoundTrip: the NCCL topology file of every machine, given back as
// its topology file, makes the same NCCL levels.
func TestWriteFileRoundTrip(t *testing.T) {
	pairs := 0
	for _, m := range testsize.Share(machine.All(t, machinesDir)) {
		t.Run(m.Name, func(t *testing.T) {
			r := ready(t, m)
			text, err := r.Matrix.WriteFile(&r.PCI, r.Platform.CPU)
			if len(r.Matrix.GPUs)+len(r.Matrix.NICs) == 0 {
				if err == nil {
					t.Error("a file of a machine without GPUs and NICs")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			version := 1
			if slices.ContainsFunc(r.Matrix.GPUs, func(g topology.GPU) bool { return g.GPU.RCCL }) {
				version = 2 // ROCm/rccl src/graph/xml.h, 0cbce2a7
			}
			for _, objection := range ncclObjects(text, version) {
				t.Error(objection)
			}
			back, err := nccl.ParseFile(text)
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			again := withFile(t, m, back)
			if diff := cmp.Diff(rated(r), rated(again)); diff != "" {
				t.Errorf("NCCL levels (-machine +file):\n%s\n%s", diff, text)
			}
			for _, p := range again.Matrix.Pairs {
				pairs++
				if f := again.Matrix.NICs[p.NIC].Function; f != nil && f.RootBus != "" && !p.FromFile && placed(again, f) {
					t.Errorf("%v and %s are not in the file", again.Matrix.GPUs[p.GPU].Address, again.Matrix.NICs[p.NIC].Address())
				}
			}
		})
	}
	if pairs == 0 {
		t.Error("no pair was compared")
	}
}

// rated returns what NCCL makes of each pair.
func rated(r *verdict.Node) map[string]string {
	out := map[string]string{}
	for _, p := range r.Matrix.Pairs {
		n := &r.Matrix.NICs[p.NIC]
		key := r.Matrix.GPUs[p.GPU].Address.String() + " " + n.Address() + " " + n.Name()
		out[key] = fmt.Sprint(p.NCCL, " ", p.Default)
	}
	return out
}

var (
	comments  = regexp.MustCompile(`<!-- (?s:.*?) -->`)
	ncclLine  = regexp.MustCompile(`^ *(<(system|cpu|pci|pcilink)( [a-z_]+="[^"<>&']*")+/?>|</(system|cpu|pci)>)?$`)
	attribute = regexp.MustCompile(` ([a-z_]+)="([^"]*)"`)
	within    = map[string]string{"system": "", "cpu": "system", "pci": "cpu pci", "pcilink": "pci"}
)

// ncclObjects says what NCCL's reader would not accept (src/graph/xml.cc, xml.h):
// it is no XML parser, so each line must have the form that NCCL itself writes.
func ncclObjects(text []byte, version int) []string {
	var list []string
	for line := range strings.Lines(comments.ReplaceAllString(string(text), "")) {
		if !ncclLine.MatchString(strings.TrimSuffix(line, "\n")) {
			list = append(list, fmt.Sprintf("line %q", line))
		}
		attributes := attribute.FindAllStringSubmatch(line, -1)
		if len(attributes) > 16 {
			list = append(list, fmt.Sprintf("%d attributes: %s", len(attributes), line))
		}
		for _, a := range attributes {
			if len(a[2]) > 255 || a[2] == "" {
				list = append(list, "value of "+a[0])
			}
		}
	}
	if want := fmt.Sprintf("<system version=\"%d\">", version); !bytes.Contains(text, []byte(want)) {
		list = append(list, "no "+want)
	}
	return append(list, structure(text)...)
}

// structure reads the file as XML and checks nesting and NCCL's bounds.
func structure(text []byte) []string {
	var list, open []string
	below := []int{0}
	elements := 0
	dec := xml.NewDecoder(bytes.NewReader(text))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return append(list, err.Error())
		}
		switch e := token.(type) {
		case xml.StartElement:
			elements++
			parent := ""
			if len(open) > 0 {
				parent = open[len(open)-1]
			}
			if !slices.Contains(strings.Split(within[e.Name.Local], " "), parent) {
				list = append(list, e.Name.Local+" below "+parent)
			}
			if below[len(below)-1]++; below[len(below)-1] > 128 {
				list = append(list, "more than 128 below "+parent)
			}
			open, below = append(open, e.Name.Local), append(below, 0)
		case xml.EndElement:
			open, below = open[:len(open)-1], below[:len(below)-1]
		}
	}
	if elements > 256 {
		list = append(list, fmt.Sprintf("%d elements", elements))
	}
	return list
}

// parsed reads a machine from a description.
func parsed(t *testing.T, text string) *verdict.Node {
	t.Helper()
	m, err := machine.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return withFile(t, m, nil)
}

// TestWriteFileHostileName: names of RDMA devices come from the machine and go into
// comments, which they must not end.
func TestWriteFileHostileName(t *testing.T) {
	r := parsed(t, "pci0000:00 numa=0\n  0000:00:01.0 port 8086:352a\n    0000:01:00.0 gpu 10de:2330\n  0000:00:02.0 port 8086:352a\n    0000:02:00.0 ib 15b3:1021 rdma=mlx5_0\n")
	plain, err := r.Matrix.WriteFile(&r.PCI, r.Platform.CPU)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"--><pci busid=\"0000:99:00.0\"/><!--", "---->", "a--", "\x00\xff\t\n", "&lt;\"'", "-"} {
		r.Matrix.NICs[0].RDMA.Name = name
		text, err := r.Matrix.WriteFile(&r.PCI, r.Platform.CPU)
		if err != nil {
			t.Fatal(err)
		}
		odd := bytes.IndexFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') })
		if objections := ncclObjects(text, 1); len(objections) > 0 || odd >= 0 || bytes.Count(text, []byte("\n")) != bytes.Count(plain, []byte("\n")) {
			t.Errorf("%q: %v\n%s", name, objections, text)
		}
	}
}

// TestWriteFilePlaces: the NUMA node is that of the topmost switch, the link is
// the slower of both ends, and what is not known is left out.
func TestWriteFilePlaces(t *testing.T) {
	r := parsed(t, `nodes 2
pci0000:00 numa=0
  0000:00:01.0 port 8086:352a width=8
    0000:01:00.0 switch 1000:c030 sub=1000:0016 numa=1
      0000:02:00.0 port 1000:c030
        0000:03:00.0 gpu 10de:2330 numa=0
      0000:02:01.0 port 1000:c030 width=4
        0000:04:00.0 ib 15b3:1021 rdma=mlx5_0
      0000:02:02.0 port 1000:c030
        0000:05:00.0 ib 15b3:1021 rdma=mlx5_1
`)
	for i := range r.PCI.Functions {
		switch f := &r.PCI.Functions[i]; f.Address.Bus {
		case 3:
			f.Link = nil
		case 5:
			f.RootBus = ""
		}
	}
	text, err := r.Matrix.WriteFile(&r.PCI, r.Platform.CPU)
	const want = `<!-- left out because its place is not known: 0000:05:00.0 -->
<system version="1">
  <cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:01:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x0016" link_speed="32.0 GT/s PCIe" link_width="8">
      <!-- GPU0 H100 SXM5 80GB -->
      <pci busid="0000:03:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16"/>
      <!-- mlx5_0 ConnectX-7 -->
      <pci busid="0000:04:00.0" class="0x020700" vendor="0x15b3" device="0x1021" link_speed="32.0 GT/s PCIe" link_width="4"/>
    </pci>
  </cpu>
</system>
`
	if diff := cmp.Diff(want, string(text)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestWriteFileRefuses: no file is written that NCCL would refuse, or when the
// levels come from a file already.
func TestWriteFileRefuses(t *testing.T) {
	flat := func(n int) string {
		var b strings.Builder
		b.WriteString("pci0000:00 numa=0\n  0000:00:01.0 gpu 10de:2330\n")
		for i := range n {
			fmt.Fprintf(&b, "pci%04x:00 numa=%d\n  %04x:00:00.0 ib 15b3:1021 rdma=mlx5_%d\n", i+1, i%2, i+1, i)
		}
		return b.String()
	}
	many := func(gpus int) string {
		var b strings.Builder
		for i := range gpus {
			fmt.Fprintf(&b, "pci%04x:00 numa=0\n  %04x:00:00.0 gpu 10de:2330\n", i, i)
		}
		return b.String()
	}
	// With an AMD GPU the file is for RCCL, which takes 8192 elements (ROCm/rccl@0cbce2a7
	// src/graph/xml.h, MAX_NODES).
	amd := func(gpus int) string {
		return strings.ReplaceAll(many(gpus), "gpu 10de:2330", "120000 1002:74a1")
	}
	type machineOf struct{ name, text, want string }
	for _, tt := range testsize.Share([]machineOf{
		{"many NICs", flat(83), ""},
		{"more elements than NCCL takes", flat(84), "this machine needs 257 elements, with those that NCCL adds, and NCCL accepts at most 256"},
		{"as many elements as NCCL takes, two for each GPU", many(127), ""},
		{"one GPU more", many(128), "this machine needs 258 elements, with those that NCCL adds, and NCCL accepts at most 256"},
		{"and one for each NVSwitch that a GPU is linked to", many(84) + "pcif000:00 numa=0\n  f000:00:00.0 068000 10de:22a3\n", ""},
		{"one GPU more, with an NVSwitch", many(85) + "pcif000:00 numa=0\n  f000:00:00.0 068000 10de:22a3\n", "this machine needs 257 elements, with those that NCCL adds, and NCCL accepts at most 256"},
		{"AMD's GPUs, of which RCCL takes more", amd(128), ""},
		{"nothing", "pci0000:00 numa=0\n  0000:00:01.0 port 8086:352a\n", "no GPU or NIC whose place is known"},
	}) {
		t.Run(tt.name, func(t *testing.T) {
			r := parsed(t, tt.text)
			_, err := r.Matrix.WriteFile(&r.PCI, r.Platform.CPU)
			if got := fmt.Sprint(err); tt.want == "" && err != nil || tt.want != "" && got != tt.want {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	ofAMD := parsed(t, amd(1)+"pcif000:00 numa=0\n  f000:00:00.0 ib 15b3:1021 rdma=mlx5_0\n")
	ofAMD.Matrix.NICs[0].RDMA.Ports = make([]rdma.Port, 8192) // each is an element
	_, err := ofAMD.Matrix.WriteFile(&ofAMD.PCI, ofAMD.Platform.CPU)
	if want := "this machine needs 8198 elements, with those that RCCL adds, and RCCL accepts at most 8192"; fmt.Sprint(err) != want {
		t.Errorf("more elements than RCCL takes: %v, want %q", err, want)
	}
	m := load(t, "azure-ndv5-h100")
	r := ready(t, m)
	text, err := r.Matrix.WriteFile(&r.PCI, r.Platform.CPU)
	if err != nil {
		t.Fatal(err)
	}
	file, err := nccl.ParseFile(text)
	if err != nil {
		t.Fatal(err)
	}
	again := withFile(t, m, file)
	if _, err := again.Matrix.WriteFile(&again.PCI, again.Platform.CPU); !errors.Is(err, topology.ErrFromFile) {
		t.Errorf("%v", err)
	}
}
