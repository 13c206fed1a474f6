package topology

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/pci"
)

// ncclChildren is how many elements NCCL accepts below one (src/graph/xml.h,
// MAX_SUBS; newer releases take more).
const ncclChildren = 128

// ErrFromFile says that the levels already come from an NCCL topology file, so none
// is written from the PCI tree.
var ErrFromFile = errors.New("the levels already come from an NCCL topology file")

// WriteFile returns the machine as an NCCL topology file (NCCL_TOPO_FILE): the
// tree that NCCL makes of it, with GPUs, and with NICs under the function that NCCL
// looks for. NCCL adds the elements gpu, nic and net where it runs, so they are left
// out, and so are functions whose place could not be read. The attributes of CPUs are
// written, since NCCL does not fill them in for a CPU without PCI functions, and
// then fails. The error is ErrFromFile, or says that there is nothing to write or
// more than NCCL accepts.
//
// NCCL's reader is not an XML parser: it accepts no XML declaration, no tabs, no
// entities, and only one space between attributes.
func (m *Matrix) WriteFile(inv *pci.Inventory, cpu kmod.Processor) ([]byte, error) {
	if m.Origin == FromFile && m.FileRefused == nil {
		return nil, ErrFromFile
	}
	w := fileWriter{m: m, inv: inv, called: map[string][]string{}}
	system := w.tree()
	if len(system.below) == 0 {
		return nil, errors.New("no GPU or NIC whose place is known")
	}
	return w.write(system, cpuAttributes(cpu))
}

type fileWriter struct {
	m      *Matrix
	inv    *pci.Inventory
	called map[string][]string // what GPUs and NICs are called, by bus id
	notes  []string
	nets   int // elements nic and net that NCCL adds
	count  int // elements in the file
	out    bytes.Buffer
}

// tree is the tree of all GPUs, NICs and data-direct functions.
func (w *fileWriter) tree() *element {
	var gpus []*pci.Function
	for i := range w.m.GPUs {
		gpu := w.m.GPUs[i].Function
		gpus = append(gpus, gpu)
		w.call(gpu, fmt.Sprintf("GPU%d", i))
	}
	var nics []ncclFunction
	for i := range w.m.NICs {
		n := &w.m.NICs[i]
		if n.Function == nil {
			continue
		}
		nics = append(nics, w.nic(n)...)
		ports := 0
		if n.RDMA != nil {
			ports = len(n.RDMA.Ports)
		}
		w.nets += max(1, ports)
	}
	for i := range w.inv.Functions {
		if f := &w.inv.Functions[i]; f.DataDirectOf != nil {
			nics = append(nics, ncclFunction{fn: f, known: f.RootBus != "", numa: f.RootNUMA})
			w.call(f, "data direct")
			w.nets++
		}
	}
	system := ncclTree(w.inv, nil, gpus, nics)
	system.below = slices.DeleteFunc(system.below, func(cpu *element) bool {
		if cpu.key == unknownCPU {
			w.leaveOut(cpu)
		}
		return cpu.key == unknownCPU || len(cpu.below) == 0
	})
	return system
}

func (w *fileWriter) call(f *pci.Function, name string) {
	key := f.Address.String()
	if name != "" {
		w.called[key] = append(w.called[key], name)
	}
	if f.RootBus == "" {
		w.leaveOut(&element{tag: "pci", key: key})
	}
}

// nic returns the function that NCCL looks for to place a NIC, and not its data-direct
// function, which NCCL before 2.27.3 does not know.
func (w *fileWriter) nic(n *NIC) []ncclFunction {
	own := *n.Function
	own.DataDirect = nil
	at := inNCCL(w.inv, &own)
	switch {
	case !at.known:
		w.call(n.Function, "")
		return nil
	case at.fn == nil:
		w.notes = append(w.notes, fmt.Sprintf("%s: NCCL looks for device 0, function 0 of its bus, which does not exist, and uses the first CPU; NCCL_IB_MERGE_VFS=0 makes it look for function 0",
			strings.TrimSpace(n.Address()+" "+n.Name())))
	default:
		w.call(at.fn, n.Name())
	}
	return []ncclFunction{at}
}

// leaveOut notes what has no known place.
func (w *fileWriter) leaveOut(e *element) {
	if _, ok := w.called[e.key]; ok || e.tag == "pci" && len(e.below) == 0 {
		w.notes = append(w.notes, "left out because its place is not known: "+e.key)
	}
	for _, c := range e.below {
		w.leaveOut(c)
	}
}

