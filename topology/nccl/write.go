package nccl

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gdr-features/source/pci"
)

type writer struct {
	*Machine
	called map[string][]string // what GPUs and NICs are called, by bus id
	out    bytes.Buffer
}

// Write returns the machine as an NCCL topology file (NCCL_TOPO_FILE): what NCCL's processes
// come to together, without the elements gpu, nic and net, which NCCL adds, and functions whose
// place could not be read. NIC.At does not count: data-direct functions are written beside their
// NICs, since NCCL before 2.27.3 does not know them. CPUs have attributes, since NCCL fails for
// one without that has no PCI functions.
func (m *Machine) Write(nics []NIC) ([]byte, error) {
	w, form := writer{Machine: m, called: map[string][]string{}}, dialectOf(m.GPUs)
	if m.Virtual {
		w.out.WriteString(aboutVirtual)
	}
	var places []Device
	total := m.links() // of elements that NCCL holds
	for i, f := range m.GPUs {
		w.call(f, fmt.Sprintf("GPU%d", i))
	}
	for _, nic := range nics {
		own := *nic.Function
		own.DataDirect = nil
		at := GetPCIPath(m.PCI, &own)
		switch {
		case !at.Known:
			w.call(nic.Function, "")
		case at.Function == nil:
			w.note("%s: NCCL looks for device 0, function 0 of its bus, which does not exist, and uses the first CPU; NCCL_IB_MERGE_VFS=0 makes it look for function 0",
				strings.TrimSpace(nic.Address.String()+" "+nic.Name))
		default:
			w.call(at.Function, nic.Name)
		}
		places = append(places, at)
		total += max(nic.Ports, 1) - 1 // each is a net
	}
	for i := range m.PCI.Functions {
		if f := &m.PCI.Functions[i]; f.DataDirectOf != nil {
			places = append(places, Itself(f))
			w.call(f, "data direct")
		}
	}
	system := m.getXML(places)
	total += len(system.all())
	w.cut(system)
	switch {
	case len(system.subs) == 0:
		return nil, errors.New("no GPU or NIC whose place is known")
	case total > form.maxNodes:
		return nil, fmt.Errorf("this machine needs %d elements, with those that %[2]s adds, and %[2]s accepts at most %d", total, form.library, form.maxNodes)
	}
	fmt.Fprintf(&w.out, "<system version=\"%d\">\n", form.version)
	for _, cpu := range system.subs {
		w.dump(cpu, "  ")
	}
	w.out.WriteString("</system>\n")
	return w.out.Bytes(), nil
}

// links counts the elements c2c and nvlink that NCCL adds to GPUs.
func (m *Machine) links() (n int) {
	for _, gpu := range m.GPUs {
		if gpu.Coherent() {
			n++
		}
		for i := range m.PCI.Functions {
			if gpu.GPU.SwitchOf(m.PCI.Functions[i].IDs()) {
				n++
			}
		}
	}
	return n
}

const aboutVirtual = `<!-- This is the PCI tree that the hypervisor shows. Where GPUs and NICs share
  a switch on the host, put their pci elements below one here too, with a bus id
  that no function of this machine has:
  <pci busid="ffff:ff:01.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16"> ... </pci> -->
`

func (w *writer) note(format string, args ...any) {
	fmt.Fprintf(&w.out, "<!-- %s -->\n", withinComment(fmt.Sprintf(format, args...)))
}

const leftOut = "left out because its place is not known: %s"

// call notes what a GPU or NIC is called, and that its place is not known.
func (w *writer) call(f *pci.Function, name string) {
	key := f.Address.String()
	if name != "" {
		w.called[key] = append(w.called[key], name)
	}
	if f.RootBus == "" {
		w.note(leftOut, key)
	}
}

// cut removes the CPUs that are not known, and those without PCI functions.
func (w *writer) cut(system *Element) {
	system.subs = slices.DeleteFunc(system.subs, func(cpu *Element) bool {
		if cpu.attr("numaid") != unknownCPU {
			return cpu.sub("pci") == nil
		}
		for _, e := range cpu.all() {
			if id := e.attr("busid"); e.name == "pci" && (w.called[id] != nil || e.sub("pci") == nil) {
				w.note(leftOut, id)
			}
		}
		return true
	})
}

// dump is ncclTopoDumpXmlRec (src/graph/xml.cc): it writes a cpu or pci with those below it, and
// leaves out what is not known. NCCL's reader accepts no tabs, no entities, and only one space
// between attributes.
func (w *writer) dump(e *Element, space string) {
	names := w.called[e.attr("busid")]
	if f := w.function(e); f != nil && f.Name() != "" && (names != nil || e.sub("nic") != nil) {
		names = append(slices.Clip(names), f.Name())
	}
	if len(names) > 0 {
		w.out.WriteString(space)
		w.note("%s", strings.Join(names, " "))
	}
	w.out.WriteString(space + "<" + e.name)
	for _, key := range attributes {
		if value := e.attr(key); value != "" {
			fmt.Fprintf(&w.out, " %s=\"%s\"", key, value)
		}
	}
	if e.sub("pci") == nil && e.sub("pcilink") == nil {
		w.out.WriteString("/>\n")
		return
	}
	w.out.WriteString(">\n")
	for _, sub := range e.subs {
		if sub.name == "pci" || sub.name == "pcilink" {
			w.dump(sub, space+"  ")
		}
	}
	w.out.WriteString(space + "</" + e.name + ">\n")
}

var (
	unprintable = regexp.MustCompile(`[^ -~]`)
	hyphens     = regexp.MustCompile(`--+`)
)

// withinComment replaces what a comment may not contain, or what would end it.
func withinComment(text string) string {
	return hyphens.ReplaceAllString(unprintable.ReplaceAllString(text, "?"), "-")
}
