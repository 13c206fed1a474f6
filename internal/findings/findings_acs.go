package findings

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/source/pci"
	"gdr-features/topology"
	"gdr-features/verdict"
)

func (f *Facts) acsFinding(v verdict.Verdict) Finding {
	out := Finding{Check: "acs", Status: OK, Detail: v.ACS, Sources: []string{pciDevices + "/*/config"}}
	switch v.ACS {
	case "":
		out.Status, out.Code, out.Detail = Undecidable, ACSUnreadable, "the ACS registers of the bridges between GPUs and NICs cannot be read"
		out.Fix = "read as root (CAP_SYS_ADMIN)"
		bridges := f.between(func(acs *pci.ACS) bool { return acs == nil })
		for _, b := range bridges {
			out.Evidence = append(out.Evidence, saw(device(b)+"/config", ""))
		}
		if len(bridges) == 0 {
			out.Detail, out.Fix = "no bridge between the GPUs and their nearest NICs shows on this machine", ""
		}
	case "redirect":
		f.redirect(&out)
	}
	return out
}

// redirect judges ACS redirect by platform: where the GPU shares memory with its
// processor, and where devices are handed to virtual machines, it belongs there.
func (f *Facts) redirect(out *Finding) {
	redirects := func(acs *pci.ACS) bool { return acs != nil && acs.Redirect() }
	bridges := bridgesOf(f.Matrix.GPUs, topology.GPU.Crossing, f.ACS, redirects)
	crossing := len(bridges) > 0
	if !crossing {
		bridges = f.between(redirects)
	}
	var names []string
	for _, b := range bridges {
		names = append(names, b.String())
		out.Evidence = append(out.Evidence, saw(device(b)+"/config", fmt.Sprintf("ACSCtl %04x", f.ACS[b].Control)))
	}
	switch {
	case f.coherent():
		out.Detail = "redirect on " + some(names) + ", which belongs there on this platform (rdma_topo check judges the pattern)"
		return
	case !crossing:
		out.Detail = "redirect on " + some(names) + ", where traffic between GPU and NIC goes up anyway"
		return
	}
	out.Status, out.Code = Warn, ACSRedirect
	out.Detail = "peer to peer traffic between a GPU and its nearest NIC is redirected to the root complex by " + some(names)
	passed := f.passed()
	switch {
	case f.guest():
		out.Fix = "leave it on in a virtual machine: on the hypervisor, enable ATS of the adapter (mlxconfig ATS_ENABLED=true) and ACS Direct Translated P2P on the switch ports above GPU and adapter"
	case len(passed) > 0:
		out.Fix = "leave it on: it keeps functions of virtual machines apart (" + some(passed) + " are bound to vfio); for GPUDirect RDMA inside them enable ATS of the adapter and ACS Direct Translated P2P"
	default:
		out.Fix = "only where no device of this host goes to virtual machines: " + setpci(names) + " after each boot; or boot with pci=disable_acs_redir=" + bootList(names)
	}
}

// passed lists the GPUs and adapters that are handed to virtual machines, which
// ACS keeps apart. Drivers of other functions are not read.
func (f *Facts) passed() []string {
	var all []string
	for i := range f.PCI.Functions {
		fn := &f.PCI.Functions[i]
		if kind := fn.Kind(); (kind == pci.GPU || kind == pci.NIC) && vfio(fn) {
			all = append(all, fn.Address.String())
		}
	}
	return all
}

// between lists the bridges between GPUs and their nearest NICs whose ACS, nil
// when not readable, is as asked for, by address.
func (f *Facts) between(is func(*pci.ACS) bool) []pci.Address {
	return bridgesOf(f.Matrix.GPUs, topology.GPU.Between, f.ACS, is)
}

func bridgesOf(gpus []topology.GPU, on func(topology.GPU) []pci.Address, acs map[pci.Address]*pci.ACS, is func(*pci.ACS) bool) []pci.Address {
	var all []pci.Address
	for _, gpu := range gpus {
		for _, bridge := range on(gpu) {
			if gpu.Eligible && is(acs[bridge]) && !slices.Contains(all, bridge) {
				all = append(all, bridge)
			}
		}
	}
	slices.SortFunc(all, pci.Address.Compare)
	return all
}

// coherent: some eligible GPU shares memory with its processor.
func (f *Facts) coherent() bool {
	return slices.ContainsFunc(f.Matrix.GPUs, func(g topology.GPU) bool { return g.Eligible && g.Coherent() })
}

// bootList is how the kernel's command line takes bridges.
func bootList(bridges []string) string {
	if len(bridges) == 1 {
		return bridges[0]
	}
	return " and these addresses, a semicolon between them"
}

// setpci is the command that clears the redirect bits of bridges, and no others.
func setpci(bridges []string) string {
	if len(bridges) == 1 {
		return "setpci -s " + bridges[0] + " ECAP_ACS+0x6.w=0000:002c"
	}
	return `printf '%s\n' ` + strings.Join(bridges, " ") + " | xargs -I{} setpci -s {} ECAP_ACS+0x6.w=0000:002c"
}
