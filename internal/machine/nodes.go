package machine

import (
	"fmt"
	"os"
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
		w.file(fmt.Sprintf("sys/class/infiniband_verbs/uverbs%d/ibdev", i), name+"\n")
		if slices.Contains(rdma, name) {
			w.file(fmt.Sprintf("dev/infiniband/uverbs%d", i), "")
		}
	}
	if w.err != nil {
		t.Fatal(w.err)
	}
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
