package topology

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdr-features/source/pci"
)

// What NCCL takes of a topology file (src/graph/topo.h, src/graph/xml.h): so many
// elements with those it adds itself, and so many below one (newer releases take
// more).
const (
	ncclElements = 256
	ncclChildren = 128
)

// ErrFromFile tells that the levels are those of an NCCL topology file, so that
// there is none to be made from the PCI tree.
var ErrFromFile = errors.New("the levels are those of an NCCL topology file already")

// WriteFile gives the machine as an NCCL topology file (NCCL_TOPO_FILE): GPUs,
// adapters and the switches above them, each below the NUMA node that NCCL would
// put it on. NCCL fills in elements gpu, nic and net and the processors'
// attributes where it runs, so they are left out; so is what could not be read.
//
// NCCL's reader is not an XML parser: it refuses an XML declaration, and takes
// one space between attributes, no tabs, and no entities.
func (m *Map) WriteFile(inv *pci.Inventory) ([]byte, error) {
	if m.Source == FromFile {
		return nil, ErrFromFile
	}
	w := fileWriter{m: m, inv: inv, cpus: map[int]*branch{}}
	w.names()
	for i := range inv.Functions {
		w.function(&inv.Functions[i])
	}
	if len(w.cpus) == 0 {
		return nil, errors.New("no GPU or adapter whose place is known")
	}
	return w.write()
}

// branch is an element with what is below it.
type branch struct {
	address string
	fn      *pci.Function // nil for a bridge of which nothing is known
	below   []*branch
	by      map[string]*branch
}

// under gives the branch of an address below b, a new one where there is none.
func (b *branch) under(address string, fn *pci.Function) *branch {
	if c, ok := b.by[address]; ok {
		return c
	}
	c := &branch{address: address, fn: fn}
	if b.by == nil {
		b.by = map[string]*branch{}
	}
	b.by[address] = c
	b.below = append(b.below, c)
	return c
}

type fileWriter struct {
	m        *Map
	inv      *pci.Inventory
	called   map[pci.Address][]string // what GPUs and adapters are called
	cpus     map[int]*branch          // by NUMA node
	left     []string                 // functions whose place is not known
	adapters int
	elements int
	out      bytes.Buffer
}

// names finds the functions that belong into the file.
func (w *fileWriter) names() {
	w.called = map[pci.Address][]string{}
	for i := range w.m.GPUs {
		w.called[w.m.GPUs[i].Address] = []string{fmt.Sprintf("GPU%d", i)}
	}
	for i := range w.m.NICs {
		n := &w.m.NICs[i]
		if n.Function == nil {
			continue
		}
		a := w.inv.Place(n.Function).Address
		names := w.called[a]
		if n.Name() != "" && n.Function.Address == a {
			names = append(names, n.Name())
		}
		w.called[a] = names
	}
	for i := range w.inv.Functions {
		if f := &w.inv.Functions[i]; f.Kind() == pci.DataDirect {
			w.called[f.Address] = []string{"data direct"}
		}
	}
}

// function puts a function below its switches.
func (w *fileWriter) function(f *pci.Function) {
	if _, ok := w.called[f.Address]; !ok {
		return
	}
	if f.RootBus == "" || f.RootNUMA == pci.Unread {
		w.left = append(w.left, f.Address.String())
		return
	}
	b, ok := w.cpus[f.RootNUMA]
	if !ok {
		b = &branch{}
		w.cpus[f.RootNUMA] = b
	}
	for _, a := range slices.Backward(f.Switches()) {
		b = b.under(a.String(), w.inv.Find(a))
	}
	b.under(f.Address.String(), f)
	if f.Kind() != pci.GPU {
		w.adapters++
	}
}

const aboutVirtual = `<!-- This is the PCI tree that the hypervisor shows. Where GPUs and adapters share
  a switch on the host, put their pci elements below one here too, with a bus id
  that no function of this machine has:
  <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16"> ... </pci> -->
`

