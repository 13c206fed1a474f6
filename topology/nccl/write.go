package nccl

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdr-features/source/pci"
)

// maxSubs is how many elements NCCL accepts below one (src/graph/xml.h, MAX_SUBS; newer releases
// take more).
const maxSubs = 128

// Writer writes a machine as an NCCL topology file (NCCL_TOPO_FILE): what its processes come to
// together, with GPUs, and with NICs under the function that NCCL looks for. NCCL adds the
// elements gpu, nic and net where it runs, so they are left out, and so are functions whose place
// could not be read. The attributes of CPUs are written, since NCCL does not fill them in for a
// CPU without PCI functions, and then fails.
type Writer struct {
	Machine

	nics   []Device
	called map[string][]string // what GPUs and NICs are called, by bus id
	notes  []string
	extra  int // elements that NCCL adds, and the tree does not have
	out    bytes.Buffer
}

// AddGPU adds a GPU, with what to call it.
func (w *Writer) AddGPU(f *pci.Function, name string) {
	w.GPUs = append(w.GPUs, f)
	w.call(f, name)
	if f.Coherent() {
		w.extra++ // c2c
	}
	for i := range w.PCI.Functions {
		if f.GPU.SwitchOf(w.PCI.Functions[i].IDs()) {
			w.extra++ // nvlink
		}
	}
}

// AddNIC adds a NIC, with the name of its RDMA device and the number of its ports, and not its
// data-direct function, which NCCL before 2.27.3 does not know.
func (w *Writer) AddNIC(f *pci.Function, name string, ports int) {
	own := *f
	own.DataDirect = nil
	at := GetPCIPath(w.PCI, &own)
	w.extra += max(1, ports) - 1 // net
	switch {
	case !at.Known:
		w.extra++
		w.call(f, "")
		return
	case at.Function == nil:
		w.notes = append(w.notes, fmt.Sprintf("%s: NCCL looks for device 0, function 0 of its bus, which does not exist, and uses the first CPU; NCCL_IB_MERGE_VFS=0 makes it look for function 0",
			strings.TrimSpace(f.Address.String()+" "+name)))
	default:
		w.call(at.Function, name)
	}
	w.nics = append(w.nics, at)
}

func (w *Writer) call(f *pci.Function, name string) {
	key := f.Address.String()
	if w.called == nil {
		w.called = map[string][]string{}
	}
	if name != "" {
		w.called[key] = append(w.called[key], name)
	}
	if f.RootBus == "" {
		w.leaveOut(key)
	}
}

func (w *Writer) leaveOut(key string) {
	w.notes = append(w.notes, "left out because its place is not known: "+key)
}

// Write returns the file. The error says that there is nothing to write, or more than NCCL
// accepts. NCCL's reader is not an XML parser: it accepts no XML declaration, no tabs, no
// entities, and only one space between attributes.
func (w *Writer) Write() ([]byte, error) {
	for i := range w.PCI.Functions {
		if f := &w.PCI.Functions[i]; f.DataDirectOf != nil {
			w.nics = append(w.nics, Itself(f))
			w.call(f, "data direct")
		}
	}
	top := w.getXML(w.nics)
	total := len(top.all()) + w.extra
	top.subs = slices.DeleteFunc(top.subs, func(cpu *Element) bool {
		if cpu.value("numaid") != unknownCPU {
			return cpu.sub("pci") == nil
		}
		for _, e := range cpu.all() {
			if id := e.value("busid"); e.name == "pci" && (w.called[id] != nil || e.sub("pci") == nil) {
				w.leaveOut(id)
			}
		}
		return true
	})
	if len(top.subs) == 0 {
		return nil, errors.New("no GPU or NIC whose place is known")
	}
	if total > maxNodes {
		return nil, fmt.Errorf("this machine needs %d elements, with those that NCCL adds, and NCCL accepts at most %d", total, maxNodes)
	}
	if w.Virtual {
		w.out.WriteString(aboutVirtual)
	}
	for _, note := range w.notes {
		fmt.Fprintf(&w.out, "<!-- %s -->\n", withinComment(note))
	}
	w.out.WriteString("<system version=\"1\">\n")
	for _, cpu := range top.subs {
		if err := w.dump(cpu, "  "); err != nil {
			return nil, err
		}
	}
	w.out.WriteString("</system>\n")
	return w.out.Bytes(), nil
}

const aboutVirtual = `<!-- This is the PCI tree that the hypervisor shows. Where GPUs and NICs share
  a switch on the host, put their pci elements below one here too, with a bus id
  that no function of this machine has:
  <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16"> ... </pci> -->
`

// dump is ncclTopoDumpXmlRec (src/graph/xml.cc): it writes a cpu or pci with those below it. What
// is not known is left out.
func (w *Writer) dump(e *Element, space string) error {
	subs := slices.DeleteFunc(slices.Clone(e.subs), func(sub *Element) bool { return sub.name != "pci" })
	if len(subs) > maxSubs {
		return fmt.Errorf("%d elements below one, and NCCL accepts at most %d", len(subs), maxSubs)
	}
	w.out.WriteString(w.comment(e, space) + space + "<" + e.name)
	for _, a := range e.attrs {
		if a.value != "" {
			fmt.Fprintf(&w.out, " %s=\"%s\"", a.key, a.value)
		}
	}
	if len(subs) == 0 {
		w.out.WriteString("/>\n")
		return nil
	}
	w.out.WriteString(">\n")
	for _, sub := range subs {
		if err := w.dump(sub, space+"  "); err != nil {
			return err
		}
	}
	w.out.WriteString(space + "</" + e.name + ">\n")
	return nil
}

// comment says what a GPU or NIC is.
func (w *Writer) comment(e *Element, space string) string {
	names, ok := w.called[e.value("busid")]
	if f := w.function(e); f != nil && f.Name() != "" && (ok || e.sub("nic") != nil) {
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
