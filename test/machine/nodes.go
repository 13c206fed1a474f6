package machine

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gdr-features/source/pci"
)

// Container writes what a container on the machine in dir sees of device nodes: in sys/ and
// proc/ the number of each node, and in dev/ the nodes of some GPUs, given by their index in
// the order of addresses, and of some RDMA devices. The nodes are empty files.
func (m *Machine) Container(t TB, dir string, gpus []int, rdma ...string) {
	t.Helper()
	w := newWriter(dir, m, os.O_TRUNC)
	w.mkdir("dev")
	for i, f := range m.gpusByAddress() {
		node := fmt.Sprintf("dev/dri/renderD%d", 128+i)
		if g := f.gpu(); g.Information != "" {
			node = fmt.Sprintf("%s%d", g.Nodes, i)
			w.file(g.Information+"/"+f.Address+"/information",
				fmt.Sprintf("Model: \t\t GPU\nGPU UUID: \t GPU-00000000-0000-4000-8000-%012d\nDevice Minor: \t %d\n", i+1, i))
		} else {
			w.mkdir(fmt.Sprintf("sys/%s/drm/renderD%d", f.Path, 128+i))
		}
		if slices.Contains(gpus, i) {
			w.file(node, "")
		}
	}
	for i, name := range m.RDMADevices() {
		node := fmt.Sprintf("infiniband_verbs/uverbs%d", i)
		of := m.rdmaParent(name) + "/" + node
		w.file(of+"/ibdev", name+"\n")
		if w.err == nil {
			_ = os.Remove(filepath.Join(dir, "sys/class", node)) // of another container before
		}
		w.link("sys/class/"+node, of)
		if slices.Contains(rdma, name) {
			w.file(fmt.Sprintf("dev/infiniband/uverbs%d", i), "")
		}
	}
	if w.err != nil {
		t.Fatal(w.err)
	}
}

// Namespace makes a tree what a network namespace shows where each RDMA device belongs to one
// (`rdma system set netns exclusive`), and these belong to it. The kernel hides the others in
// the class and below their PCI function, whose directory is then empty (ib_class.ns_type,
// drivers/infiniband/core/device.c), and shows all of them in infiniband_verbs: uverbs_class
// has no ns_type.
func (m *Machine) Namespace(t TB, dir string, rdma ...string) {
	t.Helper()
	w := newWriter(dir, m, os.O_TRUNC)
	w.file("sys/module/ib_core/parameters/netns_mode", "N\n")
	for _, name := range m.RDMADevices() {
		if slices.Contains(rdma, name) || w.err != nil {
			continue
		}
		w.err = errors.Join(os.RemoveAll(filepath.Join(dir, "sys/class/infiniband", name)),
			os.RemoveAll(filepath.Join(dir, m.rdmaParent(name), "infiniband", name)))
	}
	if w.err != nil {
		t.Fatal(w.err)
	}
}

// rdmaParent is the directory of what an RDMA device belongs to: its function, or an
// auxiliary device below it.
func (m *Machine) rdmaParent(name string) string {
	for i := range m.Functions {
		f := &m.Functions[i]
		if slices.Contains(strings.Split(f.Attrs["rdma"], ","), name) {
			return path.Join("sys", f.Path, f.Attrs["aux"])
		}
	}
	return ""
}

// RDMADevices are the names of the RDMA devices that the description gives.
func (m *Machine) RDMADevices() []string {
	var names []string
	for i := range m.Functions {
		for name := range strings.SplitSeq(m.Functions[i].Attrs["rdma"], ",") {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

// gpusByAddress are the GPUs in the order of addresses.
func (m *Machine) gpusByAddress() []*Function {
	var gpus []*Function
	for i := range m.Functions {
		if m.Functions[i].IsGPU() {
			gpus = append(gpus, &m.Functions[i])
		}
	}
	address := func(f *Function) pci.Address {
		a, _ := pci.ParseAddress(f.Address) // one that is none sorts first
		return a
	}
	slices.SortFunc(gpus, func(a, b *Function) int { return address(a).Compare(address(b)) })
	return gpus
}