func (w *fileWriter) write() ([]byte, error) {
	if w.m.Source == Virtual {
		w.out.WriteString(aboutVirtual)
	}
	for _, a := range w.left {
		fmt.Fprintf(&w.out, "<!-- left out, its place is not known: %s -->\n", a)
	}
	w.out.WriteString("<system version=\"1\">\n")
	nodes := make([]int, 0, len(w.cpus))
	for n := range w.cpus {
		nodes = append(nodes, n)
	}
	slices.Sort(nodes)
	w.elements = 1 + len(nodes)
	for _, n := range nodes {
		fmt.Fprintf(&w.out, "  <cpu numaid=\"%d\">\n", n)
		if err := w.children(w.cpus[n], 4); err != nil {
			return nil, err
		}
		w.out.WriteString("  </cpu>\n")
	}
	w.out.WriteString("</system>\n")
	const own = 1 // each process adds its own GPU, and nic and net of each adapter
	if total := w.elements + own + 2*w.adapters; total > ncclElements {
		return nil, fmt.Errorf("this machine makes %d elements with those that NCCL adds, and NCCL takes no more than %d", total, ncclElements)
	}
	return w.out.Bytes(), nil
}

func (w *fileWriter) children(b *branch, indent int) error {
	if len(b.below) > ncclChildren {
		return fmt.Errorf("%d elements below one, and NCCL takes no more than %d", len(b.below), ncclChildren)
	}
	slices.SortFunc(b.below, func(x, y *branch) int { return strings.Compare(x.address, y.address) })
	space := strings.Repeat(" ", indent)
	for _, c := range b.below {
		w.elements++
		w.out.WriteString(w.comment(c, space))
		w.out.WriteString(space + "<pci busid=\"" + c.address + "\"" + w.attributes(c))
		if len(c.below) == 0 {
			w.out.WriteString("/>\n")
			continue
		}
		w.out.WriteString(">\n")
		if err := w.children(c, indent+2); err != nil {
			return err
		}
		w.out.WriteString(space + "</pci>\n")
	}
	return nil
}

// comment says what a GPU or adapter is. Nothing in it may end the comment.
func (w *fileWriter) comment(b *branch, space string) string {
	if b.fn == nil {
		return ""
	}
	names, ok := w.called[b.fn.Address]
	if !ok {
		return ""
	}
	words := names
	if product := b.fn.Name(); product != "" {
		words = append(slices.Clip(names), product)
	}
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, strings.Join(words, " "))
	for strings.Contains(text, "--") {
		text = strings.ReplaceAll(text, "--", "-")
	}
	if text == "" {
		return ""
	}
	return space + "<!-- " + text + " -->\n"
}

const bridgeClass = 0x060400

// attributes are what is known of a function in NCCL's words.
func (w *fileWriter) attributes(b *branch) string {
	f := b.fn
	if f == nil || f.Vendor == 0 && f.Class == 0 { // others stand below it
		return fmt.Sprintf(" class=\"%#06x\"", bridgeClass)
	}
	text := fmt.Sprintf(" class=\"%#06x\" vendor=\"%#04x\" device=\"%#04x\"", f.Class, f.Vendor, f.Device)
	if f.SubVendor != 0 || f.SubDevice != 0 {
		text += fmt.Sprintf(" subsystem_vendor=\"%#04x\" subsystem_device=\"%#04x\"", f.SubVendor, f.SubDevice)
	}
	speed, width := w.link(f)
	if speed > 0 {
		text += fmt.Sprintf(" link_speed=\"%.1f GT/s PCIe\"", speed)
	}
	if width > 0 {
		text += fmt.Sprintf(" link_width=\"%d\"", width)
	}
	return text
}

// link is the most that a function and the bridge above it can do together, as
// NCCL takes it (src/graph/xml.cc, ncclTopoGetXmlFromSys); 0 for unknown.
func (w *fileWriter) link(f *pci.Function) (speed float64, width int) {
	ends := []*pci.Link{f.Link}
	if n := len(f.Bridges); n > 0 {
		if above := w.inv.Find(f.Bridges[n-1]); above != nil {
			ends = append(ends, above.Link)
		}
	}
	for _, end := range ends {
		if end == nil {
			continue
		}
		if speed == 0 || end.MaxSpeed > 0 && end.MaxSpeed < speed {
			speed = end.MaxSpeed
		}
		if width == 0 || end.MaxWidth > 0 && end.MaxWidth < width {
			width = end.MaxWidth
		}
	}
	return speed, width
}
