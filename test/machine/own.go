package machine

import (
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"strings"

	"gdr-features/source/family"
)

// States are the states of the machine's software; the first has everything in place. For
// a machine with only NVIDIA GPUs and ConnectX NICs they are the States of the package. For
// others they are made from the rows of its families: each has one way to GPU memory, or
// none.
func (m *Machine) States() []State {
	t := m.families()
	operator := len(t.NICs) > 0 && !slices.ContainsFunc(t.NICs, func(n *family.NIC) bool { return !n.GPUOperator }) &&
		!slices.ContainsFunc(t.GPUs, func(g *family.GPU) bool { return !g.GPUOperator })
	if operator {
		return States()
	}
	return rows{t}.states()
}

// StateNamed returns one of States.
func (m *Machine) StateNamed(name string) (State, bool) { return named(m.States(), name) }

// Ready is the first of States.
func (m *Machine) Ready() State { return m.States()[0] }

// rows are the families of a machine.
type rows struct{ family.Table }

const (
	release = "6.12.0-1-amd64"
	kconfig = "boot/config-" + release
	peers   = "sys/kernel/mm/memory_peers/"
)

// version is the version file of a module that is not the kernel's own.
func version(module string) string { return "sys/module/" + module + "/version" }

// dmabuf is a machine on which DMA-BUF is the only way to GPU memory.
func (r rows) dmabuf(name string) State {
	s := State{
		Name: name, GPUDriver: Own, NICDriver: Own, Port: "ACTIVE", IOMMU: "identity",
		Symbols: []string{symUmem, Own}, Modules: map[string]string{}, Holders: map[string][]string{},
		Attributes: map[string]string{}, Files: map[string]string{"proc/sys/kernel/osrelease": release + "\n"},
	}
	for _, g := range r.GPUs {
		if g.OpenFrom != 0 {
			s.NVIDIA, s.Open = "570.86.15", true
		}
		if len(g.KernelOptions) > 0 {
			s.Files[kconfig] = kernelConfig(g, "=y", "=y")
		}
	}
	return s
}

// none is a machine whose RDMA drivers register no DMA-BUF, without clients.
func (r rows) none(name string) State {
	s := r.dmabuf(name)
	s.Symbols = []string{symUmem}
	return s
}

// kernelConfig is a configuration of the kernel with a family's options. newer is for
// those that newer kernels always have, and other for all others: "=y", or "" to leave the
// option out.
func kernelConfig(g *family.GPU, newer, other string) string {
	var text strings.Builder
	text.WriteString("CONFIG_64BIT=y\n")
	for _, o := range g.KernelOptions {
		value := other
		if o.Always != "" {
			text.WriteString("CONFIG_" + o.Always + "=y\n")
			value = newer
		}
		switch value {
		case "":
		case "n":
			text.WriteString("# CONFIG_" + o.Name + " is not set\n")
		default:
			text.WriteString("CONFIG_" + o.Name + value + "\n")
		}
	}
	return text.String()
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // to memory
	_ = w.Close()
	return b.String()
}

func (r rows) states() []State {
	vary := func(s State, change func(*State)) State {
		change(&s)
		return s
	}
	ready := func(name string) State {
		s := r.dmabuf(name)
		for _, way := range r.clients() {
			s.add(way)
		}
		for _, n := range r.NICs {
			for i, file := range n.PeerMemory.Files {
				if i > 0 { // of drivers before the one with the first file
					delete(s.Attributes, file.Name)
				}
			}
		}
		return s
	}
	list := []State{
		ready("ready"),
		{Name: "no-drivers", Symbols: []string{}},
		vary(ready("vfio"), func(s *State) { s.GPUDriver, s.NVIDIA, s.Modules = "vfio-pci", "", nil }),
		vary(ready("nic-unbound"), func(s *State) { s.NICDriver, s.Attributes = "", nil }),
		vary(ready("no-rdma"), func(s *State) { s.NoRDMA = true }),
		vary(ready("ports-down"), func(s *State) { s.Port = "DOWN" }),
		vary(ready("iommu-translated"), func(s *State) { s.IOMMU = "DMA-FQ" }),
		r.dmabuf("dmabuf-only"),
		vary(r.none("kallsyms-missing"), func(s *State) { s.Symbols = nil }),
		r.none("nothing"),
		r.others(),
	}
	for _, g := range r.GPUs {
		if g.OpenFrom != 0 {
			list = append(list, vary(r.dmabuf("closed"), func(s *State) { s.Open, s.NVIDIA = false, "550.54.14" }))
		}
		if len(g.KernelOptions) > 0 {
			list = append(list, r.configs(g)...)
		}
	}
	for _, way := range slices.Concat(r.clients(), r.halves()) {
		s := r.none(way.Name)
		s.add(way)
		list = append(list, s)
	}
	return list
}

// add adds modules, holders, attributes and files to a state.
func (s *State) add(o State) {
	maps.Copy(s.Modules, o.Modules)
	maps.Copy(s.Holders, o.Holders)
	maps.Copy(s.Attributes, o.Attributes)
	maps.Copy(s.Files, o.Files)
	s.Symbols = append(s.Symbols, o.Symbols...)
}

