package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/assign"
	"gdr-features/internal/image"
	"gdr-features/source/family"
	"gdr-features/tristate"
)

// inImage are the checks of a container's libraries: whether a program in it can open the
// NICs, and register GPU memory with them.
var inImage = []check{libibverbs, verbsProvider, ofiPlugin, frameworkWays, allocator, ucxBond, ncclGIN}

const (
	verbsPackages = "install in the image libibverbs1 and ibverbs-providers (Debian, Ubuntu) or libibverbs (RHEL)"
	oneRelease    = "install libibverbs and the provider in the image from one source: libibverbs1 and ibverbs-providers (Debian, Ubuntu), libibverbs (RHEL), or the vendor's packages of both; mount none of them from the node"
)

// libibverbs: programs open RDMA devices with it, as NCCL, UCX and NVSHMEM do; those that do
// not find it use TCP. The function for DMA-BUF is looked for by its version, and nothing is
// said where it is missing (NVIDIA/nccl src/misc/ibvsymbols.cc).
var libibverbs = check{name: "libibverbs", rows: []row{
	{status: Undecidable, when: func(f *judged) bool { return f.Pod.ImageUnread }, text: "the libraries of the image could not be read in time"},
	{
		status: Warn, code: "LibrariesNotSeen", when: func(f *judged) bool { return f.Pod.Image != nil && !withLoader(f) },
		text:     "the job's libraries are not judged: there is no dynamic loader here, so that no job runs in this image",
		fix:      do("run gdr-features in the job's own container, into which an initContainer copies it (deploy/examples/preflight-libraries.yaml)", "or mount the job's image and name it with --image"),
		evidence: func(*judged) []string { return []string{sawMissing("/lib64/ld-linux-x86-64.so.2")} },
	},
	{
		status: Undecidable, when: func(f *judged) bool { return withLoader(f) && !withVerbs(f) && len(f.Pod.Image.Problems) > 0 },
		text: "whether the image has libibverbs cannot be determined: a file could not be read",
	},
	{
		status: Warn, code: "NoLibibverbs", when: func(f *judged) bool { return withLoader(f) && !withVerbs(f) && f.Pod.Image.Beside != "" },
		text:     "the loader does not find libibverbs: only a program whose own run path leads to {beside} uses it",
		fix:      do("add its directory to LD_LIBRARY_PATH in spec.containers[].env", "or "+verbsPackages),
		evidence: func(f *judged) []string { return []string{sawFile(f.Pod.Image.Beside, tristate.True)} },
	},
	{
		status: Fail, code: "NoLibibverbs", when: func(f *judged) bool { return withLoader(f) && !withVerbs(f) },
		text: "the image has no " + image.Libibverbs + ", without which no program opens an RDMA device: NCCL uses TCP",
		fix:  do(verbsPackages), evidence: func(f *judged) []string { return []string{saw(f.Pod.Image.Loader, "no "+image.Libibverbs)} },
	},
	{
		status: Fail, code: "LibraryRefused", when: withVerbs, which: lacking(func(f *judged) *image.Library { return f.Pod.Image.Verbs }),
		text: "the loader refuses libibverbs: it needs {about}, which the image lacks", fix: do(verbsPackages),
	},
	{
		status: Fail, code: "LibibverbsTooOld", when: func(f *judged) bool { return withVerbs(f) && !registersDMABuf(f) && onlyByDMABuf(f) },
		text:     "libibverbs {verbsRelease} has no ibv_reg_dmabuf_mr, and DMA-BUF is the only way to GPU memory on this node",
		fix:      do("use an image with rdma-core 34 or newer (Debian 12, Ubuntu 22.04, RHEL 9)", "or load nvidia-peermem on the node, if its RDMA drivers take it"),
		evidence: sawVerbs,
	},
	{
		status: Undecidable, when: func(f *judged) bool {
			return withVerbs(f) && !registersDMABuf(f) && f.Verdict.Peermem == tristate.Unknown
		},
		text:     "libibverbs {verbsRelease} has no ibv_reg_dmabuf_mr; whether this node has another way to GPU memory is not known",
		evidence: sawVerbs,
	},
	{
		status: OK, when: func(f *judged) bool { return withVerbs(f) && !registersDMABuf(f) },
		text: "libibverbs {verbsRelease} has no ibv_reg_dmabuf_mr: on nodes without peermem this image would have no way to GPU memory", evidence: sawVerbs,
	},
	{status: OK, when: withVerbs, text: "libibverbs {verbsRelease}, with ibv_reg_dmabuf_mr", evidence: sawVerbs},
}}

