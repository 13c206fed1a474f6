package platform

import (
	"strings"

	"gdr-features/host"
	"gdr-features/internal/sanitize"
)

// Files of the kernel as a whole.
const (
	CommandLineFile   = "/proc/cmdline"
	NUMABalancingFile = "/proc/sys/kernel/numa_balancing"
	ReleaseFile       = "/proc/sys/kernel/osrelease"
)

// ReadCommandLine reads the words about the IOMMU of the command line that the kernel was booted
// with, from CommandLineFile, and no others.
func ReadCommandLine(fs *host.FS) (words []string, err error) {
	text, err := fs.Line(CommandLineFile[1:])
	for word := range strings.FieldsSeq(text) {
		if key, _, _ := strings.Cut(word, "="); strings.Contains(key, "iommu") {
			words = append(words, word)
		}
	}
	return words, err
}

// ReadRelease reads the release of the running kernel from ReleaseFile, "6.8.0-45-generic"; ""
// where it is not known, or is none that can be part of a path.
func ReadRelease(fs *host.FS) (string, error) {
	release, err := fs.Line(ReleaseFile[1:])
	if strings.ContainsAny(release, "/ ") || sanitize.Terminal(release) != release {
		return "", err
	}
	return release, err
}
