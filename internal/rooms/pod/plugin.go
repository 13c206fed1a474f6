package pod

import (
	"slices"
	"strings"

	"gdr-features/internal/finding"
	"gdr-features/internal/fleet/image"
	"gdr-features/internal/fleet/mechanism"
	"gdr-features/internal/rooms/frameworks"
)

// ncclPlugin: NCCL uses NICs of some families only by a network plugin, which needs libfabric.
var ncclPlugin = check{
	Name: "nccl-plugin", Codes: []finding.Code{"NoNCCLPlugin", "LibraryRefused"},
	Judge: func(f *judged) finding.Said {
		i := f.Pod.Image
		if !withLoader(i) || !f.wantsPlugin() {
			return finding.Said{}
		}
		nics, plugin := f.familiesInQuestion()[0].Name, f.familiesInQuestion()[0].NCCLPlugin.Name
		needs := lacking(i.Fabric)
		switch {
		case i.Plugin == nil:
			return finding.Fail("NoNCCLPlugin", "NCCL uses %s NICs by the plugin %s alone, and the loader "+
				"finds no libnccl-net.so: NCCL uses TCP", nics, plugin).
				Do("install " + plugin + " in the image, and name its directory in LD_LIBRARY_PATH or " +
					"/etc/ld.so.conf.d").
				Saw(finding.Saw(i.Loader, "no libnccl-net.so"))
		case i.Fabric == nil:
			return finding.Fail("NoNCCLPlugin", "the plugin %s needs libfabric, and the loader finds no "+
				image.Libfabric+": NCCL uses TCP", plugin).
				Do("install libfabric in the image (libfabric-aws of the EFA installer), and name its " +
					"directory in LD_LIBRARY_PATH or /etc/ld.so.conf.d").
				Saw(finding.Saw(i.Plugin.Path, "no "+image.Libfabric))
		case needs.Any():
			return finding.Fail("LibraryRefused", "the loader refuses libfabric: it needs %s, which the "+
				"image lacks", needs).Of(needs).
				Do("install in the image what libfabric needs (librdmacm1 of Debian and Ubuntu, librdmacm " +
					"of RHEL, and their like)")
		}
		return finding.OK("NCCL uses %s NICs by %s", nics, i.Plugin.Path)
	},
}

// wantsPlugin: NCCL is in question, and all NICs in question are of families for which it needs
// a plugin.
func (f *judged) wantsPlugin() bool {
	nccl := slices.ContainsFunc(f.frameworksInQuestion(), func(p image.Package) bool {
		rows := mechanism.For(p.Name, "")
		return p.Name == "nccl" || len(rows) > 0 && slices.Contains(rows[0].Through, "nccl")
	})
	return nccl && f.allOf(onlyByPlugin)
}

// allocator: memory that PyTorch allocates with expandable_segments is mapped in pieces
// (cuMemCreate, cuMemMap), of which PyTorch before 2026 did not say that NICs use it
// (pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp@001074d, without gpuDirectRDMACapable;
// pytorch/pytorch#192330 with it). NCCL's own buffers are not meant.
var allocator = check{
	Name: "allocator", Codes: []finding.Code{"ExpandableSegments"},
	Judge: func(f *judged) finding.Said {
		variables := f.expandable()
		if !variables.Any() {
			return finding.Said{}
		}
		return finding.Warn("ExpandableSegments", `programs that register PyTorch's own memory with NICs (NIXL, `+
			`Mooncake, DeepEP, UCCL) may fail with "Bad address", or be slow, because of %s`, variables).
			Of(variables).Do("remove expandable_segments from the variable in spec.containers[].env", "NCCL "+
			"alone does not need that")
	},
}

func (f *judged) expandable() (variables finding.Subjects) {
	for _, name := range frameworks.Allocators {
		value := f.Pod.Environment.Variables[name]
		for option := range strings.SplitSeq(value, ",") {
			key, on, _ := strings.Cut(strings.TrimSpace(option), ":")
			if strings.TrimSpace(key) == "expandable_segments" && strings.EqualFold(strings.TrimSpace(on), "true") {
				variables.Add(name+"="+value, finding.Saw(name, value))
			}
		}
	}
	return variables
}