func withLoader(f *judged) bool      { return f.Pod.Image != nil && f.Pod.Image.Loader != "" }
func withVerbs(f *judged) bool       { return f.Pod.Image != nil && f.Pod.Image.Verbs != nil }
func registersDMABuf(f *judged) bool { return f.Pod.Image.Verbs.Exports(image.RegisterDMABuf) }

// onlyByDMABuf: peermem is known not to be a way here. Where DMA-BUF is none either, the node
// is not ready, and other checks say so.
func onlyByDMABuf(f *judged) bool {
	return f.Verdict.Peermem == tristate.False && f.Verdict.DMABuf == tristate.True
}

func sawVerbs(f *judged) []string {
	v := f.Pod.Image.Verbs
	return []string{saw(v.Path, choose(tristate.Of(registersDMABuf(f)), image.RegisterDMABuf, "no "+image.RegisterDMABuf, ""))}
}

// lacking names what a library needs and the image lacks.
func lacking(of func(*judged) *image.Library) func(*judged) subjects {
	return func(f *judged) (needs subjects) {
		if lib := of(f); lib != nil {
			for _, need := range lib.Lacks {
				needs.add(need, saw(lib.Path, "needs "+need))
			}
		}
		return needs
	}
}

// verbsProvider: libibverbs opens a NIC with the provider of its family, which must be listed,
// be of libibverbs' own release, and know the interface of the kernel's driver (rdma-core
// libibverbs/dynamic_driver.c, libibverbs/init.c).
var verbsProvider = check{name: "verbs-provider", rows: under(withVerbs, nil, []row{
	{
		status: Undecidable, which: providersThat(func(f *judged, p *image.Provider) string {
			switch {
			case p.Err != nil:
				return p.Err.Error()
			case p.Listed == "" && f.Pod.Image.ListErr != nil:
				return f.Pod.Image.ListErr.Error()
			}
			return ""
		}),
		text: "the provider, or the list of drivers, cannot be read: {about}",
	},
	{
		status: Fail, code: "NoVerbsProvider", which: providersThat(func(f *judged, p *image.Provider) string {
			if p.Library != nil || p.Other != "" {
				return ""
			}
			return "lib" + p.Name + f.Pod.Image.Suffix
		}),
		text: "libibverbs {verbsRelease} finds no provider for these NICs, so that programs see none: {about}", fix: providerPackage,
	},
	{
		status: Fail, code: "ProviderMismatch", which: providersThat(func(f *judged, p *image.Provider) string {
			if p.Library != nil || p.Other == "" {
				return ""
			}
			return fmt.Sprintf("lib%s%s is looked for, and %s is here", p.Name, f.Pod.Image.Suffix, p.Other)
		}),
		text: "libibverbs {verbsRelease} does not open a provider of another private interface: {about}", fix: do(oneRelease),
	},
	{
		status: Fail, code: "ProviderMismatch", which: providersThat(func(_ *judged, p *image.Provider) string {
			if p.Library == nil || len(p.Library.Lacks) == 0 {
				return ""
			}
			return p.Library.Path + " needs " + firstFew(p.Library.Lacks)
		}),
		text: "the loader refuses the provider, because the image lacks what it needs: {about}", fix: do(oneRelease),
	},
	{
		status: Fail, code: "ProviderNotListed", which: providersThat(func(_ *judged, p *image.Provider) string {
			if p.Listed != "" {
				return ""
			}
			return p.Name
		}),
		text: "the provider is here, and no file in {configDir} names it, so that libibverbs does not load it: {about}",
		fix:  do("install the whole package of the provider in the image, or add a file {configDir}/NAME.driver with the line: driver NAME"),
	},
	{
		status: Fail, code: "ProviderKernelABI", which: otherABI,
		text: "the provider in the image does not support the interface of the node's driver, so that programs see no NIC: {about}",
		fix:  do("install in the image {provider} of the driver's release if the driver is the vendor's own (explain VerbsABIMismatch), else rdma-core's provider"),
	},
	{
		status: Warn, code: "NoDataDirect", which: noDataDirect,
		text: "NCCL and UCX do not use the data-direct functions of these NICs: the provider has no {about}",
		fix:  do("use an image with rdma-core 54 or newer (Debian 13), or with the libraries of MOFED / DOCA-OFED 24.10 or newer"),
	},
	{status: OK, which: providersThat(func(_ *judged, p *image.Provider) string { return providerText(p) }), text: "libibverbs finds the provider of these NICs: {about}"},
})}

