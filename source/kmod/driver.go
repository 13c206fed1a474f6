package kmod

import (
	"fmt"
	"slices"
	"strings"

	"gdr-features/internal/sanitize"
	"gdr-features/internal/version"
	"gdr-features/source/family"
	"gdr-features/source/pci"
	"gdr-features/tristate"
)

// drivers reads the drivers of GPUs. A GPU that is bound to its driver proves that it is loaded.
func (s *scanner) drivers() {
	s.st.Drivers = make(map[string]Driver, len(s.here.GPUs))
	s.about(FactDriver)
	for _, g := range s.here.GPUs {
		bound := s.all(func(f *pci.Function) bool { return f.GPU == g && f.Driver == g.Driver })
		s.st.Drivers[g.Name] = s.driver(g, tristate.Of(len(bound) > 0))
	}
}

// driver reads a driver. Without a version file it is loaded if its module has a directory, or a
// GPU is bound to it. The kernel's own, of those that come in one variant, has no version.
func (s *scanner) driver(gpu *family.GPU, bound tristate.State) (d Driver) {
	if gpu.OpenFrom == 0 {
		d = Driver{Loaded: tristate.Or(bound, s.present(gpu.Driver)), Open: tristate.False}
		if d.Loaded == tristate.True {
			d.Version = sanitize.Terminal(s.line(gpu.VersionFile))
		}
		return d
	}
	text, err := s.fs.Bytes(gpu.VersionFile, 16<<10)
	if err == nil {
		open, version := parseDriver(string(text))
		if open != tristate.Unknown {
			return Driver{Loaded: tristate.True, Open: open, Version: version}
		}
		s.problem(fmt.Errorf("/%s: no NVIDIA driver version in it", gpu.VersionFile))
	}
	d.Loaded = tristate.Or(bound, s.present(gpu.Driver))
	if err != nil && d.Loaded == tristate.True {
		s.unread(err)
	} else if err != nil {
		s.problem(err)
		d.Open = d.Loaded // False without a driver
	}
	return d
}

// parseDriver reads the line "NVRM version: NVIDIA UNIX Open Kernel Module for
// x86_64  595.45.04  Release Build ..." or, of the proprietary modules, "NVRM version:
// NVIDIA UNIX x86_64 Kernel Module  550.54.14  <date>".
func parseDriver(text string) (open tristate.State, version string) {
	line, _, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(line, "NVRM version:") || !strings.Contains(line, "Kernel Module") {
		return tristate.Unknown, ""
	}
	words := strings.Fields(line)
	if i := slices.IndexFunc(words, isDriverVersion); i >= 0 {
		version = words[i]
	}
	return tristate.Of(strings.Contains(line, "Open Kernel Module")), version
}

// isDriverVersion accepts "550.54.14" and "570.86": three or four digits, then
// one or two numbers more.
func isDriverVersion(word string) bool {
	numbers, behind := version.Parse(word)
	major := strings.Index(word, ".")
	return behind == "" && (len(numbers) == 2 || len(numbers) == 3) && (major == 3 || major == 4) && slices.Max(numbers) <= 9999
}
