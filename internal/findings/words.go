package findings

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/assign"
	"gdr-features/internal/show"
	"gdr-features/source/family"
	"gdr-features/source/kmod"
	"gdr-features/source/platform"
	"gdr-features/tristate"
	"gdr-features/verdict"
)

// do are steps, or alternatives, with words in braces filled in. A step of which nothing is left
// does not apply here.
func do(all ...string) func(*judged) []string {
	return func(f *judged) []string {
		return steps(texts(all, func(step string) string { return fill(f, step) })...)
	}
}

// fill replaces the words in braces. Other braces stay.
func fill(f *judged, text string) string {
	return inBraces.ReplaceAllStringFunc(text, func(braces string) string {
		if word, known := words[braces]; known {
			return word(f)
		}
		return braces
	})
}

var inBraces = regexp.MustCompile(`\{[a-zA-Z]+\}`)

// steps leaves out those that do not apply here, which are "".
func steps(all ...string) []string {
	return slices.DeleteFunc(all, func(step string) bool { return step == "" })
}

// words has the words in braces that texts may have, and what stands for each on a machine.
var words = map[string]func(*judged) string{
	"{about}":              about,
	"{acs}":                func(f *judged) string { return f.Verdict.ACS },
	"{activePorts}":        activePorts,
	"{asked}":              asked,
	"{beside}":             func(f *judged) string { return f.Pod.Image.Beside },
	"{bonds}":              func(f *judged) string { return firstFew(bonds(f)) },
	"{bridge}":             bridge,
	"{client}":             firstModule,
	"{clientModule}":       clientModule,
	"{configDir}":          func(f *judged) string { return f.Pod.Image.ConfigDir },
	"{cpu}":                func(f *judged) string { return f.Platform.CPU.Name },
	"{disableRedirect}":    disableRedirect,
	"{displayProduct}":     func(f *judged) string { return display(f, f.functions(isDisplay(f))[0]).Help.Product },
	"{dmabufReleases}":     func(f *judged) string { return f.GPU.Help.DMABuf },
	"{dmabufSymbol}":       func(f *judged) string { return f.NIC.DMABuf },
	"{enableATS}":          enableATS,
	"{expectations}":       func(f *judged) string { return strconv.Itoa(len(f.Expected.Checks)) },
	"{expected}":           func(f *judged) string { return f.unmet.Expected },
	"{expectedType}":       func(f *judged) string { return f.Expected.Type },
	"{exports}":            exports,
	"{firstGPU}":           firstGPU,
	"{firstProduct}":       func(f *judged) string { return f.Matrix.GPUs[0].GPU.Help.Product },
	"{firstVendor}":        func(f *judged) string { return f.Matrix.GPUs[0].GPU.Help.Vendor },
	"{found}":              func(f *judged) string { return f.unmet.Found },
	"{gidIndexes}":         firstIndexes,
	"{gpu}":                func(f *judged) string { return f.GPU.Name },
	"{gpuDriver}":          func(f *judged) string { return f.GPU.Driver },
	"{gpuNames}":           gpuNames,
	"{gpus}":               func(f *judged) string { return show.Count(f.Matrix.EligibleGPUs, "GPU") },
	"{gpusHere}":           func(f *judged) string { return strconv.Itoa(f.Pod.GPUs) },
	"{gpuSide}":            gpuSide,
	"{gpuVersion}":         gpuDriverVersion,
	"{hcaPrefix}":          hcaPrefix,
	"{install}":            func(f *judged) string { return f.GPU.Help.Install },
	"{installed}":          func(f *judged) string { return f.advised().File.Name },
	"{identity}":           identityText,
	"{insteadOfMachine}":   func(f *judged) string { return f.NIC.NoGPUMemory.Instead },
	"{interface}":          func(f *judged) string { return f.NIC.PeerMemory.Module },
	"{iommu}":              func(f *judged) string { return f.Verdict.IOMMU },
	"{kernel}":             func(f *judged) string { return f.Platform.Kernel },
	"{kernelABI}":          func(f *judged) string { return strconv.Itoa(f.NIC.Uverbs.ABI) },
	"{letters}":            letters,
	"{library}":            func(f *judged) string { return f.GPU.Help.Library },
	"{libraryBeyond}":      func(f *judged) string { return f.GPU.Help.Beyond },
	"{libraryLimit}":       func(f *judged) string { return f.GPU.Help.Limit },
	"{limit}":              limitText,
	"{linkLayer}":          linkLayer,
	"{links}":              func(f *judged) string { return show.Count(len(f.links()), "PCIe link") },
	"{load}":               load,
	"{loadedDriver}":       loadedDriver,
	"{machine}":            func(f *judged) string { return f.Expected.Machine },
	"{machineType}":        func(f *judged) string { return f.Matrix.Machine.Product.Value },
	"{machineWithGDA}":     func(f *judged) string { return f.NIC.NCCLPlugin.GPUStarts.Instead },
	"{missingOption}":      missingOption,
	"{module}":             func(f *judged) string { return f.NIC.Module },
	"{neededRelease}":      neededRelease,
	"{newerStack}":         newerStack,
	"{newerThanThese}":     newerThanThese,
	"{nic}":                func(f *judged) string { return f.NIC.Name },
	"{nicDriver}":          func(f *judged) string { return f.NIC.Drivers[0] },
	"{nicProduct}":         func(f *judged) string { return f.NIC.Help.Product },
	"{nics}":               func(f *judged) string { return show.Count(f.Matrix.EligibleNICs, "NIC") },
	"{nicVersion}":         func(f *judged) string { return f.advised().NICVersions[f.NIC.Name] },
	"{nodeRoute}":          nodeRoute,
	"{nodeWays}":           func(f *judged) string { return waysText(f.waysHere()) },
	"{orDMABuf}":           orDMABuf,
	"{orOff}":              orOff,
	"{orReadACS}":          orReadACS,
	"{otherNICs}":          otherNICs,
	"{package}":            func(f *judged) string { return f.NIC.PeerMemory.Package },
	"{passedThrough}":      passedThrough,
	"{passthroughDrivers}": passthroughDrivers,
	"{passthroughIOMMU}":   passthroughIOMMU,
	"{peerDirect}":         peerDirect,
	"{peerExporter}":       exporter,
	"{peerFile}":           peerFile,
	"{peermem}":            peermemName,
	"{peermemMoving}":      peermemMoving,
	"{peerStack}":          func(f *judged) string { return f.NIC.Help.PeerStack },
	"{plugin}":             func(f *judged) string { return f.familiesInQuestion()[0].NCCLPlugin.Name },
	"{pluginFamily}":       func(f *judged) string { return f.familiesInQuestion()[0].Name },
	"{pluginPath}":         func(f *judged) string { return f.Pod.Image.Plugin.Path },
	"{products}":           products,
	"{provenFrom}":         provenFrom,
	"{provider}":           func(f *judged) string { return f.NIC.Help.Library },
	"{rdmaNames}":          rdmaNames,
	"{rebuildDriver}":      func(f *judged) string { return f.GPU.Help.Rebuild },
	"{refused}":            func(f *judged) string { return strconv.Quote(f.GPU.Help.Refused) },
	"{register}":           func(f *judged) string { return f.GPU.Help.Register },
	"{registered}":         registered,
	"{selectedBy}":         func(f *judged) string { return strings.Join(f.Pod.Selected.By, " ") },
	"{selectionUnknown}":   func(f *judged) string { return f.Pod.Selected.Unknown },
	"{setpci}":             setpci,
	"{stack}":              stackOrigin,
	"{symbolOwner}":        func(f *judged) string { return f.Kmod.Symbols[kmod.PeerMemoryAPI].Owner },
	"{vendor}":             func(f *judged) string { return f.GPU.Help.Vendor },
	"{vendorABIs}":         func(f *judged) string { return strings.Join(texts(f.NIC.Uverbs.VendorABIs, strconv.Itoa), ", ") },
	"{vendors}":            vendors,
	"{verbsRelease}":       func(f *judged) string { return orUnknown(f.Pod.Image.Verbs.Release()) },
	"{withOthers}":         withOthers,
	"{withoutDirectNIC}":   withoutDirectNIC,
	"{enableRDMA}":         enableRDMA,
	"{nearNICUp}":          nearNICUp,
	"{worstLevel}":         func(f *judged) string { return f.Matrix.Usable.Level.String() },
	"{familiesInQuestion}": func(f *judged) string {
		return strings.Join(texts(f.familiesInQuestion(), func(n *family.NIC) string { return n.Name }), ", ")
	},
	"{gdrCopyHere}": func(f *judged) string {
		return choose(gdrCopy(f), platform.GDRCopyNode+" is here", platform.GDRCopyNode+" cannot be used here", "not known: "+platform.GDRCopyNode)
	},
	"{nearNICs}": func(f *judged) string {
		return strings.Join(texts(f.Pod.Map.Near(), func(nic *assign.NIC) string { return nic.RDMA }), " ")
	},
	"{otherGPUs}": func(f *judged) string {
		return strings.Join(texts(f.Others(), func(o verdict.Other) string { return o.GPU.Name }), " and ")
	},
	"{ucxVersion}": func(f *judged) string {
		version, _ := ucxVersion(f)
		return orUnknown(version)
	},
}

// about names what the row is about.
func about(f *judged) string { return firstFew(f.about.names) }

// texts returns a text for each element of a list.
func texts[T any](list []T, text func(T) string) []string {
	var all []string
	for _, element := range list {
		all = append(all, text(element))
	}
	return all
}

// choose returns one of three texts.
func choose(state tristate.State, yes, no, unknown string) string {
	switch state {
	case tristate.True:
		return yes
	case tristate.False:
		return no
	case tristate.Unknown:
	}
	return unknown
}

// firstFew lists the first of many and counts the rest.
func firstFew(list []string) string {
	const few = 3
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), len(list)-few)
}

// under returns the rows with one more condition, and with evidence that all of them have;
// nil for none.
func under(condition func(*judged) bool, common func(*judged) []string, rows []row) []row {
	rows = slices.Clone(rows)
	for i := range rows {
		r := rows[i]
		rows[i].when = func(f *judged) bool { return condition(f) && (r.when == nil || r.when(f)) }
		rows[i].evidence = func(f *judged) []string { return slices.Concat(of(common, f), of(r.evidence, f)) }
	}
	return rows
}