const aboutVirtual = `<!-- This is the PCI tree that the hypervisor shows. Where GPUs and NICs share
  a switch on the host, put their pci elements below one here too, with a bus id
  that no function of this machine has:
  <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16"> ... </pci> -->
`

func (w *fileWriter) write(system *element, cpu string) ([]byte, error) {
	if w.m.Origin == Virtual {
		w.out.WriteString(aboutVirtual)
	}
	for _, note := range w.notes {
		fmt.Fprintf(&w.out, "<!-- %s -->\n", withinComment(note))
	}
	w.out.WriteString("<system version=\"1\">\n")
	w.count = 1 + len(system.below)
	for _, e := range system.below {
		fmt.Fprintf(&w.out, "  <cpu numaid=\"%s\"%s>\n", e.key, cpu)
		if err := w.children(e, 4); err != nil {
			return nil, err
		}
		w.out.WriteString("  </cpu>\n")
	}
	w.out.WriteString("</system>\n")
	if total := w.count + w.nets + w.ofGPUs(); total > ncclElements {
		return nil, fmt.Errorf("this machine needs %d elements, with those that NCCL adds, and NCCL accepts at most %d", total, ncclElements)
	}
	return w.out.Bytes(), nil
}

// ofGPUs counts the elements that NCCL adds for GPUs: gpu, nvlink for each
// NVSwitch, c2c.
func (w *fileWriter) ofGPUs() int {
	switches := map[*family.GPU]int{}
	for i := range w.m.GPUs {
		switches[w.m.GPUs[i].GPU] = 0
	}
	for i := range w.inv.Functions {
		for g := range switches {
			if g.SwitchOf(w.inv.Functions[i].IDs()) {
				switches[g]++
			}
		}
	}
	n := 0
	for i := range w.m.GPUs {
		n += 1 + switches[w.m.GPUs[i].GPU]
		if w.m.GPUs[i].Coherent() {
			n++
		}
	}
	return n
}

// cpuAttributes are those of a cpu element, "" where the CPU is not known.
func cpuAttributes(p kmod.Processor) string {
	if p.Arch == "" {
		return ""
	}
	text := fmt.Sprintf(" arch=\"%s\"", p.Arch)
	if p.Vendor != "" && p.Family > 0 && !strings.ContainsFunc(p.Vendor, func(r rune) bool {
		return r != ' ' && !unicode.IsLetter(r) || r > unicode.MaxASCII
	}) {
		text += fmt.Sprintf(" vendor=\"%s\" familyid=\"%d\" modelid=\"%d\"", p.Vendor, p.Family, p.Model)
	}
	return text
}

func (w *fileWriter) children(e *element, indent int) error {
	if len(e.below) > ncclChildren {
		return fmt.Errorf("%d elements below one, and NCCL accepts at most %d", len(e.below), ncclChildren)
	}
	space := strings.Repeat(" ", indent)
	for _, c := range e.below {
		w.count++
		if len(c.nics) > 0 {
			w.count++ // the element nic
		}
		var f *pci.Function // nil for a bridge of which nothing is known
		if a, err := pci.ParseAddress(c.key); err == nil {
			f = w.inv.Find(a)
		}
		w.out.WriteString(w.comment(c, f, space))
		w.out.WriteString(space + "<pci busid=\"" + c.key + "\"" + w.attributes(f))
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

// comment says what a GPU or NIC is.
func (w *fileWriter) comment(e *element, f *pci.Function, space string) string {
	names, ok := w.called[e.key]
	if f != nil && f.Name() != "" && (ok || len(e.nics) > 0) {
		names = append(slices.Clip(names), f.Name())
	}
	if len(names) == 0 {
		return ""
	}
	return space + "<!-- " + withinComment(strings.Join(names, " ")) + " -->\n"
}

// withinComment replaces what a comment may not contain, or what would end it.
func withinComment(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	for strings.Contains(text, "--") {
		text = strings.ReplaceAll(text, "--", "-")
	}
	return text
}

const bridgeClass = 0x060400

// attributes are what is known of a function in NCCL's words.
func (w *fileWriter) attributes(f *pci.Function) string {
	if f == nil || f.Vendor == 0 && f.Class == 0 { // known only because others are below it
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

// link is the most that a function and the bridge right above it can do together,
// in GT/s and lanes, 0 for unknown (src/graph/xml.cc, ncclTopoGetXmlFromSys). NCCL
// asks this of every hop, so the card's own slot (pci.Inventory.Slot) plays no part.
func (w *fileWriter) link(f *pci.Function) (speed float64, width int) {
	ends := pci.LinkEnds{Lower: f.Link}
	if port := w.inv.Port(f); port != nil {
		ends.Upper = port.Link
	}
	return ends.Most()
}
