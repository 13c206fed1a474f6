package pod

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/fleet/image"
	"gdr-features/source/family"
	"gdr-features/tristate"
)

// verbsProvider: libibverbs opens a NIC with the provider of its family, which must be listed,
// be of libibverbs' own release, and know the interface of the kernel's driver (rdma-core
// libibverbs/dynamic_driver.c, libibverbs/init.c).
var verbsProvider = check{
	Name:  "verbs-provider",
	Codes: []finding.Code{"NoVerbsProvider", "ProviderMismatch", "ProviderNotListed", "ProviderKernelABI", "NoDataDirect", finding.Unreadable},
	Judge: func(f *judged) finding.Said {
		if !withVerbs(f.Pod.Image) {
			return finding.Said{}
		}
		if said := f.wrongProvider(); said.Found() {
			return said
		}
		abi, direct, right := f.otherABI(), f.noDataDirect(), f.providersThat(providerText)
		switch {
		case abi.Any():
			return finding.Fail("ProviderKernelABI", "the provider in the image does not support the "+
				"interface of the node's driver, so that programs see no NIC: %s", abi).Of(abi).
				Do("install in the image " + f.NIC.Help.Library + " of the driver's release if the driver " +
					"is the vendor's own (explain VerbsABIMismatch), else rdma-core's provider")
		case direct.Any():
			return finding.Warn("NoDataDirect", "NCCL and UCX do not use the data-direct functions of these "+
				"NICs: the provider has no %s", direct).Of(direct).
				Do("use an image with rdma-core 54 or newer (Debian 13), or with the libraries of MOFED / " +
					"DOCA-OFED 24.10 or newer")
		case right.Any():
			return finding.OK("libibverbs finds the provider of these NICs: %s", right).Of(right)
		}
		return finding.Said{}
	},
}

// wrongProvider says why libibverbs does not load a provider.
func (f *judged) wrongProvider() finding.Said {
	release := orUnknown(f.Pod.Image.Verbs.Release())
	unread, missing, other := f.providersThat(f.unreadProvider), f.providersThat(f.missingProvider), f.providersThat(f.otherProvider)
	refused, unlisted := f.providersThat(refusedProvider), f.providersThat(unlistedProvider)
	switch {
	case unread.Any():
		return finding.Unknown("the provider, or the list of drivers, cannot be read: %s", unread).Of(unread)
	case missing.Any():
		return finding.Fail("NoVerbsProvider", "libibverbs %s finds no provider for these NICs, so that "+
			"programs see none: %s", release, missing).Of(missing).Do(f.providerPackage()...)
	case other.Any():
		return finding.Fail("ProviderMismatch", "libibverbs %s does not open a provider of another private "+
			"interface: %s", release, other).Of(other).Do(oneRelease)
	case refused.Any():
		return finding.Fail("ProviderMismatch", "the loader refuses the provider, because the image lacks "+
			"what it needs: %s", refused).Of(refused).Do(oneRelease)
	case unlisted.Any():
		return finding.Fail("ProviderNotListed", "the provider is here, and no file in %s names it, so that "+
			"libibverbs does not load it: %s", f.Pod.Image.ConfigDir, unlisted).Of(unlisted).
			Do("install the whole package of the provider in the image, or add a file " +
				f.Pod.Image.ConfigDir + "/NAME.driver with the line: driver NAME")
	}
	return finding.Said{}
}

// What may be wrong with a provider; "" where it is not.

func (f *judged) unreadProvider(p *image.Provider) string {
	switch {
	case p.Err != nil:
		return p.Err.Error()
	case p.Listed == "" && f.Pod.Image.ListErr != nil:
		return f.Pod.Image.ListErr.Error()
	}
	return ""
}

func (f *judged) missingProvider(p *image.Provider) string {
	if p.Library != nil || p.Other != "" {
		return ""
	}
	return f.fileOf(p)
}

