package pod

import (
	"cmp"
	"slices"

	"gdr-features/internal/finding"
	"gdr-features/internal/fleet/image"
	"gdr-features/internal/rooms/assign"
	"gdr-features/source/family"
	"gdr-features/tristate"
)

const (
	verbsPackages = "install in the image libibverbs1 and ibverbs-providers (Debian, Ubuntu) or libibverbs " +
		"(RHEL)"
	oneRelease = "install libibverbs and the provider in the image from one source: libibverbs1 and " +
		"ibverbs-providers (Debian, Ubuntu), libibverbs (RHEL), or the vendor's packages of both; mount " +
		"none of them from the node"
)

// libibverbs: programs open RDMA devices with it, as NCCL, UCX and NVSHMEM do; those that do
// not find it use TCP. The function for DMA-BUF is looked for by its version, and nothing is
// said where it is missing (NVIDIA/nccl src/misc/ibvsymbols.cc).
var libibverbs = check{
	Name: "libibverbs", Codes: []finding.Code{"LibrariesNotSeen", "NoLibibverbs", "LibraryRefused", "LibibverbsTooOld", finding.Unreadable},
	Judge: func(f *judged) finding.Said {
		switch i := f.Pod.Image; {
		case f.Pod.ImageUnread:
			return finding.Unknown("the libraries of the image could not be read in time")
		case i == nil:
			return finding.Said{}
		case i.Loader == "":
			return finding.Warn("LibrariesNotSeen", "the job's libraries are not judged: there is no "+
				"dynamic loader here, so that no job runs in this image").
				Do("run gdr-features in the job's own container, into which an initContainer copies it " +
					"(deploy/examples/preflight-libraries.yaml)").
				Do("or mount the job's image and name it with --image").
				Saw(finding.SawMissing("/lib64/ld-linux-x86-64.so.2"))
		case i.Verbs == nil:
			return noLibibverbs(i)
		}
		if needs := lacking(f.Pod.Image.Verbs); needs.Any() {
			return finding.Fail("LibraryRefused", "the loader refuses libibverbs: it needs %s, which the "+
				"image lacks", needs).Of(needs).Do(verbsPackages)
		}
		return f.withLibibverbs()
	},
}

// noLibibverbs is about an image in which the loader finds no libibverbs.
func noLibibverbs(i *image.Image) finding.Said {
	switch {
	case len(i.Problems) > 0:
		return finding.Unknown("whether the image has libibverbs cannot be determined: a file could not be " +
			"read")
	case i.Beside != "":
		return finding.Warn("NoLibibverbs", "the loader does not find libibverbs: only a program whose own "+
			"run path leads to %s uses it", i.Beside).
			Do("add its directory to LD_LIBRARY_PATH in spec.containers[].env", "or "+verbsPackages).
			Saw(finding.SawFile(i.Beside, tristate.True))
	}
	return finding.Fail("NoLibibverbs", "the image has no "+image.Libibverbs+", without which no program "+
		"opens an RDMA device: NCCL uses TCP").
		Do(verbsPackages).Saw(finding.Saw(i.Loader, "no "+image.Libibverbs))
}

// withLibibverbs is about an image that has it. Where DMA-BUF is no way to GPU memory on the
// node either, other checks say so.
func (f *judged) withLibibverbs() finding.Said {
	release := orUnknown(f.Pod.Image.Verbs.Release())
	seen := finding.Saw(f.Pod.Image.Verbs.Path, "no "+image.RegisterDMABuf)
	switch {
	case registersDMABuf(f.Pod.Image):
		return finding.OK("libibverbs %s, with ibv_reg_dmabuf_mr", release).
			Saw(finding.Saw(f.Pod.Image.Verbs.Path, image.RegisterDMABuf))
	case f.Verdict.Peermem == tristate.False && f.Verdict.DMABuf == tristate.True:
		return finding.Fail("LibibverbsTooOld", "libibverbs %s has no ibv_reg_dmabuf_mr, and DMA-BUF is the "+
			"only way to GPU memory on this node", release).
			Do("use an image with rdma-core 34 or newer (Debian 12, Ubuntu 22.04, RHEL 9)", "or load "+
				"nvidia-peermem on the node, if its RDMA drivers take it").Saw(seen)
	case f.Verdict.Peermem == tristate.Unknown:
		return finding.Unknown("libibverbs %s has no ibv_reg_dmabuf_mr; whether this node has another way "+
			"to GPU memory is not known", release).Saw(seen)
	}
	return finding.OK("libibverbs %s has no ibv_reg_dmabuf_mr: on nodes without peermem this image would "+
		"have no way to GPU memory", release).Saw(seen)
}

func withLoader(i *image.Image) bool      { return i != nil && i.Loader != "" }
func withVerbs(i *image.Image) bool       { return i != nil && i.Verbs != nil }
func registersDMABuf(i *image.Image) bool { return i.Verbs.Exports(image.RegisterDMABuf) }

// lacking names what a library needs and the image lacks; nothing for no library.
func lacking(l *image.Library) (needs finding.Subjects) {
	if l != nil {
		for _, need := range l.Lacks {
			needs.Add(need, finding.Saw(l.Path, "needs "+need))
		}
	}
	return needs
}

func orUnknown(version string) string { return cmp.Or(version, "of unknown version") }

// nicsInQuestion are the NICs near to the GPUs in question.
func (f *judged) nicsInQuestion() []*assign.NIC { return f.frameworkMap().Near() }

// familiesInQuestion are the families of these NICs, or of the judged pair where there is no
// usable NIC.
func (f *judged) familiesInQuestion() []*family.NIC {
	var all []*family.NIC
	for _, nic := range f.nicsInQuestion() {
		if of := f.familyOf(nic); !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	if len(all) == 0 {
		all = append(all, f.NIC)
	}
	return all
}
