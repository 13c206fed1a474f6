package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gdr-features/source/family"
)

// LayOut writes the machine that a file describes, in a named state, into a
// directory.
func LayOut(file, state, dir string) error {
	m, err := Load(file)
	if err != nil {
		return err
	}
	s, ok := m.StateNamed(state)
	if !ok {
		return fmt.Errorf("no state %q", state)
	}
	return m.Write(dir, s)
}

// Write writes a machine in a state below dir, as sys/ and proc/.
func (m *Machine) Write(dir string, s State) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	w := newWriter(dir, m, os.O_TRUNC)
	w.hardware()
	w.software(s)
	return w.err
}

// writer writes one tree. After an error nothing more is written.
type writer struct {
	dir   string
	m     *Machine
	s     State
	flags int             // to open each file with
	made  []string        // files, links and directories, in this order
	there map[string]bool // directories
	err   error
	// families are those of the machine.
	families family.Table
}

func newWriter(dir string, m *Machine, flags int) *writer {
	return &writer{dir: dir, m: m, flags: flags, there: map[string]bool{".": true}, families: m.families()}
}

// hardware writes what is the same in every state.
func (w *writer) hardware() {
	w.platform()
	for i := range w.m.Functions {
		w.function(&w.m.Functions[i])
	}
}

// software writes what depends on the state.
func (w *writer) software(s State) {
	w.s = s
	for i := range w.m.Functions {
		w.bind(&w.m.Functions[i], i)
	}
	w.modules()
	w.kernel()
}

// removeFrom removes what was made since there were n entries in made.
func (w *writer) removeFrom(n int) {
	for _, name := range slices.Backward(w.made[n:]) {
		if w.err == nil {
			w.err = os.Remove(filepath.Join(w.dir, name))
		}
		delete(w.there, name)
	}
	w.made = w.made[:n]
}

func (w *writer) file(name, text string) {
	w.mkdir(path.Dir(name))
	if w.err != nil {
		return
	}
	w.made = append(w.made, name)
	w.err = write(w.dir+"/"+name, w.flags, text)
}

// write writes a file by three system calls. Those of package os make eight of it, and tests
// write hundreds of thousands of files.
func write(name string, flags int, text string) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC|flags, 0o644)
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	for left := []byte(text); len(left) > 0 && err == nil; {
		var n int
		n, err = unix.Write(fd, left)
		left = left[max(0, n):]
	}
	if err != nil {
		err = &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return errors.Join(err, unix.Close(fd))
}

// link makes a link at name to another name of the tree, relative as sysfs has
// them.
func (w *writer) link(name, to string) {
	w.mkdir(path.Dir(name))
	if w.err != nil {
		return
	}
	var rel string
	if rel, w.err = filepath.Rel(path.Dir(name), to); w.err == nil {
		w.made = append(w.made, name)
		w.err = os.Symlink(rel, w.dir+"/"+name)
	}
}

// mkdir makes a directory and those above it, unless they are there.
func (w *writer) mkdir(name string) {
	if w.err != nil || w.there[name] {
		return
	}
	w.mkdir(path.Dir(name))
	if w.err = os.Mkdir(w.dir+"/"+name, 0o755); errors.Is(w.err, fs.ErrExist) {
		w.err = nil
	} else {
		w.made = append(w.made, name)
	}
	w.there[name] = true
}

