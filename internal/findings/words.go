package findings

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gdr-features/internal/assign"
	"gdr-features/internal/show"
	"gdr-features/source/family"
	"gdr-features/source/platform"
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

// words has the words in braces that texts may have, and what stands for each on a machine.
var words = map[string]func(*judged) string{
	"{about}":            about,
	"{beside}":           func(f *judged) string { return f.Pod.Image.Beside },
	"{bonds}":            func(f *judged) string { return firstFew(bonds(f)) },
	"{configDir}":        func(f *judged) string { return f.Pod.Image.ConfigDir },
	"{gidIndexes}":       firstIndexes,
	"{gpuNames}":         gpuNames,
	"{gpus}":             func(f *judged) string { return show.Count(f.Matrix.EligibleGPUs, "GPU") },
	"{gpusHere}":         func(f *judged) string { return strconv.Itoa(f.Pod.GPUs) },
	"{hcaPrefix}":        hcaPrefix,
	"{kernel}":           func(f *judged) string { return f.Platform.Kernel },
	"{letters}":          letters,
	"{limit}":            limitText,
	"{machineType}":      func(f *judged) string { return f.Matrix.Machine.Product.Value },
	"{machineWithGDA}":   func(f *judged) string { return f.NIC.NCCLPlugin.GPUStarts.Instead },
	"{nodeWays}":         func(f *judged) string { return waysText(f.waysHere()) },
	"{plugin}":           func(f *judged) string { return f.familiesInQuestion()[0].NCCLPlugin.Name },
	"{pluginFamily}":     func(f *judged) string { return f.familiesInQuestion()[0].Name },
	"{pluginPath}":       func(f *judged) string { return f.Pod.Image.Plugin.Path },
	"{provider}":         func(f *judged) string { return f.NIC.Help.Library },
	"{selectedBy}":       func(f *judged) string { return strings.Join(f.Pod.Selected.By, " ") },
	"{selectionUnknown}": func(f *judged) string { return f.Pod.Selected.Unknown },
	"{verbsRelease}":     func(f *judged) string { return orUnknown(f.Pod.Image.Verbs.Release()) },
	"{familiesInQuestion}": func(f *judged) string {
		return strings.Join(texts(f.familiesInQuestion(), func(n *family.NIC) string { return n.Name }), ", ")
	},
	"{gdrCopyHere}": func(f *judged) string {
		return choose(gdrCopy(f), platform.GDRCopyNode+" is here", platform.GDRCopyNode+" cannot be used here", "not known: "+platform.GDRCopyNode)
	},
	"{nearNICs}": func(f *judged) string {
		return strings.Join(texts(f.Pod.Map.Near(), func(nic *assign.NIC) string { return nic.RDMA }), " ")
	},
	"{ucxVersion}": func(f *judged) string {
		version, _ := ucxVersion(f)
		return orUnknown(version)
	},
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