// others has what would prove a way for families that the machine does not have.
func (r rows) others() State {
	s := r.none("others")
	known := written
	for _, n := range slices.Concat(known.NICs, known.Others) {
		if n.DMABuf != "" && !slices.Contains(r.NICs, n) && !slices.Contains(r.Others, n) {
			s.Symbols = append(s.Symbols, n.DMABuf+"\t["+n.Module+"]")
		}
		for _, f := range n.PeerMemory.Files {
			s.Attributes[f.Name] = "NEURON\n"
		}
	}
	for _, g := range known.GPUs {
		core := slices.ContainsFunc(r.NICs, func(n *family.NIC) bool { return n.PeerMemory.Core })
		if slices.Contains(r.GPUs, g) && (core || g.Client.AnyNIC) {
			continue
		}
		for _, module := range g.Client.Modules {
			s.Modules[module] = "live"
		}
		for _, dir := range g.Client.Directories {
			s.Files[peers+dir+"/version"] = "1.0\n"
		}
	}
	return s
}

// configs are the configurations of the kernel that a family's DMA-BUF depends on.
func (r rows) configs(g *family.GPU) []State {
	with := func(name, file, text string) State {
		s := r.dmabuf("config-" + name)
		delete(s.Files, kconfig)
		if file != "" {
			s.Files[file] = text
		}
		return s
	}
	newer := with("newer", "boot/config-7.1.0", kernelConfig(g, "", "=y"))
	newer.Files["proc/sys/kernel/osrelease"] = "7.1.0\n"
	return []State{
		with("gzip", "proc/config.gz", gzipped(kernelConfig(g, "=y", "=y"))),
		with("modules", "lib/modules/"+release+"/config", kernelConfig(g, "=y", "=y")),
		newer,
		with("cut", kconfig, kernelConfig(g, "", "=y")),
		with("off", kconfig, kernelConfig(g, "n", "n")),
		with("half", kconfig, kernelConfig(g, "n", "=y")),
		with("missing", "", ""),
		with("garbage", kconfig, "\x7fELF no configuration\n"),
	}
}

// clients are the ways to GPU memory without DMA-BUF; each is enough for one family. The
// kernel's own drivers have none of them, so the modules have a vendor's version.
func (r rows) clients() (ways []State) {
	for _, g := range r.GPUs {
		if g.Client.AnyNIC {
			dir := g.Client.Directories[0]
			ways = append(ways, State{Name: "client-" + dir, Symbols: []string{symPeerOld}, Files: map[string]string{
				peers + dir + "/version": "1.0\n", g.VersionFile: "6.12.12\n",
			}})
		}
		for _, n := range r.NICs {
			if module := n.PeerMemory.Module; module != "" && len(g.Client.Modules) > 0 {
				ways = append(ways, State{
					Name: "holders-" + n.Module, Holders: map[string][]string{module: {g.Client.Holder, n.Module}},
					Modules: map[string]string{g.Client.Modules[0]: "live", n.Module: "live"},
					Files:   map[string]string{version(n.Module): "233.2.77.9\n"}, Symbols: []string{"ib_register_peer_memory_client\t[" + module + "]"},
				})
			}
			for i := len(n.PeerMemory.Files) - 1; i >= 0; i-- { // that of the newest driver is the last to be added
				file, own := n.PeerMemory.Files[i], "3.1.0g\n"
				if i > 0 {
					own = "2.5.0g\n"
				}
				for _, says := range slices.Backward(file.Says[g.Name]) {
					name := strings.ToLower(file.Name + "-" + strings.ReplaceAll(says, " ", "-"))
					ways = append(ways, State{
						Name: name, Attributes: map[string]string{file.Name: says + "\n"},
						Modules: map[string]string{n.Module: "live"}, Files: map[string]string{version(n.Module): own},
					})
				}
			}
		}
	}
	return ways
}

// halves are such ways with a part missing. They prove nothing.
func (r rows) halves() (ways []State) {
	for _, n := range r.NICs {
		if module := n.PeerMemory.Module; module != "" {
			api := []string{"ib_register_peer_memory_client\t[" + module + "]"}
			ways = append(ways, State{Name: "holders-without-client", Holders: map[string][]string{module: {n.Module}}, Symbols: api})
			for _, g := range r.GPUs {
				ways = append(ways, State{Name: "holders-" + g.Client.Holder + "-alone", Holders: map[string][]string{module: {g.Client.Holder}}, Symbols: api})
			}
		}
		for i, file := range n.PeerMemory.Files {
			for name, says := range map[string]string{"nobody": "", "0": "0", "neuron": "NEURON"} {
				if i == 0 && name == "0" || i > 0 && name == "neuron" {
					continue
				}
				ways = append(ways, State{Name: file.Name + "-" + name, Attributes: map[string]string{file.Name: says + "\n"}})
			}
		}
	}
	slices.SortFunc(ways, func(a, b State) int { return strings.Compare(a.Name, b.Name) })
	return ways
}