func (f *judged) otherProvider(p *image.Provider) string {
	if p.Library != nil || p.Other == "" {
		return ""
	}
	return fmt.Sprintf("%s is looked for, and %s is here", f.fileOf(p), p.Other)
}

// fileOf is the name of the file that libibverbs looks for.
func (f *judged) fileOf(p *image.Provider) string { return "lib" + p.Name + f.Pod.Image.Suffix }

func refusedProvider(p *image.Provider) string {
	if p.Library == nil || len(p.Library.Lacks) == 0 {
		return ""
	}
	return p.Library.Path + " needs " + finding.FirstFew(p.Library.Lacks)
}

func unlistedProvider(p *image.Provider) string {
	if p.Listed != "" {
		return ""
	}
	return p.Name
}

func providerText(p *image.Provider) string {
	if p.ABI == nil {
		return p.Name
	}
	if p.ABI.Min == p.ABI.Max {
		return fmt.Sprintf("%s (kernel ABI %d)", p.Name, p.ABI.Min)
	}
	return fmt.Sprintf("%s (kernel ABI %d to %d)", p.Name, p.ABI.Min, p.ABI.Max)
}

// provider is that of a family: an empty one where there is none.
func (f *judged) provider(of *family.NIC) *image.Provider {
	name := cmp.Or(of.Provider.Name, of.Name)
	if p := f.Pod.Image.Provider(name); p != nil {
		return p
	}
	return &image.Provider{Name: name}
}

// providersThat names what a function says of the providers of the NICs in question.
func (f *judged) providersThat(say func(*image.Provider) string) (all finding.Subjects) {
	for _, of := range f.familiesInQuestion() {
		p := f.provider(of)
		if text := say(p); text != "" {
			all.Add(text, f.sawProvider(p))
		}
	}
	return all
}

func (f *judged) sawProvider(p *image.Provider) string {
	switch {
	case p.Library != nil:
		return finding.Saw(p.Library.Path, providerText(p))
	case p.Other != "":
		return finding.SawFile(p.Other, tristate.True)
	}
	return finding.SawMissing(f.Pod.Image.ProviderDir + "/" + f.fileOf(p))
}

func (f *judged) providerPackage() []string {
	fixes := []string{"install in the image ibverbs-providers (Debian, Ubuntu) or libibverbs (RHEL) of " +
		"libibverbs' own release"}
	for _, of := range f.familiesInQuestion() {
		if since := of.Provider.Since; since != "" {
			fixes = append(fixes, of.Name+" needs rdma-core "+since+" or newer, or "+of.Help.Library)
		}
	}
	return fixes
}

// otherABI names the NICs whose driver has an interface that the provider does not support.
func (f *judged) otherABI() (nics finding.Subjects) {
	for _, nic := range f.nicsInQuestion() {
		p := f.provider(f.familyOf(nic))
		abi, read := f.Kmod.Advice.VerbsABI[nic.RDMA]
		if !read || p.ABI == nil || p.ABI.Has(abi.Version) {
			continue
		}
		nics.Add(fmt.Sprintf("%s has ABI %d, and lib%s supports %d to "+
			"%d", nic.RDMA, abi.Version, p.Name, p.ABI.Min, p.ABI.Max),
			finding.Saw(abi.File, fmt.Sprint(abi.Version)), f.sawProvider(p))
	}
	return nics
}

// noDataDirect names what providers lack for the data-direct functions of NICs in question.
func (f *judged) noDataDirect() (lacks finding.Subjects) {
	for _, nic := range f.nicsInQuestion() {
		of, fn := f.familyOf(nic), f.PCI.Find(nic.Address)
		p := f.provider(of)
		if fn.DataDirect == nil || p.Library == nil {
			continue
		}
		for _, symbol := range of.Provider.DataDirect {
			if name, _, _ := strings.Cut(symbol, "@"); !p.Library.Exports(symbol) && !slices.Contains(lacks.Names, name) {
				lacks.Add(name, finding.Saw(p.Library.Path, "no "+symbol))
			}
		}
	}
	return lacks
}
