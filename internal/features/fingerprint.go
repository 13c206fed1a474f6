package features

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/node-feature-discovery/api/nfd/v1alpha1"

	"gdr-features/internal/label"
	"gdr-features/internal/report"
	"gdr-features/internal/show"
	"gdr-features/source/pci"
)

// FingerprintKey is the attribute beside the labels that holds the fingerprint.
const FingerprintKey = "fingerprint"

// LabelsOf returns the attributes named Labels: the labels that are published, and the fingerprint.
func LabelsOf(r *report.Report, labels label.Set) v1alpha1.AttributeFeatureSet {
	a := Attrs{}
	maps.Copy(a, Attrs(labels))
	a.Text(FingerprintKey, Fingerprint(r))
	return v1alpha1.NewAttributeFeatures(a)
}

// Fingerprint is a hash of what a result that was measured on a node rests on; docs/administrator.md
// names the parts. It stays the same over restarts while none of them changes: no part depends on
// the order in which the kernel found devices, on what they do at the moment, or on the links of idle
// GPUs, which are slower. "" where the machine could not be read.
func Fingerprint(r *report.Report) string {
	if !r.PCIRead || !r.Matrix.Complete || len(r.Matrix.GPUs) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(parts(r), "\n")))
	return hex.EncodeToString(sum[:8])
}

func parts(r *report.Report) (all []string) {
	add := func(name string, values ...any) {
		all = append(all, name+" "+strings.TrimSpace(fmt.Sprintln(values...)))
	}
	add("kernel", r.Platform.Kernel)
	for _, name := range slices.Sorted(maps.Keys(r.Kmod.Drivers)) {
		d := r.Kmod.Drivers[name]
		add("driver", name, d.Loaded, d.Open, d.Version)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Kmod.Params)) {
		add("parameter", name, r.Kmod.Params[name])
	}
	add("stack", r.Kmod.MOFED.Origin, r.Kmod.MOFED.Version, r.PeerDirect())
	if advice := r.Kmod.Advice; advice != nil {
		for _, name := range slices.Sorted(maps.Keys(advice.NICVersions)) {
			add("nic-driver", name, advice.NICVersions[name])
		}
	}
	bridges := map[pci.Address]bool{}
	for fn := range r.PCI.All() {
		if fn.GPU == nil && fn.NIC == nil || fn.PhysFn != nil {
			continue
		}
		add("function", fn.Address, ids(fn), fn.Driver, fn.RootBus, fn.Bridges)
		for _, b := range fn.Bridges {
			if above := r.PCI.Find(b); above != nil && !bridges[b] {
				bridges[b] = true
				add("bridge", b, ids(above))
			}
		}
	}
	for i := range r.RDMA.Devices {
		if d := &r.RDMA.Devices[i]; d.PCI != nil && d.Firmware != "" {
			add("firmware", *d.PCI, d.Firmware)
		}
	}
	for _, l := range r.Verdict.Links {
		speed, width := pci.MostOf(l.Lower, l.Upper)
		add("link", l.Lower.Address, speed, width, l.Lacks)
	}
	add("iommu", r.Verdict.IOMMU)
	for _, b := range slices.SortedFunc(maps.Keys(r.ACS), pci.Address.Compare) {
		if acs := r.ACS[b]; acs != nil {
			add("acs", b, acs.Present, acs.Control)
		}
	}
	add("ways", r.Verdict.Peermem, r.Verdict.DMABuf)
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

func ids(f *pci.Function) string {
	return show.Hex(f.Vendor) + ":" + show.Hex(f.Device) + ":" + show.Hex(f.SubVendor) + ":" + show.Hex(f.SubDevice)
}