func providerText(p *image.Provider) string {
	if p.ABI == nil {
		return p.Name
	}
	if p.ABI.Min == p.ABI.Max {
		return fmt.Sprintf("%s (kernel ABI %d)", p.Name, p.ABI.Min)
	}
	return fmt.Sprintf("%s (kernel ABI %d to %d)", p.Name, p.ABI.Min, p.ABI.Max)
}

// nicsInQuestion are the NICs near to the GPUs in question.
func (f *judged) nicsInQuestion() []*assign.NIC { return f.frameworkMap().Near() }

// familiesInQuestion are the families of these NICs, or of the judged pair where there is no
// usable NIC.
func (f *judged) familiesInQuestion() []*family.NIC {
	var all []*family.NIC
	for _, nic := range f.nicsInQuestion() {
		if of := familyOf(f, nic); !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	if len(all) == 0 {
		all = append(all, f.NIC)
	}
	return all
}

// provider is that of a family: an empty one where there is none.
func (f *judged) provider(of *family.NIC) *image.Provider {
	name := cmp.Or(of.Provider.Name, of.Name)
	if p := f.Pod.Image.Provider(name); p != nil {
		return p
	}
	return &image.Provider{Name: name}
}

// providersThat names what a function says of the providers of the NICs in question; "" for
// nothing.
func providersThat(say func(*judged, *image.Provider) string) func(*judged) subjects {
	return func(f *judged) (all subjects) {
		for _, of := range f.familiesInQuestion() {
			p := f.provider(of)
			if text := say(f, p); text != "" {
				all.add(text, f.sawProvider(p))
			}
		}
		return all
	}
}

// sawProvider is evidence of a provider.
func (f *judged) sawProvider(p *image.Provider) string {
	switch {
	case p.Library != nil:
		return saw(p.Library.Path, providerText(p))
	case p.Other != "":
		return sawFile(p.Other, tristate.True)
	}
	return sawMissing(f.Pod.Image.ProviderDir + "/lib" + p.Name + f.Pod.Image.Suffix)
}

// providerPackage says where to get a provider that is missing.
func providerPackage(f *judged) []string {
	var news []string
	for _, of := range f.familiesInQuestion() {
		if since := of.Provider.Since; since != "" {
			news = append(news, fmt.Sprintf("%s needs rdma-core %s or newer, or %s", of.Name, since, of.Help.Library))
		}
	}
	fix := "install in the image ibverbs-providers (Debian, Ubuntu) or libibverbs (RHEL) of libibverbs' own release"
	return append([]string{fix}, news...)
}

// otherABI names the NICs whose driver has an interface that the provider does not support.
func otherABI(f *judged) (nics subjects) {
	for _, nic := range f.nicsInQuestion() {
		p := f.provider(familyOf(f, nic))
		abi, read := f.advised().VerbsABI[nic.RDMA]
		if !read || p.ABI == nil || p.ABI.Has(abi.Version) {
			continue
		}
		nics.add(fmt.Sprintf("%s has ABI %d, and lib%s supports %d to %d", nic.RDMA, abi.Version, p.Name, p.ABI.Min, p.ABI.Max),
			saw(abi.File, fmt.Sprint(abi.Version)), f.sawProvider(p))
	}
	return nics
}

// noDataDirect names the functions that a provider lacks, where NICs in question have a
// data-direct function.
func noDataDirect(f *judged) (lacks subjects) {
	for _, nic := range f.nicsInQuestion() {
		of, fn := familyOf(f, nic), f.PCI.Find(nic.Address)
		p := f.provider(of)
		if fn.DataDirect == nil || p.Library == nil {
			continue
		}
		for _, symbol := range of.Provider.DataDirect {
			if name, _, _ := strings.Cut(symbol, "@"); !p.Library.Exports(symbol) && !slices.Contains(lacks.names, name) {
				lacks.add(name, saw(p.Library.Path, "no "+symbol))
			}
		}
	}
	return lacks
}
