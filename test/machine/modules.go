package machine

import (
	"cmp"
	"slices"
)

// module writes a module, unless it is there.
func (w *writer) module(name, state string) {
	if w.there["sys/module/"+name] {
		return
	}
	w.file("sys/module/"+name+"/initstate", state+"\n")
	w.file("sys/module/"+name+"/refcnt", "0\n")
}

// osrelease decides on Arm what a machine with coherent GPUs can do.
const osrelease = "proc/sys/kernel/osrelease"

const numaBalancing = "proc/sys/kernel/numa_balancing"

func (w *writer) modules() {
	w.mkdir("sys/module/kernel/parameters")
	for name, state := range w.s.Modules {
		w.module(name, state)
		if name == "nvidia_peermem" {
			w.file("sys/module/nvidia_peermem/version", w.s.NVIDIA+"\n")
		}
	}
	if w.s.NVIDIA != "" {
		w.module("nvidia", "live")
		w.file("sys/module/nvidia/version", w.s.NVIDIA+"\n")
		text := "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + w.s.NVIDIA + "  Thu Feb 22 01:44:30 UTC 2024\n"
		if w.s.Open {
			text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " + w.s.NVIDIA + "  Release Build  (builder@host)\n"
		}
		w.file("proc/driver/nvidia/version", text+"GCC version:  gcc version 12.3.0\n")
		if w.m.Dwords != nil || w.m.Override != "" {
			w.file("proc/driver/nvidia/params", w.m.params())
		}
	}
	for _, g := range w.families.GPUs {
		if w.s.GPUDriver == Own && g.OpenFrom == 0 { // the other kind is above
			w.module(g.Driver, "live")
		}
	}
	if w.s.NICDriver != "" {
		w.module("ib_core", "live")
		w.module("ib_uverbs", "live")
		w.nicModules()
	}
	if w.s.Compat {
		w.module("mlx_compat", "live")
	}
	for name, holders := range w.s.Holders {
		w.module(name, "live")
		w.mkdir("sys/module/" + name + "/holders")
		for _, holder := range holders {
			w.link("sys/module/"+name+"/holders/"+holder, "sys/module/"+holder)
		}
	}
	for name, text := range w.s.Files {
		w.file(name, text)
	}
	if _, own := w.s.Files[osrelease]; w.m.Kernel == "" && w.m.Arm && !own {
		w.file(osrelease, "6.14.0-1007-generic\n")
	}
	if w.m.Kernel != "" {
		w.file(osrelease, w.m.Kernel+"\n")
	}
}

// params are the parameters of NVIDIA's driver.
func (m *Machine) params() string {
	dwords := ""
	if m.Dwords != nil {
		dwords = *m.Dwords
	}
	return "EnableStreamMemOPs: 0\nGrdmaPciTopoCheckOverride: " + cmp.Or(m.Override, "0") +
		"\nRegistryDwords: \"" + dwords + "\"\nRegistryDwordsPerDevice: \"\"\n"
}

// nicModules writes the drivers of the NICs.
func (w *writer) nicModules() {
	if w.s.NICDriver != Own {
		w.module(w.s.NICDriver, "live")
		if w.s.MOFED != "" {
			w.file("sys/module/"+w.s.NICDriver+"/version", w.s.MOFED+"\n")
		}
		return
	}
	for _, n := range slices.Concat(w.families.NICs, w.families.Others) {
		w.module(n.Drivers[0], "live")
		w.module(n.Module, "live")
		if n.MOFED && w.s.MOFED != "" {
			w.file("sys/module/"+n.Drivers[0]+"/version", w.s.MOFED+"\n")
		}
	}
}

// Symbols returns those of a state, with those of the NICs' drivers in place of Own.
func (m *Machine) Symbols(s State) []string {
	t := m.families()
	var all []string
	for _, symbol := range s.Symbols {
		if symbol != Own {
			all = append(all, symbol)
			continue
		}
		for _, n := range slices.Concat(t.NICs, t.Others) {
			if n.DMABuf != "" {
				all = append(all, n.DMABuf+"\t["+n.Module+"]")
			}
		}
	}
	return all
}

// kernel writes /proc/kallsyms and settings.
func (w *writer) kernel() {
	if _, own := w.s.Files[numaBalancing]; !own && w.m.Nodes > 1 {
		w.file(numaBalancing, "0\n")
	}
	switch {
	case w.s.Kallsyms != nil:
		w.file("proc/kallsyms", *w.s.Kallsyms)
	case w.s.Symbols != nil:
		w.file("proc/kallsyms", Kallsyms(0, w.m.Symbols(w.s)))
	}
}