// platform writes CPUs, firmware names, NUMA nodes and the list of IOMMU groups.
func (w *writer) platform() {
	w.mkdir("sys/kernel/iommu_groups") // empty where there is no IOMMU
	flags, vendor, product := "fpu vme de pse sse2", "Example Inc.", "Example 9000"
	if w.m.Virtual {
		flags, vendor, product = flags+" hypervisor", "QEMU", "Standard PC (Q35 + ICH9, 2009)"
	}
	if w.m.Product != "" {
		vendor, product = w.m.Vendor, w.m.Product
	}
	if w.m.Arm {
		w.file("proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd evtstrm\n\n")
	} else {
		model, name, named := strings.Cut(cmp.Or(w.m.CPU, "143"), " ")
		if named {
			name = "model name\t: " + name + "\n"
		}
		w.file("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: "+model+"\n"+name+"flags\t\t: "+flags+w.m.Flags+"\n\n")
	}
	w.file("sys/class/dmi/id/sys_vendor", vendor+"\n")
	w.file("sys/class/dmi/id/product_name", product+"\n")
	if w.m.BIOS != "" {
		w.file("sys/class/dmi/id/bios_version", w.m.BIOS+"\n")
	}
	for n := range w.m.Nodes {
		w.file(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", n), "0\n")
	}
}

// function writes a PCI function without its driver.
func (w *writer) function(f *Function) {
	dir := "sys/" + f.Path
	w.file(dir+"/vendor", "0x"+f.Vendor+"\n")
	w.file(dir+"/device", "0x"+f.Device+"\n")
	w.file(dir+"/class", "0x"+f.Class+"\n")
	w.file(dir+"/subsystem_vendor", "0x"+f.SubVendor+"\n")
	w.file(dir+"/subsystem_device", "0x"+f.Sub+"\n")
	w.modalias(f, dir)
	w.file(dir+"/numa_node", strconv.Itoa(f.NUMA)+"\n")
	w.file(dir+"/config", config(f))
	w.linkFiles(f, dir)
	w.bars(f, dir)
	w.link("sys/bus/pci/devices/"+f.Address, dir)
	w.link(dir+"/subsystem", "sys/bus/pci")
	if a, ok := f.Attrs["vpd"]; ok {
		w.file(dir+"/vpd", vpd(a))
	}
	w.sriov(f, dir)
	w.switchLinks(f)
	if pf, ok := f.Attrs["physfn"]; ok {
		for i := range w.m.Functions {
			if w.m.Functions[i].Address == pf {
				w.link(dir+"/physfn", "sys/"+w.m.Functions[i].Path)
			}
		}
	}
}

// bars writes the BARs of a GPU: registers, if the memory is not in the first, and memory.
func (w *writer) bars(f *Function, dir string) {
	size := f.size("bar")
	if size == 0 || !f.IsGPU() {
		return
	}
	const registers, at, flags = 0x94000000000, 0x20000000000, 0x14220c // prefetchable, 64 bits
	line := func(at, size, flags uint64) string {
		return fmt.Sprintf("0x%016x 0x%016x 0x%016x\n", at, at+size-1, flags)
	}
	text, nth := "", f.gpu().MemoryBAR
	if nth > 0 {
		text = line(registers, 16<<20, flags)
	}
	text += line(at, size<<20, flags)
	w.file(dir+"/resource", text+strings.Repeat(line(0, 1, 0), 13-nth-1))
	if mask, ok := f.Attrs["resize"]; ok {
		w.file(fmt.Sprintf("%s/resource%d_resize", dir, nth), mask+"\n")
	}
}

// bind writes the IOMMU group of a function, its driver, and what the driver makes.
func (w *writer) bind(f *Function, index int) {
	dir := "sys/" + f.Path
	if number := f.Attrs["group"]; w.s.IOMMU != "" && !f.IsBridge() && number != "none" {
		if number == "" {
			number = strconv.Itoa(index)
		}
		group := "sys/kernel/iommu_groups/" + number
		if !w.there[group] {
			w.file(group+"/type", w.s.IOMMU+"\n")
		}
		w.link(dir+"/iommu_group", group)
	}
	driver := w.driver(f)
	if driver != "" {
		w.mkdir("sys/bus/pci/drivers/" + driver)
		w.link(dir+"/driver", "sys/bus/pci/drivers/"+driver)
	}
	w.memory(f, dir, driver)
	if name := f.Attrs["net"]; name != "" && driver != "" && driver != "vfio-pci" {
		w.link("sys/class/net/"+name, dir+"/net/"+name)
		w.link(dir+"/net/"+name+"/device", dir)
	}
	if driver != "" && driver != "vfio-pci" && !w.s.NoRDMA {
		for name := range strings.SplitSeq(f.Attrs["rdma"], ",") {
			if name != "" {
				w.rdma(f, dir, name)
			}
		}
	}
}

// modalias writes the kernel's own form: pci:v000010DEd00002330sv...bc03sc02i00.
func (w *writer) modalias(f *Function, dir string) {
	id := func(s string) string { return "0000" + strings.ToUpper(s) }
	w.file(dir+"/modalias", fmt.Sprintf("pci:v%sd%ssv%ssd%sbc%ssc%si%s\n",
		id(f.Vendor), id(f.Device), id(f.SubVendor), id(f.Sub),
		strings.ToUpper(f.Class[:2]), strings.ToUpper(f.Class[2:4]), strings.ToUpper(f.Class[4:])))
}

func (w *writer) linkFiles(f *Function, dir string) {
	width := f.Attrs["width"]
	if width == "" {
		width = "16"
	}
	for _, which := range []string{"current", "max"} {
		w.file(dir+"/"+which+"_link_speed", cmp.Or(f.Attrs["gts"], "32.0")+" GT/s PCIe\n")
		w.file(dir+"/"+which+"_link_width", width+"\n")
	}
}

// switchLinks writes the links of a partition of a switch, as Broadcom's driver shows them
// (https://lkml.org/lkml/2024/6/12/551).
func (w *writer) switchLinks(f *Function) {
	const dir = "sys/kernel/pci_switch_link/virtual_switch_links/"
	for to := range strings.SplitSeq(f.Attrs["link"], ",") {
		if to != "" {
			w.mkdir(dir + to)
			w.link(dir+f.Address+"/"+to, dir+to)
		}
	}
}

// driver returns the driver that the function is bound to, "" for none.
func (w *writer) driver(f *Function) string {
	switch own, ok := f.Attrs["driver"]; {
	case own == "none":
		return ""
	case ok:
		return own
	case f.IsGPU() && w.s.GPUDriver == Own:
		return f.gpu().Driver
	case f.IsGPU():
		return w.s.GPUDriver
	case f.IsNIC() && w.s.NICDriver == Own:
		return f.nic().Drivers[0]
	case f.IsNIC():
		return w.s.NICDriver
	case f.IsBridge():
		return "pcieport"
	}
	return ""
}

// memory writes what a function shows of GPU memory: a GPU its own, and a NIC whose memory
// its driver reaches.
func (w *writer) memory(f *Function, dir, driver string) {
	if vram := f.size("vram"); vram > 0 && f.IsGPU() && driver == f.gpu().Driver {
		w.file(dir+"/mem_info_vram_total", strconv.FormatUint(vram<<30, 10)+"\n")
	}
	if n := f.nic(); n != nil && n.Drives(driver) {
		for _, file := range n.PeerMemory.Files {
			if text, ok := w.s.Attributes[file.Name]; ok {
				w.file(dir+"/"+file.Name, text)
			}
		}
	}
}

func (w *writer) rdma(f *Function, dir, name string) {
	if aux := f.Attrs["aux"]; aux != "" {
		w.link("sys/bus/auxiliary/devices/"+aux, dir+"/"+aux)
		dir += "/" + aux
	}
	dev := dir + "/infiniband/" + name
	w.link("sys/class/infiniband/"+name, dev)
	w.link(dev+"/device", dir)
	state, layer, node := w.s.Port, "InfiniBand", "1: CA"
	if own := f.Attrs["port"]; own != "" {
		state = own
	}
	if strings.HasPrefix(f.Class, "0200") {
		layer = "Ethernet"
	}
	if n := f.nic(); n != nil && slices.Equal(n.LinkLayers, []string{"Unspecified"}) {
		// The kernel's word for a port without a link layer, which is never down.
		state, layer, node = "ACTIVE", "Unknown", "7: unspecified"
	}
	if own := f.Attrs["layer"]; own != "" {
		layer = own
	}
	w.file(dev+"/node_type", node+"\n")
	w.file(dev+"/fw_ver", "28.42.1000\n")
	if n := f.nic(); n == nil || n.MOFED {
		w.file(dev+"/board_id", "MT_0000000838\n")
	}
	number := map[string]int{"DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4}[state]
	w.file(dev+"/ports/1/state", fmt.Sprintf("%d: %s\n", number, state))
	physical := "5: LinkUp" // a port that waits for its subnet manager too
	if state == "DOWN" {
		physical = "2: Polling"
	}
	w.file(dev+"/ports/1/phys_state", physical+"\n")
	w.file(dev+"/ports/1/link_layer", layer+"\n")
	w.file(dev+"/ports/1/rate", w.m.rate(f))
}
